"""Files of events: followed while they are written, resumed after a crash, and refused with the position of damage."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.unit.capture.events import EVENTS, EXPECTED, Unknown, read
from timely.capture import EventFileReader, EventFileWriter
from timely.capture.codec import encode
from timely.errors import CaptureError


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


def test_a_resumed_writer_truncates_a_partial_event_and_continues(tmp_path: Path) -> None:
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


def test_an_event_without_meaning_is_named_by_its_position(tmp_path: Path) -> None:
    path = tmp_path / "events"
    written(path)
    whole = path.read_bytes()
    path.write_bytes(whole + b"".join(encode(Unknown())))
    reader = EventFileReader(path)
    for _ in range(2):
        with pytest.raises(CaptureError, match=f"byte {len(whole)}: malformed event: .*unknown"):
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


def test_a_followed_file_is_read_on_when_a_writer_resumes_it(tmp_path: Path) -> None:
    path = tmp_path / "events"
    ends = written(path)
    whole = path.read_bytes()
    for length in range(ends[0], len(whole)):
        path.write_bytes(whole[:length])
        reader = EventFileReader(path, follow=True)
        found = read(reader)
        writer = EventFileWriter(path, resume=True)
        for _ in range(2):
            writer.push(EVENTS[0])
        writer.close()
        assert found + read(reader) == [
            *EXPECTED[: sum(end <= length for end in ends[1:])],
            *EXPECTED[:1],
            *EXPECTED[:1],
        ]
        reader.close()


def test_a_file_is_not_overwritten(tmp_path: Path) -> None:
    written(tmp_path / "events")
    with pytest.raises(CaptureError, match="already exists"):
        EventFileWriter(tmp_path / "events")


def test_a_file_that_is_missing_or_of_another_kind_is_named(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match=r"nothing.*No such file"):
        EventFileReader(tmp_path / "nothing").next_nowait()
    (tmp_path / "text").write_text("to be or not to be")
    reader = EventFileReader(tmp_path / "text")
    with pytest.raises(CaptureError, match=r"text, byte 0: not a file of captured events"):
        reader.next_nowait()
    reader.close()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="writes to /dev/full")
def test_a_full_disk_is_named_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "events"
    writer = EventFileWriter(path)
    os.dup2(os.open("/dev/full", os.O_WRONLY), writer._file.fileno())
    writer.push(EVENTS[0])
    for attempt in (writer.flush, writer.close):
        with pytest.raises(CaptureError, match="events cannot be written: No space left on device"):
            attempt()
