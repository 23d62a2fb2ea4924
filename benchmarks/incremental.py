"""Measure a graph algorithm: the initial answer, then changes one by one, then a thousand at a time.

The latency of a round is the time from handing its changes over until the answer's probe has passed. What the answer
changes by is only kept meanwhile, and added up outside the measured time to a fingerprint: the sum of a hash of each
record, times how often it occurs. The same of the answer that NumPy or SciPy gives from scratch must be equal, after
the initial graph and at the end. Runs on one worker.
"""

from __future__ import annotations

import resource
import time as clock
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.graphs import ChangingGraph, Ints, RandomGraph, mixed
from benchmarks.harness import PEAK, WARM_UP, Figures, check
from differential import Collection, Updates, new_input
from timely import Worker, execute_directly

Definition = Callable[[Collection], Collection]
FromScratch = Callable[[Ints, Ints, int], tuple[Ints, ...]]

INITIAL = "initial s"
SINGLE_MEDIAN = "1 change, median us"
SINGLE_P99 = "1 change, p99 us"
BATCH = "1000 changes, us each"
SCIPY = "SciPy from scratch s"
BATCH_SIZE = 1000


class Fingerprint:
    """A number for a multiset of records, to which changes can be added."""

    def __init__(self) -> None:
        self._sum = 0
        self.records = 0

    def add(self, columns: tuple[NDArray[Any], ...], diffs: Ints) -> None:
        """Let each row of the columns occur so many times more."""
        hashes = np.zeros(len(diffs), np.uint64)
        for column in columns:
            hashes = mixed(hashes * np.uint64(31) + column.astype(np.uint64) + np.uint64(1))
        self._sum = (self._sum + int((hashes * diffs.astype(np.uint64)).sum())) % (1 << 64)
        self.records += int(diffs.sum())

    def __str__(self) -> str:
        return f"{self.records} records, {self._sum:016x}"


class Session:
    """A dataflow that keeps an answer about a graph, and the graph's changes so far."""

    def __init__(self, worker: Worker, definition: Definition, graph: ChangingGraph) -> None:
        self._worker = worker
        self._graph = graph
        self._kept: list[Updates] = []
        self.fingerprint = Fingerprint()
        self.changes_made = 0
        with worker.dataflow() as scope:
            self._edges, edges = new_input(scope, name="edges")
            answer = definition(edges).stream.inspect_batch(self._keep)
            self._probe = answer.probe()

    def load(self) -> float:
        """Insert the initial edges; return the seconds until the answer is there."""
        self._edges.insert(*self._graph.initial)
        return self._seconds()

    def change(self, count: int) -> float:
        """Make the next changes, in one epoch; return the seconds until the answer has followed."""
        source, target, diffs = self._graph.changes(self.changes_made, count)
        self._edges.update(source, target, diff=diffs)
        self.changes_made += count
        return self._seconds()

    def change_each(self, rounds: int) -> float:
        """Make as many changes, each in an epoch of its own, all handed over at once; return the seconds, of handing
        over, too."""
        begun = clock.perf_counter()
        for _ in range(rounds - 1):
            source, target, diffs = self._graph.changes(self.changes_made, 1)
            self._edges.update(source, target, diff=diffs)
            self._edges.advance_to(self._edges.epoch + 1)
            self.changes_made += 1
        return clock.perf_counter() - begun + self.change(1)

    def close(self) -> None:
        """Let the dataflow end."""
        self._edges.close()
        self._worker.step_while(lambda: not self._probe.done())

    def _keep(self, _: object, batch: Any) -> None:
        self._kept.append(batch)

    def _seconds(self) -> float:
        begun = clock.perf_counter()
        self._edges.advance_to(self._edges.epoch + 1)
        self._worker.step_while(lambda: self._probe.less_than(self._edges.time))
        seconds = clock.perf_counter() - begun
        for updates in self._kept:
            self.fingerprint.add(updates.columns, updates.each_diff())
        self._kept.clear()
        return seconds


def measure(
    definition: Definition, from_scratch: FromScratch, graph: ChangingGraph, singles: int, batches: int
) -> Figures:
    """Return the figures of an algorithm on a graph. Raises `WrongAnswer` where an answer is wrong."""
    return execute_directly(lambda worker: _program(worker, definition, from_scratch, graph, singles, batches))


def _program(
    worker: Worker,
    definition: Definition,
    from_scratch: FromScratch,
    graph: ChangingGraph,
    singles: int,
    batches: int,
) -> Figures:
    figures = {WARM_UP: _warm_up(worker, definition)}
    before = forget_peak()
    session = Session(worker, definition, graph)
    figures[INITIAL] = session.load()
    initial = str(session.fingerprint)
    latencies = [1e6 * session.change(1) for _ in range(singles)]
    if latencies:
        figures[SINGLE_MEDIAN], figures[SINGLE_P99] = map(float, np.percentile(latencies, (50, 99)))
    if batches:
        figures[BATCH] = float(np.median([1e6 * session.change(BATCH_SIZE) / BATCH_SIZE for _ in range(batches)]))
    figures[PEAK] = (peak() - before) / len(graph.initial[0])
    session.close()
    figures[SCIPY] = _compare(initial, from_scratch, graph, 0)
    _compare(str(session.fingerprint), from_scratch, graph, session.changes_made)
    return figures


def _warm_up(worker: Worker, definition: Definition) -> float:
    """Do everything once on a small graph, so that what has to be compiled or loaded is; return the seconds."""
    begun = clock.perf_counter()
    session = Session(worker, definition, RandomGraph(2_000, 10_000))
    session.load()
    for _ in range(3):
        session.change(1)
    session.change(BATCH_SIZE)
    session.close()
    return clock.perf_counter() - begun


def _compare(fingerprint: str, from_scratch: FromScratch, graph: ChangingGraph, changes: int) -> float:
    """Compare with the answer from scratch after that many changes; return the seconds that one took."""
    source, target = graph.after(changes)
    begun = clock.perf_counter()
    columns = from_scratch(source, target, graph.nodes)
    seconds = clock.perf_counter() - begun
    expected = Fingerprint()
    expected.add(columns, np.ones(len(columns[0]), np.int64))
    check(fingerprint == str(expected), f"wrong after {changes} changes: {fingerprint}, from scratch {expected}")
    check(expected.records > 0, "the answer is empty: nothing was checked")
    return seconds


def forget_peak() -> int:
    """Start to measure the peak of resident memory anew where the system lets us; return what is resident now."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return _status("VmRSS")


def peak() -> int:
    """Return the most bytes that were resident."""
    try:
        return _status("VmHWM")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    raise OSError(f"no {name}")
