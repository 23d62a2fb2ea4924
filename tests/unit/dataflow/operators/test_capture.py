"""A capture is replayed at its times and with its frontier, on any number of workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.counted import comparisons, counted
from timely import Antichain, Config, Time, Worker, execute, execute_directly, new_input, replay_into
from timely.capture import (
    EventFileReader,
    EventFileWriter,
    EventQueue,
    EventSink,
    EventSocketReader,
    EventSocketWriter,
    EventSource,
    extract,
)
from timely.capture.event import Event, Messages, Progress
from timely.data.container import records
from timely.dataflow.operators.capture import difference
from timely.errors import OperatorError

Ends = tuple[list[EventSink], list[EventSource]]
EPOCHS = 4


def in_memory(number: int, directory: Path) -> Ends:
    queues = [EventQueue() for _ in range(number)]
    return [*queues], [*queues]


def in_files(number: int, directory: Path) -> Ends:
    paths = [directory / f"{worker}.events" for worker in range(number)]
    return [EventFileWriter(path) for path in paths], [EventFileReader(path) for path in paths]


def over_sockets(number: int, directory: Path) -> Ends:
    readers = [EventSocketReader(("127.0.0.1", 0)) for _ in range(number)]
    return [EventSocketWriter(reader.listen()) for reader in readers], [*readers]


def capture(sinks: list[EventSink]) -> None:
    """Capture, on one worker for each sink, `EPOCHS` epochs of a few numbers and words."""

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = new_input(scope)
            stream.exchange().capture_into(sinks[worker.index])
        for epoch in range(EPOCHS):
            numbers.send(np.arange(10 * epoch, 10 * epoch + 3) + worker.index, np.array(["a", "b", "c"]))
            numbers.advance_to(epoch + 1)
            worker.step()

    execute(program, Config(workers=len(sinks)))


def replayed(sources: list[EventSource], workers: int) -> list[tuple[Time, Any]]:
    """Replay on this many workers; return every (time, record) of all of them."""

    def program(worker: Worker) -> list[tuple[Time, Any]]:
        found: list[tuple[Time, Any]] = []
        with worker.dataflow() as scope:
            stream = replay_into(scope, sources)
            stream.inspect_batch(lambda time, batch: found.extend((time, record) for record in records(batch)))
            probe = stream.probe()
        worker.step_while(lambda: not probe.done())
        return found

    return sorted(each for found in execute(program, Config(workers=workers)) for each in found)


@pytest.mark.parametrize("ends", [in_memory, in_files, over_sockets])
@pytest.mark.parametrize(("writers", "readers"), [(1, 1), (1, 3), (3, 2), (2, 3)])
def test_a_capture_can_be_replayed_on_another_number_of_workers(
    ends: Callable[[int, Path], Ends], writers: int, readers: int, tmp_path: Path
) -> None:
    sinks, sources = ends(writers, tmp_path)
    capture(sinks)
    assert replayed(sources, readers) == sorted(
        ((epoch,), (10 * epoch + place + worker, letter))
        for epoch in range(EPOCHS)
        for worker in range(writers)
        for place, letter in enumerate("abc")
    )


def test_the_frontier_of_a_replay_is_the_recorded_one() -> None:
    queue, other = EventQueue(), EventQueue()
    seen: list[list[Time]] = []

    def program(worker: Worker) -> None:
        with worker.dataflow(outer=2) as scope:
            probe = replay_into(scope, [queue, other]).probe()
        for source, changes in [
            (queue, (((0, 0), -1), ((0, 5), 1), ((1, 0), 1))),
            (other, (((0, 0), -1), ((0, 7), 1))),
            (queue, (((0, 5), -1),)),
            (other, (((0, 7), -1),)),
            (queue, (((1, 0), -1),)),
        ]:
            source.push(Progress(changes))
            before = probe.frontier if seen else None
            for _ in range(200):
                worker.step_or_park(0.01)
                if probe.frontier != before and before is not None:
                    break
            seen.append(list(probe.frontier))

    execute_directly(program)
    assert seen == [[(0, 0)], [(0, 5), (1, 0)], [(0, 7), (1, 0)], [(1, 0)], []]


def test_a_wide_frontier_is_captured_in_a_pass_over_it() -> None:
    size = 1000
    before = Antichain.of_minimal(tuple([counted(place, size - place) for place in range(size)]))
    after = Antichain.of_minimal(tuple([counted(place, size - place) for place in range(1, size)]))
    found: list[tuple[Time, int]] = []
    assert comparisons(lambda: found.extend(difference(before, after))) <= 10 * size
    assert found == [((0, size), -1)]


def test_a_source_that_ends_too_early_is_named() -> None:
    queue = EventQueue([Messages((0,), [1])])
    queue.close()
    with pytest.raises(OperatorError, match="ended before its stream was complete, at the frontier"):
        replayed([queue], 1)


def test_a_message_before_the_recorded_frontier_is_refused() -> None:
    queue = EventQueue([Progress((((0,), -1), ((2,), 1))), Messages((1,), [1])])
    with pytest.raises(OperatorError, match=r"a message at \(1,\), before its frontier Antichain\(\[\(2,\)\]\)"):
        replayed([queue], 1)


@pytest.mark.parametrize("between", [0, 100])
@pytest.mark.parametrize("changes", [(((2,), -1), ((1,), 1)), (((1,), 1),)])
def test_a_frontier_that_goes_back_is_refused_in_one_activation_and_in_several(
    changes: Sequence[tuple[Time, int]], between: int
) -> None:
    forward = [Progress((((0,), -1), ((2,), 1)))] + [Progress(()) for _ in range(between)]
    back = [Progress(tuple(changes)), Messages((1,), ["late"]), Progress((((1,), -1),)), Progress((((2,), -1),))]
    with pytest.raises(OperatorError, match=r"goes back from the frontier Antichain\(\[\(2,\)\]\) to .*\(1,\)"):
        replayed([EventQueue([*forward, *back])], 1)


def test_a_frontier_that_gains_a_time_beside_those_it_has_is_refused() -> None:
    moves = [Progress((((0, 0), -1), ((1, 3), 1))), Progress((((3, 1), 1),))]

    def program(worker: Worker) -> None:
        with worker.dataflow(outer=2) as scope:
            probe = replay_into(scope, [EventQueue(moves)]).probe()
        worker.step_while(lambda: not probe.done())

    with pytest.raises(OperatorError, match=r"goes back from the frontier Antichain\(\[\(1, 3\)\]\) to"):
        execute_directly(program)


@pytest.mark.parametrize("kind", ["file", "socket"])
def test_a_sink_that_the_end_of_another_dataflow_has_closed_is_refused(kind: str, tmp_path: Path) -> None:
    def program(worker: Worker) -> None:
        for _ in range(2):
            with worker.dataflow() as scope:
                scope.to_stream([7]).capture_into(sink)
            worker.complete()

    with closing(EventSocketReader(("127.0.0.1", 0))) as reader:
        sink = EventFileWriter(tmp_path / "0.events") if kind == "file" else EventSocketWriter(reader.listen())
        with pytest.raises(OperatorError, match=r"'capture' failed .* was closed: give each capture a sink of its own"):
            execute_directly(program)


def test_events_after_the_end_of_a_stream_are_refused(tmp_path: Path) -> None:
    end = Progress((((0,), -1),))
    with pytest.raises(OperatorError, match=r"Messages\(\(0,\), \[2\]\) follows the end of its stream"):
        replayed([EventQueue([Messages((0,), [1]), end, Messages((0,), [2]), end])], 1)
    for name in ("a", "b"):
        with closing(EventFileWriter(tmp_path / name)) as writer:
            writer.push(Messages((0,), [1]))
            writer.push(end)
    whole = (tmp_path / "a").read_bytes()
    (tmp_path / "both").write_bytes(whole + (tmp_path / "b").read_bytes())
    with pytest.raises(OperatorError, match=rf"both, byte {len(whole)}: another capture begins here"):
        replayed([EventFileReader(tmp_path / "both")], 1)


@pytest.mark.parametrize(
    "event", [Messages((0, 3), [1]), Progress((((0, 0), -1),)), Progress((((0,), -1), ((1, 0), 1)))]
)
def test_times_of_another_number_of_coordinates_are_refused(event: Event) -> None:
    with pytest.raises(
        OperatorError,
        match=r"'replay' failed .* has times of 2 coordinate\(s\), such as \([01], [03]\); those here have 1",
    ):
        replayed([EventQueue([event])], 1)


def test_progress_that_removes_more_than_there_was_is_refused() -> None:
    with pytest.raises(OperatorError, match=r"EventQueue.* takes \(3,\) away more often than it was there"):
        replayed([EventQueue([Progress((((3,), -1),))])], 1)
    with pytest.raises(OperatorError, match=r"takes \(0,\) away more often"):
        replayed([EventQueue([Progress((((0,), -2),))])], 1)


def test_extract_sorts_by_time_and_record() -> None:
    queue = EventQueue()
    capture([queue])
    assert [time for time, _ in extract(queue)] == [(epoch,) for epoch in range(EPOCHS)]


def test_extract_leaves_records_without_an_order_as_they_arrived() -> None:
    unlike = [{"b": 2}, None, 1]
    queue = EventQueue([Messages((1,), unlike), Messages((0,), [2, 1]), Messages((1,), [None])])
    assert extract(queue) == [((0,), [1, 2]), ((1,), [*unlike, None])]
    arrays = [np.arange(2), np.arange(2) - 1]
    (found,) = extract(EventQueue([Messages((0,), arrays)]))
    assert all(map(np.array_equal, found.records, arrays))


def test_a_worker_without_sources_replays_nothing() -> None:
    queue = EventQueue([Messages((0,), [1]), Progress((((0,), -1),))])
    assert replayed([queue], 3) == [((0,), 1)]
