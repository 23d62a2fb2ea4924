"""Events over a connection: reading never blocks, and a broken connection is reported."""

from __future__ import annotations

import socket
import struct
import time as real_clock
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.capture.events import EVENTS, EXPECTED, Unknown, read
from tests.unit.communication.networks import has_newer_addresses, together
from timely.capture import EventSocketReader, EventSocketWriter, socket as event_socket
from timely.capture.codec import FRAME, PREFIX, encode
from timely.errors import BuildError, CaptureError, TransportError


class Clock:
    """A clock that only sleep advances, and that is not read all the time."""

    def __init__(self) -> None:
        self.now = 100.0
        self._looks = 0

    def monotonic(self) -> float:
        self._looks += 1
        assert self._looks < 1000
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(event_socket, "clock", made)
    return made


def read_to_the_end(reader: EventSocketReader) -> list[object]:
    """Return all events up to the end, within 20 s."""
    found: list[object] = []
    end = real_clock.monotonic() + 20
    while not reader.exhausted:
        assert real_clock.monotonic() < end, f"after {found} nothing more comes, and no end"
        found += read(reader)
    return found


def test_a_reader_listens_when_first_read_and_never_waits() -> None:
    reader = EventSocketReader(("127.0.0.1", 0))
    found: list[object] = []

    def look() -> None:
        found.extend(read(reader))

    assert together([look]) == [None]
    writer = EventSocketWriter(reader.address)
    assert together([look]) == [None]
    writer.push(EVENTS[0])
    assert together([look]) == [None]
    assert found == []
    writer.close()
    assert read_to_the_end(reader) == EXPECTED[:1]


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("localhost", "127.0.0.1"),
        pytest.param("::1", "[::1]", marks=pytest.mark.skipif(not has_newer_addresses(), reason="there is no ::1")),
    ],
)
def test_every_loopback_address_can_be_listened_at(host: str, shown: str) -> None:
    reader = EventSocketReader((host, 0))
    address = reader.listen()
    assert address == reader.address == reader.listen()
    assert str(reader) == f"the connection at {shown}:{address[1]}"
    assert address[1] > 0
    writer = EventSocketWriter(address)
    writer.push(EVENTS[0])
    writer.close()
    assert read_to_the_end(reader) == EXPECTED[:1]


