"""Topics of Kafka as sources.

The position of a topic is the offset of the next message in each of its partitions, and is durable with the rows. The
offsets that consumer groups commit at the brokers are ignored. Messages of one partition arrive in order, and messages
of several partitions in any order.

Messages of aborted transactions are left out, and those of a transaction that is not over wait for its end. Aborted
messages and the records that end transactions have offsets, too. At the end of a partition the position passes over
them. Otherwise the brokers could remove them later, and the next session would not find its offset.

librdkafka fetches in threads of its own, so `poll` returns what has arrived and never waits.
"""

from __future__ import annotations

import csv
import json
import time as clock
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

from differential.extra import needed_for
from differential.session.sources.convert import Converter, Parse, number_of_json, of_json, of_text, taking_none
from differential.session.sources.source import Position, Reader, Rejected, SourceBatch, Statement, Target
from differential.session.sources.text import reason
from differential.session.table_data import Column
from differential.session.transaction import Kind
from timely.errors import DataError, SessionError

with needed_for("Kafka", "kafka"):
    import confluent_kafka as client

__all__ = ["kafka"]

MESSAGES = 10_000
"""A batch has at most this many messages."""
METADATA_SECONDS = 30.0
"""How many seconds pass before the source looks for new partitions again."""
PASSED_SECONDS = 10.0
"""For how many seconds a position that has passed over records other than messages waits for the next message."""
ANSWER_SECONDS = 10.0
"""How many seconds opening a topic waits for the brokers."""
Form = Literal["json", "csv", "raw"]
_FETCHING = client.KafkaError._AUTO_OFFSET_RESET
_PASSING = (client.KafkaError._TRANSPORT, client.KafkaError._ALL_BROKERS_DOWN)


@dataclass(frozen=True)
class Topic:
    """A topic of Kafka as a source."""

    servers: str
    topic: str
    form: Form
    key: tuple[str, ...]
    follow: bool
    config: Mapping[str, Any]
    name: str

    def open(self, target: Target, position: Position | None) -> TopicReader:
        """Return a reader that begins at the offsets of a position, and at the beginning of other partitions.

        Raises DataError if the topic does not fit the table, and SessionError if the topic cannot be read.
        """
        if target.replaces and self.key != target.names[: target.keys]:
            raise DataError(
                f"with upsert=True, a message's key must be the key of table {target.table!r}: kafka(..., key="
                f"{list(target.names[: target.keys])})"
            )
        known = json.loads(position) if isinstance(position, str) else {}
        return TopicReader(self, target, {int(partition): int(offset) for partition, offset in known.items()})


