"""A topic of Kafka as a sink.

The messages of a commit and its mark are in one transaction of Kafka. The mark is a message of another topic, which is
compacted; its key is the name of the sink. When a sink is opened, the brokers complete or abort the transaction of an
earlier producer of the same name before the mark is read, and that producer can no longer write. So consumers that read
only committed messages (`isolation.level=read_committed`) find each commit once.
"""

from __future__ import annotations

import json
import time as clock
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from differential.extra import needed_for
from differential.session.changes import Change
from differential.session.sinks.sink import Mark, Outlet
from differential.session.sinks.values import as_json, as_line, as_texts, check_names
from timely.errors import DataError, SessionError, StoreError

with needed_for("Kafka", "kafka"):
    import confluent_kafka as client
    from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

__all__ = ["kafka"]

SECONDS = 15.0
"""How many seconds one step of a transaction may take."""
_FENCED = (
    client.KafkaError._FENCED,
    client.KafkaError.INVALID_PRODUCER_EPOCH,
    client.KafkaError.PRODUCER_FENCED,
)
_REFUSED = (
    client.KafkaError._INVALID_ARG,  # a property in `config`
    client.KafkaError.MSG_SIZE_TOO_LARGE,
    client.KafkaError.TOPIC_AUTHORIZATION_FAILED,
    client.KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)
Message = tuple[bytes | None, bytes | None]
"""The key and the value of a message."""


@dataclass(frozen=True)
class ChangesTopic:
    """A sink in a topic of Kafka."""

    servers: str
    topic: str
    key: tuple[str, ...]
    marks: str
    config: Mapping[str, Any]
    name: str

    def open(self, outlet: Outlet) -> ChangesTopicWriter:
        """Return a writer; earlier writers of the same name can no longer write. Raises the errors of `SinkWriter`."""
        if outlet.columns is not None:
            check_names(outlet.columns, self.key)
        with _passing(self.topic):
            return ChangesTopicWriter(self)