@pytest.mark.parametrize("pieces", [1, 3, 1000])
def test_events_are_decoded_however_their_bytes_arrive(pieces: int) -> None:
    data = PREFIX + b"".join(piece for event in EVENTS for piece in encode(event))
    size = -(-len(data) // pieces)
    reader = EventSocketReader(("127.0.0.1", 0))
    found = []
    with socket.create_connection(reader.listen()) as connection:
        for start in range(0, len(data), size):
            connection.sendall(data[start : start + size])
            found += read(reader)
    found += read_to_the_end(reader)
    assert found == EXPECTED
    assert reader.offset == len(data)


def test_a_closed_reader_reads_nothing_more() -> None:
    reader = EventSocketReader(("127.0.0.1", 0))
    writer = EventSocketWriter(reader.listen())
    writer.push(EVENTS[0])
    writer.flush()
    reader.close()
    reader.close()
    assert reader.exhausted
    assert reader.next_nowait() is None
    writer.close()


def test_a_connection_without_events_ends_without_an_error() -> None:
    reader = EventSocketReader(("127.0.0.1", 0))
    EventSocketWriter(reader.listen()).close()
    assert read_to_the_end(reader) == []
    assert reader.offset == len(PREFIX)


def test_a_connection_that_ends_without_a_byte_is_refused() -> None:
    reader = EventSocketReader(("127.0.0.1", 0))
    socket.create_connection(reader.listen()).close()
    with pytest.raises(CaptureError, match="in the middle of an event, after 0 bytes"):
        read_to_the_end(reader)
    reader.close()


@pytest.mark.parametrize("sent", [b"GET / HTTP/1.1", b"tdx", PREFIX[:-1] + b"\xff"])
def test_bytes_of_another_protocol_are_refused(sent: bytes) -> None:
    reader = EventSocketReader(("127.0.0.1", 0))
    with socket.create_connection(reader.listen()) as connection:
        connection.sendall(sent)
        with pytest.raises(CaptureError, match="byte 0: not a stream of captured events"):
            read_to_the_end(reader)
    reader.close()


def test_a_damaged_event_is_named_by_its_position() -> None:
    first, second = (b"".join(encode(event)) for event in EVENTS[:2])
    reader = EventSocketReader(("127.0.0.1", 0))
    with socket.create_connection(reader.listen()) as connection:
        connection.sendall(PREFIX + first + second[:-1] + bytes([second[-1] ^ 1]))
        with pytest.raises(CaptureError, match=f"byte {len(PREFIX) + len(first)}: the checksum"):
            read_to_the_end(reader)
    reader.close()


def test_an_event_without_meaning_is_named_by_its_position() -> None:
    first = b"".join(encode(EVENTS[0]))
    reader = EventSocketReader(("127.0.0.1", 0))
    with socket.create_connection(reader.listen()) as connection:
        connection.sendall(PREFIX + first + b"".join(encode(Unknown())))
        for _ in range(2):
            with pytest.raises(CaptureError, match=f"byte {len(PREFIX) + len(first)}: malformed event: .*unknown"):
                read_to_the_end(reader)
    reader.close()


def test_an_impossible_length_is_refused_before_more_bytes_arrive() -> None:
    reader = EventSocketReader(("127.0.0.1", 0))
    with socket.create_connection(reader.listen()) as connection:
        connection.sendall(PREFIX + FRAME.pack(0, 0))
    with pytest.raises(CaptureError, match="byte 8: a frame claims 0 bytes"):
        read_to_the_end(reader)
    reader.close()


def test_a_connection_that_breaks_is_reported_on_both_sides() -> None:
    reader = EventSocketReader(("127.0.0.1", 0))
    connection = socket.create_connection(reader.listen())
    connection.sendall(PREFIX)
    assert read(reader) == []
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()  # without a farewell
    with pytest.raises(TransportError, match="broke after 8 bytes"):
        read_to_the_end(reader)
    reader.close()

    reader = EventSocketReader(("127.0.0.1", 0))
    writer = EventSocketWriter(reader.listen())
    writer.flush()
    assert read(reader) == []
    reader.close()

    def write() -> None:
        for _ in range(1000):
            writer.push(EVENTS[0])
            writer.flush()

    with pytest.raises(TransportError, match=r"events cannot be sent to 127\.0\.0\.1:"):
        write()
    writer.push(EVENTS[0])
    with pytest.raises(TransportError, match=r"events cannot be sent to 127\.0\.0\.1:"):
        writer.flush()
    writer.close()  # nothing is left to be sent, or to close
    writer.close()


def test_a_writer_tries_twenty_times_a_second_and_no_longer_than_asked(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[tuple[float, float]] = []

    def refuse(address: Any, timeout: float) -> None:
        tried.append((round(clock.now - 100, 3), round(timeout, 3)))
        raise ConnectionRefusedError("nobody")

    monkeypatch.setattr(socket, "create_connection", refuse)
    with pytest.raises(TransportError, match=r"nobody listens for events at 127\.0\.0\.1:9: nobody"):
        EventSocketWriter(("127.0.0.1", 9), timeout=0.22)
    assert tried == [(0, 0.22), (0.05, 0.17), (0.1, 0.12), (0.15, 0.1), (0.2, 0.1), (0.25, 0.1)]
    tried.clear()
    with pytest.raises(TransportError, match="nobody listens"):
        EventSocketWriter(("127.0.0.1", 9), timeout=0)
    assert tried == [(0.25, 0.1)]


def test_a_writer_that_connected_late_waits_as_long_as_asked_when_it_sends(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    timeouts: list[float] = []

    def connect(address: Any, timeout: float) -> Any:
        if clock.now < 103:
            raise ConnectionRefusedError("nobody yet")
        ends = {"getsockname": lambda: ("127.0.0.1", 40_000), "getpeername": lambda: address}
        return SimpleNamespace(settimeout=timeouts.append, **ends)

    monkeypatch.setattr(socket, "create_connection", connect)
    EventSocketWriter(("127.0.0.1", 9), timeout=4.0)
    assert timeouts == [4.0]


def test_a_connection_that_ends_in_an_event_is_refused() -> None:
    reader = EventSocketReader(("127.0.0.1", 0))
    with socket.create_connection(reader.listen()) as connection:
        connection.sendall((PREFIX + b"".join(encode(EVENTS[0])))[:-1])
    with pytest.raises(CaptureError, match="in the middle of an event, after 8 bytes"):
        read(reader)
    reader.close()


def test_only_loopback_addresses_are_accepted() -> None:
    with pytest.raises(TransportError, match="not a loopback address"):
        EventSocketReader(("0.0.0.0", 0))
    with pytest.raises(TransportError, match="not a loopback address"):
        EventSocketWriter(("example.org", 80))


@pytest.mark.parametrize("kind", [EventSocketReader, EventSocketWriter])
@pytest.mark.parametrize(
    "address",
    ["127.0.0.1:5555", "localhost", None, ("localhost", "x"), ("localhost", 99999), ("localhost", -1), ("localhost",)],
)
def test_an_address_is_a_host_and_a_port(kind: Any, address: Any) -> None:
    with pytest.raises(BuildError, match=r"^an address is \(host, port\), .* 65535, not ") as refused:
        kind(address)
    assert str(refused.value).endswith(repr(address))


def test_a_writer_needs_the_port_of_its_reader() -> None:
    with pytest.raises(BuildError, match=r"such as that which `EventSocketReader.listen\(\)` returns"):
        EventSocketWriter(("127.0.0.1", 0))


def test_a_writer_reports_a_missing_listener() -> None:
    with socket.socket() as silent:  # so that no other process takes the port
        silent.bind(("127.0.0.1", 0))
        with pytest.raises(TransportError, match="nobody listens"):
            EventSocketWriter(silent.getsockname(), timeout=0.2)


def test_a_writer_that_is_connected_to_itself_has_no_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system may choose the port that a socket connects to as its own."""

    def connect(address: Any, timeout: float) -> socket.socket:
        connection = socket.socket()
        connection.bind(("127.0.0.1", 0))
        connection.connect(connection.getsockname())
        return connection

    monkeypatch.setattr(socket, "create_connection", connect)
    with pytest.raises(TransportError, match="nobody listens for events at 127"):
        EventSocketWriter(("127.0.0.1", 40_000), timeout=0.1)


def test_a_second_writer_is_refused_and_the_first_is_read_to_the_end() -> None:
    reader = EventSocketReader(("127.0.0.1", 0))
    first = EventSocketWriter(reader.listen())
    first.push(EVENTS[0])
    first.flush()
    found: list[object] = []
    end = real_clock.monotonic() + 20
    while not found:
        assert real_clock.monotonic() < end
        found += read(reader)
    with pytest.raises(TransportError, match="nobody listens"):
        EventSocketWriter(reader.address, timeout=0.2)
    first.push(EVENTS[1])
    first.close()
    assert found + read_to_the_end(reader) == EXPECTED[:2]
