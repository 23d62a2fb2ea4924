"""A broker of Kafka for consumers, over loopback, whose topics have transactions that are open, committed or aborted.

librdkafka's own cluster shows what aborted transactions wrote. This broker keeps the log of a partition as Kafka does:
the messages of a transaction, and at its end a control record that takes an offset, too. A fetch returns the messages
before the last stable offset, aborted ones among them, and the list of aborted transactions by which a consumer leaves
them out. Only the requests that a consumer without a group makes are answered.
"""

from __future__ import annotations

import socketserver
import struct
import threading
import time as clock
from collections.abc import Sequence
from typing import NamedTuple

FETCH, LIST_OFFSETS, METADATA, API_VERSIONS = 1, 2, 3, 18
VERSIONS = ((0, 3, 3), (FETCH, 4, 4), (LIST_OFFSETS, 2, 2), (METADATA, 1, 1), (API_VERSIONS, 0, 0))
"""The requests of consumers, and of those who produce (not answered, but librdkafka looks for it), with versions."""
TRANSACTIONAL, CONTROL = 0x10, 0x20
READ_COMMITTED, BEGINNING, UNSUPPORTED_VERSION, OUT_OF_RANGE = 1, -2, 35, 1
Message = tuple[bytes | None, bytes | None]


class Records(NamedTuple):
    """A batch of the log."""

    offset: int
    producer: int
    messages: tuple[Message, ...]
    attributes: int = TRANSACTIONAL

    @property
    def end(self) -> int:
        """The offset after it."""
        return self.offset + len(self.messages)

    def encoded(self) -> bytes:
        """Return the bytes of a batch of format 2."""
        records = b"".join(_record(at, message) for at, message in enumerate(self.messages))
        last = len(self.messages) - 1
        tail = struct.pack("!hiqqqhii", self.attributes, last, 0, 0, self.producer, 0, -1, last + 1) + records
        return struct.pack("!qiibI", self.offset, len(tail) + 9, 0, 2, 0) + tail


class Log:
    """A partition."""

    def __init__(self) -> None:
        self.start = 0
        """The first offset that is kept."""
        self._batches: list[Records] = []
        self._open: dict[int, int] = {}
        """The first offsets of the transactions that are not over, by producer."""
        self._aborted: list[tuple[int, int, int]] = []
        """The producers of aborted transactions, their first offsets, and those of their control records."""

    @property
    def end(self) -> int:
        """The offset of the next message."""
        return self._batches[-1].end if self._batches else 0

    @property
    def stable(self) -> int:
        """The last stable offset: all transactions that begin before it are over."""
        return min(self._open.values(), default=self.end)

    def write(self, producer: int, *messages: Message) -> None:
        """Add messages to the transaction of a producer, which begins with the first ones."""
        self._open.setdefault(producer, self.end)
        self._batches.append(Records(self.end, producer, messages))

    def finish(self, producer: int, *, is_committed: bool) -> None:
        """End a transaction by a control record."""
        first = self._open.pop(producer)
        if not is_committed:
            self._aborted.append((producer, first, self.end))
        control = struct.pack("!hh", 0, is_committed), struct.pack("!hi", 0, 0)
        self._batches.append(Records(self.end, producer, (control,), TRANSACTIONAL | CONTROL))

    def fetch(self, offset: int, isolation: int) -> bytes:
        """Return the answer about this partition, without its number."""
        end = self.stable if isolation == READ_COMMITTED else self.end
        error = 0 if self.start <= offset <= self.end else OUT_OF_RANGE
        found = [each for each in self._batches if each.end > max(offset, self.start) and each.offset < end]
        aborted = [(who, first) for who, first, last in self._aborted if last >= offset and first < end]
        data = b"" if error else b"".join(each.encoded() for each in found)
        answer = struct.pack("!hqq", error, self.end, self.stable)
        if isolation == READ_COMMITTED:
            answer += _array([struct.pack("!qq", *each) for each in sorted(aborted, key=lambda each: each[1])])
        else:
            answer += struct.pack("!i", -1)
        return answer + struct.pack("!i", len(data)) + data