class TopicReader(Reader):
    """Reads a topic."""

    def __init__(self, source: Topic, target: Target, offsets: dict[int, int]) -> None:
        self._source = source
        self._target = target
        self._offsets = offsets
        self._records = _Records(source, target)
        self._ended: set[int] = set()
        self._assigned: set[int] = set()
        self._is_stopped = False
        self._passed: float | None = None
        """When the position has passed over what is not a message, since the last batch."""
        self.note = ""
        """Why nothing arrives, empty if a broker answers."""
        self._consumer = _consumer(source, self._note)
        try:
            self._assign(ANSWER_SECONDS)
        except BaseException:
            self._consumer.close()
            raise

    @property
    def is_ended(self) -> bool:
        """Whether the end of each partition was reached; False if the source follows."""
        return not self._source.follow and self._ended == self._assigned

    def poll(self) -> SourceBatch | None:
        """Return the rows of the messages that have arrived, None if there are none. Raises SessionError."""
        if self._is_stopped:
            return None
        if self._source.follow and clock.monotonic() - self._looked > METADATA_SECONDS:
            self._assign(0.5)
        ends: dict[int, int] = {}
        messages = [message for message in self._consumer.consume(MESSAGES, 0) if self._is_message(message, ends)]
        if not messages:
            self._pass_over(ends)
            if self._passed is None or not (self.is_ended or clock.monotonic() - self._passed > PASSED_SECONDS):
                return None
            return self._batch([], [])  # the position has moved, and no message is likely to follow soon
        changes, rejected = self._records.made(messages)
        if rejected and self._target.stops:
            # The message that comes first in the order of arrival stops the source; those after it are read again.
            end = min(rejected)
            changes, _ = self._records.made(messages[:end])
            rejected, messages, self._is_stopped = {end: rejected[end]}, messages[:end], True
        for message in messages:
            partition, offset = _place(message)
            # The next one to read: a position is where to go on.
            self._offsets[partition] = offset + 1
        if not self._is_stopped:  # the end of a partition comes after its messages, whose offsets are noted
            self._pass_over(ends)
        return self._batch(changes, [rejected[at] for at in sorted(rejected)])

    def _batch(self, changes: Sequence[Statement], rejected: Sequence[Rejected]) -> SourceBatch:
        """Return a batch that ends at the present offsets."""
        self._passed = None
        return SourceBatch(changes, rejected, json.dumps(self._offsets, sort_keys=True))

    def _pass_over(self, ends: Mapping[int, int]) -> None:
        """Move to the ends of partitions whose messages have all arrived."""
        for partition, end in ends.items():
            if end > self._offsets.get(partition, 0):
                self._offsets[partition] = end
                self._passed = clock.monotonic() if self._passed is None else self._passed

    def close(self) -> None:
        self._consumer.close()

    def _note(self, error: client.KafkaError) -> None:
        """Note that no broker answers. librdkafka calls this for errors that are not about a partition."""
        if error.code() == client.KafkaError._ALL_BROKERS_DOWN:
            self.note = f"is not connected: {error.str()}"

    def _is_message(self, message: client.Message, ends: dict[int, int]) -> bool:
        """Return whether this is a message to read, not a passing error; note the ends of partitions in `ends`.

        Raises SessionError for other errors.
        """
        error = message.error()
        partition, offset = _place(message)
        if error is None or error.code() == client.KafkaError._PARTITION_EOF:
            self.note = ""
        if error is None:
            return offset >= self._offsets.get(partition, 0)
        if error.code() == client.KafkaError._PARTITION_EOF:
            self._ended.add(partition)
            ends[partition] = offset
            return False
        if error.code() == _FETCHING:
            raise SessionError(
                f"topic {self._source.topic} no longer has offset {self._offsets.get(partition, 0)} of partition "
                f"{partition}, so messages that were not read are lost: {error.str()}"
            )
        if error.code() not in _PASSING and not error.retriable():
            raise SessionError(f"topic {self._source.topic}: {error.str()}")
        return False

    def _assign(self, timeout: float) -> None:
        """Read all partitions that the topic has now. Raises SessionError if the first call does not find the topic."""
        self._looked = clock.monotonic()
        topic = self._source.topic
        try:
            found = self._consumer.list_topics(topic, timeout).topics[topic]
        except client.KafkaException as error:
            if self._assigned:
                self.note = f"is not connected: {error.args[0].str()}"
                return  # the next call asks again
            raise SessionError(f"topic {topic} at {self._source.servers}: {error.args[0].str()}") from error
        self.note = ""
        if found.error is not None and not self._assigned:
            raise SessionError(f"topic {topic} at {self._source.servers}: {found.error.str()}")
        new = [
            client.TopicPartition(topic, partition, self._offsets.get(partition, client.OFFSET_BEGINNING))
            for partition in sorted(set(found.partitions) - self._assigned)
        ]
        if new:
            self._consumer.incremental_assign(new)
            self._assigned |= {each.partition for each in new}


class _Records:
    """Converts messages to statements."""

    def __init__(self, source: Topic, target: Target) -> None:
        key = source.key
        unknown = [name for name in key if name not in target.names]
        if unknown:
            raise DataError(f"table {target.table!r} has no column {unknown[0]!r} for the keys of messages")
        types = dict(zip(target.names, target.types))
        self._source = source
        self._target = target
        self._names = tuple(name for name in target.names if name not in key)
        if source.form == "raw" and len(self._names) != 1:
            raise DataError(
                f"the value of a message is one column, but table {target.table!r} has {', '.join(self._names)} beside "
                "the key: kafka(..., key=[...]) names the columns of the key"
            )
        form = {"json": of_json, "csv": of_text, "raw": _of_bytes}[source.form]
        key_form = _of_bytes if len(key) == 1 else of_json
        names = (*key, *self._names)
        forms = [*[key_form] * len(key), *[form] * len(self._names)]
        self._keys = Converter(key, [types[name] for name in key], key_form, target.required)
        self._whole = Converter(names, [types[name] for name in names], forms, target.required)
        self._places = [names.index(name) for name in target.names]

    def made(self, messages: Sequence[client.Message]) -> tuple[list[Statement], dict[int, Rejected]]:
        """Return statements, and the messages that are not rows by their places in `messages`."""
        changes: list[Statement] = []
        wrong: dict[int, str] = {}
        start = 0
        for _, each in groupby(messages, lambda message: message.value() is None):
            run = list(each)
            kind, columns, why = self._run(run)
            wrong |= {start + at: text for at, text in why.items()}
            if columns and len(columns[0]):
                changes.append((kind, columns))
            start += len(run)
        return changes, {at: self._rejected(messages[at], why) for at, why in wrong.items()}

    def _run(self, messages: Sequence[client.Message]) -> tuple[Kind, tuple[Column, ...], dict[int, str]]:
        """Return the statement of messages that all have values, or are all tombstones."""
        is_deletion = messages[0].value() is None
        if is_deletion and not self._target.replaces:
            why = "a message without a value: with upsert=True it deletes the row of its key"
            return Kind.DELETE_KEYS, (), dict.fromkeys(range(len(messages)), why)
        wrong: dict[int, str] = {}
        rows: dict[int, list[Any]] = {}
        for at, message in enumerate(messages):
            try:
                key = self._key_of(message.key())
                rows[at] = [*key, *(() if is_deletion else self._fields_of(message.value()))]
            except (ValueError, RecursionError) as error:
                wrong[at] = str(error)
        converter = self._keys if is_deletion else self._whole
        given = list(zip(*rows.values())) or [()] * len(converter.names)
        columns, bad = converter.convert(given, len(rows))
        places = list(rows)
        wrong |= {places[row]: why for row, why in bad.items()}
        if is_deletion:
            return Kind.DELETE_KEYS, tuple(columns), wrong
        return self._target.kind, tuple(columns[place] for place in self._places), wrong

    def _key_of(self, key: Any) -> Sequence[Any]:
        names = self._source.key
        if not names:
            return ()
        if len(names) == 1:
            return (key,)
        return _object(key, names, "key")

    def _fields_of(self, value: Any) -> Sequence[Any]:
        if self._source.form == "raw":
            return (value,)
        if self._source.form == "json":
            return _object(value, self._names, "value")
        text = value.decode()
        try:
            fields = next(csv.reader([text], strict=True), [])
        except csv.Error as error:
            raise ValueError(reason(error)) from None
        if len(fields) != len(self._names):
            raise ValueError(f"{len(fields)} field(s) instead of {len(self._names)}")
        return fields

    def _rejected(self, message: client.Message, why: str) -> Rejected:
        parts: list[Any] = [part for part in (message.key(), message.value()) if part is not None]
        record = ": ".join(part.decode(errors="replace") for part in parts)
        partition, offset = _place(message)
        return Rejected(f"{self._source.topic}[{partition}]", offset, record, why)


