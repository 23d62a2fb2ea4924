"""What it costs that the log could be listened to, and what it costs when somebody does.

The same work is done in four ways, round after round in one process, each round beginning with another: with what the
log needs taken out of the scheduling loop; as it is, with nobody listening; with a listener for activations; with one
for everything. Work is a number of barriers, or of changes to a graph whose distances are kept and of taking these
changes back. Time is that of the thread, so that other processes disturb it less. The ratios are to the first way: the
median, over the rounds, of the ratios within a round. (Left in the first way: a comparison with None for each batch
that a trace takes in or makes.)
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from heapq import heappush
from typing import Any

import numpy as np

from benchmarks import barrier, bfs
from benchmarks.graphs import RandomGraph
from benchmarks.harness import Case, Figures, check
from benchmarks.incremental import Fingerprint
from differential import new_input
from differential.events import TRACES
from timely import Worker, events, execute_directly
from timely.dataflow.dataflow import Dataflow
from timely.logging import Log

WITHOUT, NOBODY, ACTIVATIONS, EVERYTHING = "without hooks", "nobody listens", "activations", "everything"
WAYS: dict[str, tuple[Any, ...] | None] = {
    WITHOUT: None,
    NOBODY: (),
    ACTIVATIONS: events.SCHEDULE,
    EVERYTHING: (
        *events.BUILT,
        *events.SCHEDULE,
        *events.INLINE,
        *events.MESSAGES,
        *events.PROGRESS,
        *events.CAPABILITIES,
        *TRACES,
        events.FrontierChanged,
        events.StateResized,
        events.Parked,
        events.Unparked,
    ),
}
LIMITS = {f"{NOBODY}, ratio": 1.02}

CASES = [
    Case("logging barrier", "logging", {"work": "barrier", "rounds": 100, "size": 1000}, limits=LIMITS),
    Case("logging bfs 100k/1M", "logging", {"work": "bfs", "rounds": 100, "size": 10}, limits=LIMITS),
]


def measure(work: str, rounds: int, size: int) -> Figures:
    """Return microseconds a barrier, or a change, in each way, and the ratios."""
    spent = _barriers(rounds, size) if work == "barrier" else _changes(rounds, size)
    figures = {f"{way}, us": float(np.median(seconds)) * 1e6 / size for way, seconds in spent.items()}
    without = np.array(spent[WITHOUT])
    for way, seconds in spent.items():
        if way != WITHOUT:
            figures[f"{way}, ratio"] = float(np.median(np.array(seconds) / without))
    return figures


def _barriers(rounds: int, size: int) -> dict[str, list[float]]:
    def run(_: int, way: str) -> float:
        def program(worker: Worker) -> float:
            with listening(worker.log, way):
                begun = clock.thread_time()
                marks = barrier._program(worker, size)
                seconds = clock.thread_time() - begun
            check(len(marks) == size, f"{len(marks)} notifications")
            return seconds

        return execute_directly(program)

    return _in_turn(rounds, run)


def _changes(rounds: int, size: int) -> dict[str, list[float]]:
    graph = RandomGraph(100_000, 1_000_000)

    def program(worker: Worker) -> dict[str, list[float]]:
        kept: list[Any] = []
        with worker.dataflow() as scope:
            edges, stream = new_input(scope, name="edges")
            probe = bfs.definition(stream).stream.inspect_batch(lambda _, batch: kept.append(batch)).probe()

        def go_on() -> None:
            edges.advance_to(edges.epoch + 1)
            worker.step_while(lambda: probe.less_than(edges.time))

        def answer() -> str:
            for updates in kept:
                fingerprint.add(updates.columns, updates.each_diff())
            kept.clear()
            return str(fingerprint)

        edges.insert(*graph.initial)
        go_on()
        fingerprint = Fingerprint()
        before = answer()

        def run(number: int, way: str) -> float:
            with listening(worker.log, way):
                begun = clock.thread_time()
                for change in range(number * size, (number + 1) * size):
                    source, target, diffs = graph.changes(change, 1)
                    edges.update(source, target, diff=diffs)
                    go_on()
                    edges.update(source, target, diff=-diffs)
                    go_on()
                return (clock.thread_time() - begun) / 2

        spent = _in_turn(rounds, run)
        check(answer() == before, "changes taken back left the answer changed")
        edges.close()
        return spent

    return execute_directly(program)


def _in_turn(rounds: int, run: Callable[[int, str], float]) -> dict[str, list[float]]:
    """Return the seconds of each round of each way; the first rounds, in which things are loaded, are left out."""
    spent: dict[str, list[float]] = {way: [] for way in WAYS}
    ways = list(WAYS)
    for number in range(rounds):
        for place in range(len(ways)):
            way = ways[(number + place) % len(ways)]
            spent[way].append(run(number, way))
    return {way: seconds[rounds // 20 :] for way, seconds in spent.items()}


@contextmanager
def listening(log: Log, way: str) -> Iterator[None]:
    """Do it in one of the ways."""
    kinds = WAYS[way]
    if kinds is None:
        hooks = Worker._step, Dataflow._propagate
        Worker._step, Dataflow._propagate = _step, _propagate  # type: ignore[method-assign]
        try:
            yield
        finally:
            Worker._step, Dataflow._propagate = hooks  # type: ignore[method-assign]
        return
    stop = log.listen(lambda _: None, *kinds)
    try:
        yield
    finally:
        stop()


def _step(self: Worker) -> bool:
    """`Worker._step` as it would be without a log and reports. (No timers are set here, nor looked for.)"""
    busy = self.take_in()
    while self._requests:
        self._requests.popleft()()
        busy = True
    for dataflow in tuple(self._dataflows.values()):
        if dataflow.index not in self._dataflows:
            continue
        if dataflow.step():
            busy = True
        if dataflow.is_complete:
            self.drop_dataflow(dataflow)
            busy = True
    return busy


def _propagate(self: Dataflow) -> None:
    """`Dataflow._propagate` and `_notify` in one, which only a log has apart. (Nobody follows frontiers here.)"""
    assert not self._followers
    listeners = self._listeners
    for location in self.tracker.propagate():
        for operator in listeners[location]:
            if operator.waits and not operator.active:
                operator.active = True
                heappush(self._ready, operator.rank)