class Broker(socketserver.ThreadingTCPServer):
    """Serves logs by topic, of one partition each, until it is closed."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.logs: dict[str, Log] = {}
        self.host, self.port = "127.0.0.1", int(self.server_address[1])
        self.servers = f"{self.host}:{self.port}"
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        """Stop to accept connections."""
        self.shutdown()
        self.server_close()


class _Connection(socketserver.StreamRequestHandler):
    server: Broker

    def handle(self) -> None:
        try:
            while length := self.rfile.read(4):
                self._answer(_Reader(self.rfile.read(struct.unpack("!i", length)[0])))
        except (ConnectionError, struct.error):
            pass  # the consumer has left

    def _answer(self, request: _Reader) -> None:
        kind, version, number = request.take("!hhi")
        request.text()
        answers = {FETCH: self._fetch, LIST_OFFSETS: self._list_offsets, METADATA: self._metadata}
        if kind == API_VERSIONS:
            error = UNSUPPORTED_VERSION if version else 0
            answer = struct.pack("!h", error) + _array([struct.pack("!hhh", *each) for each in VERSIONS])
        else:
            answer = answers[kind](request)
        self.wfile.write(struct.pack("!ii", len(answer) + 4, number) + answer)
        self.wfile.flush()

    def _metadata(self, request: _Reader) -> bytes:
        brokers = _array([struct.pack("!i", 1) + _text(self.server.host) + struct.pack("!ih", self.server.port, -1)])
        partition = struct.pack("!hii", 0, 0, 1) + _array([struct.pack("!i", 1)]) * 2
        topics = [
            struct.pack("!h", 0) + _text(topic) + b"\0" + _array([partition]) for topic in tuple(self.server.logs)
        ]
        return brokers + struct.pack("!i", 1) + _array(topics)

    def _list_offsets(self, request: _Reader) -> bytes:
        _, isolation = request.take("!ib")
        topics = []
        for _ in range(request.take("!i")[0]):
            topic, count = request.text(), request.take("!i")[0]
            for _ in range(count):
                partition, time = request.take("!iq")
                log = self.server.logs[topic]
                offset = log.start if time == BEGINNING else log.stable if isolation else log.end
                topics.append(_text(topic) + _array([struct.pack("!ihqq", partition, 0, -1, offset)]))
        return struct.pack("!i", 0) + _array(topics)

    def _fetch(self, request: _Reader) -> bytes:
        _, wait, _, _, isolation = request.take("!iiiib")
        topics, is_empty = [], True
        for _ in range(request.take("!i")[0]):
            topic, count = request.text(), request.take("!i")[0]
            for _ in range(count):
                partition, offset, _ = request.take("!iqi")
                found = self.server.logs[topic].fetch(offset, isolation)
                is_empty = is_empty and found.endswith(struct.pack("!i", 0))
                topics.append(_text(topic) + _array([struct.pack("!i", partition) + found]))
        if is_empty:
            clock.sleep(min(wait, 20) / 1000)
        return struct.pack("!i", 0) + _array(topics)


class _Reader:
    """The fields of a request."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, form: str) -> tuple[int, ...]:
        """Return the next fields."""
        self._at += struct.calcsize(form)
        return struct.unpack_from(form, self._data, self._at - struct.calcsize(form))

    def text(self) -> str:
        """Return the next text; of one that is absent, the empty text."""
        length = max(self.take("!h")[0], 0)
        self._at += length
        return self._data[self._at - length : self._at].decode()


def _array(items: Sequence[bytes]) -> bytes:
    return struct.pack("!i", len(items)) + b"".join(items)


def _text(value: str) -> bytes:
    return struct.pack("!h", len(value)) + value.encode()


def _record(at: int, message: Message) -> bytes:
    body = b"\0" + _varint(0) + _varint(at)
    for part in message:
        body += _varint(-1) if part is None else _varint(len(part)) + part
    body += _varint(0)
    return _varint(len(body)) + body


def _varint(value: int) -> bytes:
    value, data = (value << 1) ^ (value >> 63), b""
    while value > 0x7F:
        data += bytes([value & 0x7F | 0x80])
        value >>= 7
    return data + bytes([value])
