"""An attacker that writes the bytes of a captured file: each file is an error that names it; nothing is executed."""

from __future__ import annotations

import resource
import struct
import time as clock
import tracemalloc
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from differential import Collection, new_input, replay_into as replay_collection
from differential.capture import CapturedUpdates, Statement
from differential.data.updates import Updates
from timely import Worker, execute_directly, replay_into
from timely.capture import EventFileReader, EventFileWriter
from timely.capture.codec import FRAME, MAX_BODY, PREFIX
from timely.capture.event import Event, Messages, Progress
from timely.communication.plain import PlainPacker
from timely.data.container import Batch
from timely.errors import CaptureError, OperatorError, TimelyError
from timely.order import LIMIT
from timely.progress.antichain import Antichain

END = Progress((((0,), -1),))
ROWS = (np.arange(3),)
HUGE = pytest.param(1 << 40_000, id="huge")
Operator = Callable[[Collection], Collection]


def file_of(path: Path, *events: Event) -> Path:
    """Write a file of events."""
    writer = EventFileWriter(path)
    for event in events:
        writer.push(event)
    writer.close()
    return path


def file_with(path: Path, header: bytes, buffers: bytes = b"") -> Path:
    """Write a file of one event with this header and a correct checksum."""
    body = struct.pack("<Q", len(header)) + header + bytes(-len(header) % 8) + buffers
    body += bytes(-len(body) % 8)
    path.write_bytes(PREFIX + FRAME.pack(len(body) // 8, zlib.crc32(body)) + body)
    return path


def columns(dtype: Any, *buffers: bytes, kind: str = "columns") -> tuple[bytes, bytes]:
    """Return the header and the buffers of a batch described in this way."""
    header = PlainPacker().pack(("messages", (0,), kind, dtype, tuple(map(len, buffers))))
    return header, b"".join(buffer + bytes(-len(buffer) % 8) for buffer in buffers)


def words(*numbers: int) -> bytes:
    return np.array(numbers, np.int64).tobytes()


def refused(path: Path) -> str:
    """Read a file that must be refused; return the error."""
    reader = EventFileReader(path)
    with pytest.raises(CaptureError) as caught:
        list(iter(reader.next_nowait, None))
    reader.close()
    assert str(path) in str(caught.value)
    return str(caught.value)


# Lengths


def test_a_length_beyond_the_end_of_the_file_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "events"
    path.write_bytes(PREFIX + FRAME.pack(MAX_BODY // 8, 0))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert "ends in the middle" in refused(path)
    follower = EventFileReader(path, follow=True)
    assert [follower.next_nowait() for _ in range(100)] == [None] * 100
    follower.close()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 19  # KiB, of 2 ** 21 claimed


def test_a_length_that_no_event_has_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "events"
    path.write_bytes(PREFIX + FRAME.pack((1 << 32) - 1, 0))
    assert "a frame claims" in refused(path)


@pytest.mark.parametrize(
    "header",
    [
        b"\xdd\xff\xff\xff\xff",  # an array
        b"\xdf\xff\xff\xff\xff",  # a map
        b"\xdb\xff\xff\xff\xff",  # text
        b"\xc6\xff\xff\xff\xff",  # bytes
        b"\xc9\xff\xff\xff\xff\x01",  # a tuple
        b"\x91" * 100_000,
        b"\x81" * 100_000,
    ],
)
def test_bombs_in_a_header_are_refused_before_they_take_memory(header: bytes, tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert "malformed event" in refused(file_with(tmp_path / "events", header))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 17


def test_a_tuple_within_tuples_is_refused(tmp_path: Path) -> None:
    header = b"\xc0"
    for _ in range(1000):
        header = b"\xc9" + struct.pack(">I", len(header)) + b"\x01" + header
    assert "nested too deep" in refused(file_with(tmp_path / "events", header))


@pytest.mark.parametrize("record", [b"\x80", b"\x90", b"\xca\0\0\0\1", b"\xc7\1\1\x90", b"\xa1a"])
def test_an_event_takes_memory_in_proportion_to_its_bytes(record: bytes, tmp_path: Path) -> None:
    count = 100_000
    records = b"\xdd" + struct.pack(">I", count) + count * record
    header = b"\x95" + b"".join(map(PlainPacker().pack, ("messages", (0,), "list"))) + records + b"\x90"
    reader = EventFileReader(file_with(tmp_path / "events", header))
    tracemalloc.start()
    try:
        event = reader.next_nowait()
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        reader.close()
    assert isinstance(event, Messages)
    assert len(event.batch) == count
    assert taken < 100 * len(records)


# Columns


@pytest.mark.parametrize(
    ("dtype", "buffers"),
    [
        (["|O"], [words(1)]),
        (["object"], [words(1)]),
        (["<i8,<i8"], [words(1, 1)]),
        (["<i3"], [words(1)]),
        ([">i8"], [words(1)]),
        (["<M8"], [words(1)]),
        (["<c16"], [words(1, 1)]),
        (["|V8"], [words(1)]),
        (["|S0"], [words(1)]),
        (["|S999999999"], [words(1)]),
        (["|S9999999999"], [words(1)]),
        ([["<i8"]], [words(1)]),
        ([None], [words(1)]),
        ("<i8", [words(1)]),
        ({"<i8": 1}, [words(1)]),
    ],
    ids=repr,
)
def test_a_type_that_no_column_has_is_refused(dtype: Any, buffers: list[bytes], tmp_path: Path) -> None:
    assert "malformed event" in refused(file_with(tmp_path / "events", *columns(dtype, *buffers)))


@pytest.mark.parametrize(
    ("dtype", "buffers"),
    [
        (["<i8", "<i8"], [words(1, 2), words(1)]),
        (["<i8"], [b"1234567"]),
        (["<i8"], []),
        (["<i8"], [words(1), words(2)]),
        (["text"], [words(1)]),
        (["text"], [words(5), b"text"]),
        (["text"], [words(3), b"text"]),
        (["text"], [words(-1, 5), b"text"]),
        (["text"], [words(1 << 62, 4), b"text"]),
        (["text"], [words(*[1 << 62] * 4, 4), b"text"]),
        (["text"], [words(5, -1), b"text"]),
        (["text"], [words(), b"text"]),
        (["text"], [words(2, 2), b"\xff\xfe\xfd\xfc"]),
        (["bytes"], [words(-4, 8), b"text"]),
        (["bytes"], [words(9), b"text"]),
        (["<U1"], [b"\xff\xff\xff\xff"]),
        (["<U2"], [b"a\0\0\0\0\0\x11\0"]),
    ],
    ids=repr,
)
def test_lengths_and_contents_that_disagree_are_refused(dtype: Any, buffers: list[bytes], tmp_path: Path) -> None:
    assert "malformed event" in refused(file_with(tmp_path / "events", *columns(dtype, *buffers)))


@pytest.mark.parametrize(
    "buffers",
    [
        [words(0), words(0, 0, 1), words(1, 1, 1)],  # an index beyond the table of times
        [words(0), words(0, 0, -1), words(1, 1, 1)],
        [words(0), words(0, 0, -(1 << 63)), words(1, 1, 1)],
        [words(0), words(0), words(1, 1, 1)],
        [words(0, 1), words(), words(1, 1, 1)],  # which of two times?
        [words(), words(), words(1, 1, 1)],
        [words(0), words(), words(1)],
        [words(-1), words(), words(1, 1, 1)],  # no time of any scope
        [words(LIMIT + 1), words(), words(1, 1, 1)],
        [words(0, -(1 << 63)), words(0, 1, 1), words(1, 1, 1)],
    ],
)
def test_updates_without_their_times_or_diffs_are_refused(buffers: list[bytes], tmp_path: Path) -> None:
    described = columns([["<i8"], 1], *buffers, words(7, 8, 9), kind="updates")
    assert "malformed event" in refused(file_with(tmp_path / "events", *described))


@pytest.mark.parametrize("width", [0, -1, 2, 256, 1 << 62, True, 1.0, None])
def test_times_that_contradict_their_stated_width_are_refused(width: object, tmp_path: Path) -> None:
    described = columns([["<i8"], width], words(0), words(), words(1), words(7), kind="updates")
    assert "malformed event" in refused(file_with(tmp_path / "events", *described))


# Events


@pytest.mark.parametrize("coordinate", [-1, LIMIT + 1, 1 << 63, HUGE, True, 0.0, None, "0"])
@pytest.mark.parametrize("kind", ["messages", "progress", "statement"])
def test_a_time_of_no_scope_is_refused(kind: str, coordinate: object, tmp_path: Path) -> None:
    time = (coordinate,)
    plain = {"messages": time, "progress": ((time, 1),), "statement": (((0,),), (time,), ())}[kind]
    batch = ("list", (), ()) if kind == "messages" else (None, None, ())
    assert "malformed event" in refused(file_with(tmp_path / "events", PlainPacker().pack((kind, plain, *batch))))


@pytest.mark.parametrize("diff", [True, 1.0, None, "1", (1,)])
def test_a_count_that_is_no_integer_is_refused(diff: object, tmp_path: Path) -> None:
    header = PlainPacker().pack(("progress", (((0,), diff),), None, None, ()))
    assert "malformed event" in refused(file_with(tmp_path / "events", header))


def identity(collection: Collection) -> Collection:
    return collection


def least(collection: Collection) -> Collection:
    return collection.map(lambda *row: (row[0], row[0])).min()


def joined(collection: Collection) -> Collection:
    pairs = collection.map(lambda *row: (row[0], row[0]))
    return pairs.join(pairs)


def iterated(collection: Collection) -> Collection:
    return collection.iterate(lambda inner: inner.distinct())


OPERATORS = (identity, Collection.count, Collection.distinct, least, joined, iterated)


def program_of(path: Path, operator: Operator) -> Callable[[Worker], list[Any]]:
    """Return a program that replays a file of a stream of updates into an operator, beside input of its own."""

    def program(worker: Worker) -> list[Any]:
        with worker.dataflow() as scope:
            session, own = new_input(scope)
            replayed = Collection(replay_into(scope, [EventFileReader(path)]))
            output = operator(replayed.concat(own)).output()
        session.insert(ROWS[0])
        session.close()
        end = clock.monotonic() + 20
        worker.step_while(lambda: not output.done() and clock.monotonic() < end)
        assert output.done(), "the run has not ended after 20 s"
        return output.changes()

    return program


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.__name__)
@pytest.mark.parametrize(
    ("times", "index"),
    [([[0, 0]], []), ([[0, 0], [5, 5], [7, 7]], [0, 1, 2]), ([[0], [1]], [0, 1, 1])],
    ids=["wide", "widths", "before"],
)
def test_updates_at_times_of_another_scope_do_not_reach_the_kernels(
    times: list[list[int]], index: list[int], operator: Operator, tmp_path: Path
) -> None:
    updates = Updates(ROWS, np.array(times), np.array(index, np.int64))
    start = (1,) if len(times[0]) == 1 else (0,)
    moved = Progress((((0,), -1), (start, 1))) if start > (0,) else Progress(())
    path = file_of(tmp_path / "events", moved, Messages(start, updates), Progress(((start, -1),)))
    with pytest.raises(OperatorError, match=r"CaptureError: .*events has a batch at .*, with updates at other times"):
        execute_directly(program_of(path, operator))


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.__name__)
@pytest.mark.parametrize(
    "batch",
    [
        Updates.at((0,), (np.array(["a", "b", "c"], np.dtypes.StringDType()),)),
        Updates.at((0,), (np.array([b"a", b"b", b"c"], "S3"),)),
        Updates.at((0,), (np.array([0.5, np.nan, 1.0]),)),
        Updates.at((0,), (np.array([(1 << 64) - 1, 1, 2], np.uint64),)),
        Updates.at((0,), tuple(ROWS[0] << 40 for _ in range(7))),
        Updates.at((0,), ROWS, np.array([(1 << 63) - 1, (1 << 63) - 1, -(1 << 63)])),
        Updates.at((LIMIT,), ROWS),
        [(1, 2)],
    ],
    ids=["text", "bytes", "nan", "large", "wide", "diffs", "late", "list"],
)
def test_unexpected_columns_are_values_or_one_of_our_errors(batch: Batch, operator: Operator, tmp_path: Path) -> None:
    path = file_of(tmp_path / "events", Messages((0,), batch), END)
    with suppress(TimelyError):
        assert execute_directly(program_of(path, operator))


# A captured collection


def collection_of(path: Path) -> Callable[[Worker], list[Any]]:
    """Return a program that replays a captured collection."""

    def program(worker: Worker) -> list[Any]:
        with worker.dataflow() as scope:
            output = replay_collection(scope, [EventFileReader(path)]).count().output()
        end = clock.monotonic() + 20
        worker.step_while(lambda: not output.done() and clock.monotonic() < end)
        assert output.done(), "the run has not ended after 20 s"
        return output.changes()

    return program


def stated(lower: list[Any], upper: list[Any], *counts: Any) -> Statement:
    return Statement(Antichain(lower), Antichain(upper), counts)


@pytest.mark.parametrize(
    "events",
    [
        [CapturedUpdates(Updates.at((0, 0), ROWS)), stated([(0,)], [], ((0,), 3))],
        [CapturedUpdates(Updates.at((0,), ROWS)), stated([(0,)], [], ((0,), 2))],
        [CapturedUpdates(Updates.at((0,), ROWS)), stated([(0,)], [], ((0,), 1 << 62))],
        [CapturedUpdates(Updates.at((0,), ROWS)), stated([(0,)], [], ((0,), -3))],
        [stated([(0,)], [(0, 1)])],
        [stated([(0,)], [(1,)], ((0, 5), 0))],
        [stated([(0,)], [(1,)]), stated([(1,)], [(0,)])],
        [stated([(0,)], [(0,)])],
        [stated([], [])],
        [stated([(0, 0)], [], ((0, 0), 3))],
        [stated([(0, 0)], [(5, 5)]), stated([(0,)], [(5,)])],
        [stated([(0,)], [(5,)]), stated([(0, 0)], [(5, 5)])],
        [CapturedUpdates(Updates.at((0,), ROWS))],
        [END],
    ],
    ids=str,
)
def test_statements_that_make_no_collection_are_an_error(events: list[Event], tmp_path: Path) -> None:
    path = file_of(tmp_path / "events", *events)
    with pytest.raises(OperatorError, match="CaptureError"):
        execute_directly(collection_of(path))


# Errors

MANY = (0,) * 50_000


@pytest.mark.parametrize(
    "header",
    [
        ("x" * 1_000_000, None, None, None, ()),
        ("messages", "x" * 1_000_000, "list", (), ()),
        ("messages", (0,), "\x1b" * 1_000_000, (), ()),
        ("messages", (0,), "columns", ["x" * 1_000_000], (0,)),
        ("progress", (((*MANY, -1), 1),), None, None, ()),
    ],
    ids=["kind", "time", "batch", "type", "coordinates"],
)
def test_an_error_shows_little_of_what_it_refuses(header: Any, tmp_path: Path) -> None:
    error = refused(file_with(tmp_path / "events", PlainPacker().pack(header)))
    assert len(error) < 2000
    assert error.isprintable()


@pytest.mark.parametrize(
    "events",
    [
        [Progress(((MANY, 1),))],
        [Messages(MANY, [1])],
        [stated([MANY], [])],
        [stated([(0,)], [(50_000,)], *(((time,), 1) for time in range(50_000)), ((60_000,), 1))],
        [stated([(1,)], [(9,)], *(((1,), 1),) * 50_000), stated([(1,)], [(8,)], *(((1,), 1),) * 50_000)],
        [stated([(0,)], [(9,)], *(((1,), 1),) * 50_000), stated([(0,)], [(8,)], *(((1,), 2),) * 50_000)],
    ],
    ids=["progress", "messages", "statement", "beyond", "waiting", "contradictory"],
)
def test_an_error_of_a_replay_shows_little_of_what_it_refuses(events: list[Event], tmp_path: Path) -> None:
    path = file_of(tmp_path / "events", *events)
    program = collection_of(path) if isinstance(events[0], Statement) else program_of(path, identity)
    with pytest.raises(OperatorError, match="CaptureError") as caught:
        execute_directly(program)
    assert len(str(caught.value)) < 3000
