"""Files of events: followed while they are written, resumed after a crash, and refused with the place of damage."""

from __future__ import annotations

import socket
from pathlib import Path

import numpy as np
import pytest

from timely import EventFileReader, EventFileWriter, EventSocketReader, EventSocketWriter
from timely.captured import EventSource, Messages
from timely.communication.event_codec import PREFIX, encode
from timely.container import Columns, records
from timely.errors import CaptureError, TransportError

EVENTS = [Messages((epoch,), Columns((np.arange(5) + epoch,))) for epoch in range(3)]


def written(path: Path) -> list[int]:
    """Write `EVENTS`; return where the file ended before and after each."""
    with_prefix = EventFileWriter(path)
    with_prefix.flush()
    ends = [path.stat().st_size]
    for event in EVENTS:
        with_prefix.push(event)
        with_prefix.flush()
        ends.append(path.stat().st_size)
    with_prefix.close()
    return ends


def read(source: EventSource) -> list[object]:
    found = []
    while (event := source.next_nowait()) is not None:
        assert isinstance(event, Messages)
        found.append((event.time, list(records(event.batch))))
    return found


EXPECTED = [(event.time, list(records(event.batch))) for event in EVENTS]


def test_a_file_cut_off_anywhere_is_refused_unless_between_events(tmp_path: Path) -> None:
    path = tmp_path / "events"
    ends = written(path)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        reader = EventFileReader(path)
        if length in ends:
            assert read(reader) == EXPECTED[: ends.index(length)]
            assert reader.exhausted
        else:
            start = max((end for end in ends if end < length), default=0)
            with pytest.raises(CaptureError, match=rf"events, byte {start}: the file ends in the middle"):
                read(reader)
            reader.close()


def test_a_resumed_writer_cuts_off_what_is_not_whole_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "events"
    ends = written(path)
    whole = path.read_bytes()
    for length in (0, 3, ends[0], ends[1] + 1, ends[2] + 20, ends[3]):
        path.write_bytes(whole[:length])
        kept = sum(end <= length for end in ends[1:])
        writer = EventFileWriter(path, resume=True)
        for event in EVENTS[kept:]:
            writer.push(event)
        writer.close()
        assert path.read_bytes() == whole


def test_every_damaged_byte_is_found(tmp_path: Path) -> None:
    path = tmp_path / "events"
    written(path)
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x40]) + whole[place + 1 :])
        reader = EventFileReader(path)
        with pytest.raises(CaptureError, match="events, byte"):
            read(reader)
        reader.close()


def test_a_followed_file_is_read_as_it_grows(tmp_path: Path) -> None:
    path = tmp_path / "events"
    reader = EventFileReader(path, follow=True)
    assert reader.next_nowait() is None
    ends = written(path)
    whole = path.read_bytes()
    found: list[object] = []
    for length in range(0, len(whole) + 1, 7):
        path.write_bytes(whole[:length])
        found += read(reader)
        assert found == EXPECTED[: sum(end <= length for end in ends[1:])]
    path.write_bytes(whole)
    assert found + read(reader) == EXPECTED
    assert not reader.exhausted
    reader.close()


def test_a_file_is_not_overwritten(tmp_path: Path) -> None:
    written(tmp_path / "events")
    with pytest.raises(CaptureError, match="exists already"):
        EventFileWriter(tmp_path / "events")


def test_a_file_that_is_not_there_or_another_kind_is_named(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match=r"nothing.*No such file"):
        EventFileReader(tmp_path / "nothing").next_nowait()
    (tmp_path / "text").write_text("to be or not to be")
    reader = EventFileReader(tmp_path / "text")
    with pytest.raises(CaptureError, match=r"text, byte 0: not a file of captured events"):
        reader.next_nowait()
    reader.close()


def test_a_connection_that_ends_in_an_event_is_refused() -> None:
    reader = EventSocketReader(("127.0.0.1", 0))
    with socket.create_connection(reader.listen()) as connection:
        connection.sendall((PREFIX + b"".join(encode(EVENTS[0])))[:-1])
    with pytest.raises(CaptureError, match="in the middle of an event, after 8 bytes"):
        read(reader)
    reader.close()


def test_only_loopback_addresses_are_taken() -> None:
    with pytest.raises(TransportError, match="not a loopback address"):
        EventSocketReader(("0.0.0.0", 0))
    with pytest.raises(TransportError, match="not a loopback address"):
        EventSocketWriter(("example.org", 80))


def test_a_writer_says_that_nobody_listens() -> None:
    with socket.socket() as silent:  # it keeps the port from everybody
        silent.bind(("127.0.0.1", 0))
        with pytest.raises(TransportError, match="nobody listens"):
            EventSocketWriter(silent.getsockname(), timeout=0.2)


def test_a_second_writer_is_told_that_nobody_listens_and_the_first_is_read_to_its_end() -> None:
    reader = EventSocketReader(("127.0.0.1", 0))
    first = EventSocketWriter(reader.listen())
    first.push(EVENTS[0])
    first.flush()
    while reader.next_nowait() is None:
        pass
    with pytest.raises(TransportError, match="nobody listens"):
        EventSocketWriter(reader.address, timeout=0.2)
    first.push(EVENTS[1])
    first.close()
    found = []
    while not reader.exhausted:
        found += read(reader)
    assert found == [EXPECTED[1]]