def _consumer(source: Topic, on_error: Callable[[client.KafkaError], None]) -> client.Consumer:
    """Return a consumer, which calls `on_error` within its methods.

    Raises DataError for a property that librdkafka does not accept.
    """
    config = {
        "bootstrap.servers": source.servers,
        "group.id": f"timely-{source.name}",
        "error_cb": on_error,
        "log_level": 2,  # else a line on standard error for each attempt to connect, of which there are 20 in a second
        **source.config,  # before those on which positions rely
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
    }
    try:
        return client.Consumer(config)
    except client.KafkaException as error:
        raise DataError(f"topic {source.topic}: {error.args[0].str()}; correct config=") from error


def _place(message: client.Message) -> tuple[int, int]:
    """Return the partition and the offset of a message; -1 for each that an error does not have."""
    partition, offset = message.partition(), message.offset()
    return (-1 if partition is None else partition), (-1 if offset is None else offset)


def _object(data: Any, names: Sequence[str], what: str) -> Sequence[Any]:
    if data is None:
        raise ValueError(f"the message has no {what}")
    found = json.loads(data, parse_float=number_of_json)
    if type(found) is not dict:
        raise ValueError(f"the {what} is not a JSON object")
    return [found.get(name) for name in names]


def _of_bytes(of: str) -> Parse | None:
    """Return a function that converts the bytes of a key or value to a value of a type; None if there is none."""
    if of.startswith("bytes"):
        return taking_none(lambda data: data, of.endswith("?"))
    parse = of_text(of.removesuffix("?"))
    return None if parse is None else taking_none(lambda data: parse(data.decode()), of.endswith("?"))


def kafka(
    servers: str,
    topic: str,
    form: Form = "json",
    *,
    key: str | Sequence[str] = (),
    follow: bool = True,
    config: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> Topic:
    """Return a topic of Kafka as a source.

    The value of a message has the columns of the table. With the form "json" it is a JSON object, with "csv" a record
    of CSV in the order of the columns, and with "raw" the text or the bytes of the only column. `key` names the columns
    that are in the message's key instead: one column as a text, or several as a JSON object. With `upsert=True` in
    `read_from`, these must be the key of the table, and a message without a value deletes the row of its key.

    With `follow=False` the source ends once it has read all existing messages. `config` has further properties of
    librdkafka, such as those of security. `name` is by default the topic. Raises SessionError for an unknown form, and
    for an `isolation.level` by which the source would read messages of aborted transactions.

    >>> kafka("localhost:9092", "orders", key="id").name
    'orders'
    """
    if form not in ("json", "csv", "raw"):
        raise SessionError(f"form is 'json', 'csv' or 'raw', not {form!r:.80}")
    if (level := (config or {}).get("isolation.level", "read_committed")) != "read_committed":
        raise SessionError(
            f"isolation.level={level!r:.80} would add messages of aborted transactions to the table: leave it out"
        )
    keys = (key,) if isinstance(key, str) else tuple(key)
    return Topic(servers, topic, form, keys, follow, dict(config or {}), name or topic)