class ChangesTopicWriter:
    """Writes messages to a topic, in transactions."""

    def __init__(self, sink: ChangesTopic) -> None:
        self._sink = sink
        self._config = {"bootstrap.servers": sink.servers, "log_level": 2, **sink.config}
        self._producer = client.Producer(
            {**self._config, "transactional.id": f"timely-{sink.name}", "enable.idempotence": True}
        )
        self._producer.init_transactions(SECONDS)  # before `mark`: an earlier producer can write no more

    def mark(self) -> Mark | None:
        """Return the mark: the last message with the sink's name as its key in the topic of marks."""
        with _passing(self._sink.marks):
            self._make_marks()
            consumer = client.Consumer(
                {
                    **self._config,
                    "group.id": "timely-marks",
                    "enable.auto.commit": False,
                    "enable.partition.eof": True,
                    "isolation.level": "read_committed",
                }
            )
            try:
                consumer.assign([client.TopicPartition(self._sink.marks, 0, client.OFFSET_BEGINNING)])
                return self._last(consumer)
            finally:
                consumer.close()

    def write(self, changes: Sequence[Change], mark: Mark) -> None:
        """Write the messages of some changes and the mark in one transaction."""
        topic, key = self._sink.topic, self._sink.name.encode()
        # Made before the transaction: a row that is refused leaves none open.
        messages = [message for change in changes for message in self._messages(change)]
        with _passing(topic):
            self._producer.begin_transaction()
            for message in messages:
                self._produce(topic, message)
            # To the partition that `mark` reads.
            self._produce(self._sink.marks, (key, json.dumps(mark._asdict()).encode()), 0)
            self._producer.commit_transaction(SECONDS)

    def clear(self) -> None:
        """Raise SessionError, because a topic cannot be emptied."""
        raise SessionError(
            f"topic {self._sink.topic} cannot be emptied: write to another topic, or under another name=..."
        )

    def close(self) -> None:
        """Abort a transaction that is open."""
        with suppress(client.KafkaException):
            self._producer.abort_transaction(1.0)

    def _last(self, consumer: client.Consumer) -> Mark | None:
        end, found = clock.monotonic() + SECONDS, None
        while clock.monotonic() < end:
            message = consumer.poll(0.1)
            if message is None:
                continue
            failed = message.error()
            if failed is not None and failed.code() == client.KafkaError._PARTITION_EOF:
                return found
            if failed is not None:
                raise client.KafkaException(failed)
            key, value = message.key(), message.value()
            if key == self._sink.name.encode() and value is not None:
                found = Mark(**json.loads(value))
        raise StoreError(f"the topic {self._sink.marks} could not be read within {SECONDS:g} s")

    def _make_marks(self) -> None:
        """Make the topic of marks if it does not exist."""
        admin = AdminClient(self._config)
        if self._sink.marks in admin.list_topics(timeout=SECONDS).topics:
            return
        made = admin.create_topics([NewTopic(self._sink.marks, 1, config={"cleanup.policy": "compact"})])
        try:
            made[self._sink.marks].result(SECONDS)
        except client.KafkaException as error:
            if error.args[0].code() != client.KafkaError.TOPIC_ALREADY_EXISTS:
                raise
        except TimeoutError:
            raise StoreError(
                f"the brokers did not make the topic {self._sink.marks} within {SECONDS:g} s: make it as a compacted "
                "topic of one partition, or name another one with marks=..."
            ) from None

    def _produce(self, topic: str, message: Message, partition: int = -1) -> None:
        key, value = message
        while True:
            try:
                self._producer.produce(topic, key=key, value=value, partition=partition)
                return
            except BufferError:  # the queue of librdkafka is full: `poll` gives it time to send
                self._producer.poll(0.1)

    def _messages(self, change: Change) -> Iterator[Message]:
        names, key = change.columns, self._sink.key
        check_names(names, key)
        rows = list(zip(*(as_json(name, column) for name, column in zip(names, change.rows))))
        if not key:
            for row, diff in zip(rows, change.diff.tolist()):
                yield None, as_line({**dict(zip(names, row)), "time": change.time, "diff": diff}).encode()
            return
        after: dict[bytes, bytes | None] = {}
        texts = as_texts(key[0], change.rows[names.index(key[0])])
        for row, diff, text in zip(rows, change.diff.tolist(), texts):
            values = dict(zip(names, row))
            if text is None and len(key) == 1:
                raise DataError(f"column {key[0]!r} has a null, but the key of a message is text")
            named = str(text).encode() if len(key) == 1 else as_line({name: values[name] for name in key}).encode()
            if diff > 1 or (diff > 0 and after.get(named) is not None):
                raise DataError(
                    f"the view has two rows with the key {named.decode()}, but topic {self._sink.topic} has one "
                    "message for each key: name more columns in key=[...]"
                )
            if diff > 0:
                after[named] = as_line({name: value for name, value in values.items() if name not in key}).encode()
            else:
                after.setdefault(named, None)  # the row that replaces a deleted one may come before it
        yield from after.items()


@contextmanager
def _passing(topic: str) -> Iterator[None]:
    """Raise StoreError for an error of Kafka that may pass, and SessionError or DataError for one that does not."""
    try:
        yield
    except client.KafkaException as error:
        reason = error.args[0]
        text = f"topic {topic}: {reason.str()}"
        if reason.code() in _FENCED:
            raise SessionError(f"{text}: another session writes to the sink of this name") from error
        raise (DataError if reason.code() in _REFUSED else StoreError)(text) from error


def kafka(
    servers: str,
    topic: str,
    *,
    key: str | Sequence[str] = (),
    marks: str = "timely-commits",
    config: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> ChangesTopic:
    """Return a sink that writes to a topic of Kafka.

    Each changed row is a message: a JSON object of the row, with the number of the commit (`time`) and the change in
    how often the row occurs (`diff`). With `key`, the topic has the last row of each key instead. `key` names columns
    by which the view has one row for each value: the message's key is one column as a text, or several as a JSON
    object, its value has the other columns, and a message without a value deletes the row. Two rows of one key are
    refused only where one commit adds both: the sink keeps no keys.

    `marks` is the topic that has the number of the last commit for each sink; it is made if it does not exist.
    `config` has further properties of librdkafka. `name` is by default the topic.

    >>> kafka("localhost:9092", "spent", key="customer").name
    'spent'
    """
    keys = (key,) if isinstance(key, str) else tuple(key)
    return ChangesTopic(servers, topic, keys, marks, dict(config or {}), name or topic)
