"""Measure a graph algorithm: the initial answer, then single changes, then a thousand changes at a time.

The latency of a round is the time from inserting its changes until the answer's probe has passed. The updates of the
answer are only kept meanwhile, and added up outside the measured time to a fingerprint: the sum of a hash of each
record, times the number of its occurrences. It must equal the fingerprint of the answer that NumPy or SciPy computes
from scratch, after the initial graph and at the end. With several workers, each loads a part of the graph, and the
first one makes the changes; the times are those of the first worker.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import timely
from benchmarks.graphs import ChangingGraph, Ints, RandomGraph, mixed
from benchmarks.harness import PEAK, WARM_UP, Case, Figures, check
from benchmarks.residence import forget_peak, have_at_hand, peak
from differential import Collection, Updates, new_input
from timely import Worker, execute, execute_directly

Definition = Callable[[Collection], Collection]
FromScratch = Callable[[Ints, Ints, int], tuple[Ints, ...]]

INITIAL = "initial s"
SINGLE_MEDIAN = "1 change, median us"
SINGLE_P99 = "1 change, p99 us"
SINGLE_MEAN = "1 change, mean us"
BATCH = "1000 changes, us each"
SCIPY = "SciPy from scratch s"
BATCH_SIZE = 1000
WARM_UP_NODES = 2_000
BYTES_PER_EDGE = 1500
MOST_AT_HAND = 2 << 30
"""Upper bounds of the memory that most answers about a graph take: for each edge, and in total."""


class Fingerprint:
    """A number for a multiset of records, to which changes can be added."""

    def __init__(self) -> None:
        self.sum = 0
        self.records = 0

    def add(self, columns: tuple[NDArray[Any], ...], diffs: Ints) -> None:
        """Add `diffs` to the occurrences of the rows of the columns."""
        hashes = np.zeros(len(diffs), np.uint64)
        for column in columns:
            hashes = mixed(hashes * np.uint64(31) + column.astype(np.uint64) + np.uint64(1))
        self.sum = (self.sum + int((hashes * diffs.astype(np.uint64)).sum())) % (1 << 64)
        self.records += int(diffs.sum())

    def __str__(self) -> str:
        return f"{self.records} records, {self.sum:016x}"


class Session:
    """A dataflow that maintains an answer about a graph, and the number of its changes. All workers use one alike."""

    def __init__(self, worker: Worker, definition: Definition, graph: ChangingGraph) -> None:
        self._worker = worker
        self._graph = graph
        self._kept: list[Updates] = []
        self.fingerprint = Fingerprint()
        """The fingerprint of the part of the answer on this worker."""
        self.changes_made = 0
        with worker.dataflow() as scope:
            self._edges, edges = new_input(scope, name="edges")
            answer = definition(edges).stream.inspect_batch(self._keep)
            self._probe = answer.probe()

    def load(self) -> float:
        """Insert the initial edges; return the seconds until the answer is final."""
        index, peers = self._worker.index, self._worker.peers
        rows = len(self._graph.initial[0])
        part = slice(rows * index // peers, rows * (index + 1) // peers)
        begun = clock.perf_counter()
        self._edges.insert(*(column[part] for column in self._graph.initial))
        return self._seconds(begun)

    def change(self, count: int) -> float:
        """Make the next changes in one epoch; return the seconds until the answer is final."""
        changes = self._next(count)
        begun = clock.perf_counter()
        self._update(changes)
        return self._seconds(begun)

    def change_each(self, rounds: int) -> float:
        """Make one change in each of several epochs, without waiting between them; return the seconds, including
        those of inserting."""
        changes = [self._next(1) for _ in range(rounds)]
        begun = clock.perf_counter()
        for change in changes[:-1]:
            self._update(change)
            self._edges.advance_to(self._edges.epoch + 1)
        self._update(changes[-1])
        return self._seconds(begun)

    def close(self) -> None:
        """Complete the dataflow."""
        self._edges.close()
        self._worker.step_while(lambda: not self._probe.done())

    def _next(self, count: int) -> tuple[Ints, Ints, Ints]:
        changes = self._graph.changes(self.changes_made, count)
        self.changes_made += count
        return changes

    def _update(self, changes: tuple[Ints, Ints, Ints]) -> None:
        if not self._worker.index:
            source, target, diffs = changes
            self._edges.update(source, target, diff=diffs)

    def _keep(self, _: object, batch: Any) -> None:
        self._kept.append(batch)

    def _seconds(self, begun: float) -> float:
        """Wait until the answer for what was inserted is final; return the seconds since `begun`."""
        self._edges.advance_to(self._edges.epoch + 1)
        self._worker.step_while(lambda: self._probe.less_than(self._edges.time))
        seconds = clock.perf_counter() - begun
        for updates in self._kept:
            self.fingerprint.add(updates.columns, updates.each_diff())
        self._kept.clear()
        return seconds


def measure(
    definition: Definition,
    from_scratch: FromScratch,
    graph: ChangingGraph,
    singles: int,
    batches: int,
    at_hand: int | None = None,
) -> Figures:
    """Return the figures of an algorithm on a graph. Raises `WrongAnswer` if an answer is wrong.

    `at_hand` is how many bytes of memory to touch beforehand, if more is needed than for most answers.
    """
    small = _small(graph)
    seconds = execute(lambda worker: warm_up(worker, definition, small))[0]
    have_at_hand(_most(graph) if at_hand is None else at_hand)
    figures = execute(lambda worker: _program(worker, definition, from_scratch, graph, singles, batches))[0]
    return {WARM_UP: seconds} | figures


def cases_apart(workload: str) -> list[Case]:
    """Return the cases for `measure_apart`."""
    sizes = (("100k/1M", 100_000, 1_000_000), ("1M/10M", 1_000_000, 10_000_000))
    return [
        Case(
            f"{workload} {size}, 2 processes apart",
            workload,
            {"nodes": nodes, "edges": edges, "apart": True},
            processes=2,
            quick=False,
        )
        for size, nodes, edges in sizes
    ]


def measure_apart(definition: Definition, from_scratch: FromScratch, nodes: int, edges: int) -> Figures:
    """Return how long the initial answer takes if each process has a graph of its own, with its share of the size.

    No process waits for another or sends it anything: this is the most that a second process can gain on this machine.
    """
    processes = execute(lambda worker: worker.peers)[0]
    graph = RandomGraph(nodes // processes, edges // processes)
    seconds = execute_directly(lambda worker: warm_up(worker, definition, _small(graph)))
    have_at_hand(_most(graph))
    execute(lambda worker: None)  # all processes have met, so they start together
    return {WARM_UP: seconds} | execute_directly(lambda worker: _program(worker, definition, from_scratch, graph, 0, 0))


def _most(graph: ChangingGraph) -> int:
    """Return an upper bound of the bytes that most answers about the graph take."""
    return min(BYTES_PER_EDGE * len(graph.initial[0]), MOST_AT_HAND)


def _small(graph: ChangingGraph) -> int:
    """Return the number of nodes of the graph used for warming up before `graph` is measured."""
    return min(WARM_UP_NODES, graph.nodes // 5)


def _program(
    worker: Worker,
    definition: Definition,
    from_scratch: FromScratch,
    graph: ChangingGraph,
    singles: int,
    batches: int,
) -> Figures:
    before = forget_peak()
    session = Session(worker, definition, graph)
    figures = {INITIAL: session.load()}
    initial = session.fingerprint.sum, session.fingerprint.records
    latencies = [1e6 * session.change(1) for _ in range(singles)]
    if latencies:
        figures[SINGLE_MEDIAN], figures[SINGLE_P99] = map(float, np.percentile(latencies, (50, 99)))
        figures[SINGLE_MEAN] = float(np.mean(latencies))
    if batches:
        figures[BATCH] = float(np.median([1e6 * session.change(BATCH_SIZE) / BATCH_SIZE for _ in range(batches)]))
    figures[PEAK] = (peak() - before) / len(graph.initial[0])
    session.close()
    for part, changes in ((initial, 0), ((session.fingerprint.sum, session.fingerprint.records), session.changes_made)):
        whole = total(worker, part)
        if not worker.index:
            seconds = compare(whole, from_scratch, graph, changes)
            figures.setdefault(SCIPY, seconds)
    return figures


def warm_up(worker: Worker, definition: Definition, nodes: int = WARM_UP_NODES) -> float:
    """Do everything once on a small graph, so that all code is compiled and loaded; return the seconds."""
    begun = clock.perf_counter()
    session = settled(worker, definition, RandomGraph(nodes, 5 * nodes), changes=3)
    session.change(BATCH_SIZE)
    session.close()
    return clock.perf_counter() - begun


def settled(worker: Worker, definition: Definition, graph: ChangingGraph, changes: int = 100) -> Session:
    """Return a session that has loaded its graph and made that many single changes."""
    session = Session(worker, definition, graph)
    session.load()
    for _ in range(changes):
        session.change(1)
    return session


def total(worker: Worker, part: tuple[int, int]) -> Fingerprint:
    """Return the fingerprint that all workers have together; each gives the sum of its hashes and its record count."""
    parts: list[tuple[int, ...]] = []
    with worker.dataflow("total") as scope:
        session, stream = timely.new_input(scope)
        stream.broadcast().inspect(parts.append)
    low = (1 << 32) - 1
    session.send(part[0] >> 32, part[0] & low, part[1])
    session.close()
    worker.step_while(lambda: len(parts) < worker.peers)
    whole = Fingerprint()
    whole.sum = sum((high << 32) + low for high, low, _ in parts) % (1 << 64)
    whole.records = sum(records for *_, records in parts)
    return whole


def compare(found: Fingerprint, from_scratch: FromScratch, graph: ChangingGraph, changes: int) -> float:
    """Compare with the answer from scratch after that many changes; return the seconds that it took."""
    source, target = graph.after(changes)
    begun = clock.perf_counter()
    columns = from_scratch(source, target, graph.nodes)
    seconds = clock.perf_counter() - begun
    expected = Fingerprint()
    expected.add(columns, np.ones(len(columns[0]), np.int64))
    check(str(found) == str(expected), f"wrong after {changes} changes: {found}, from scratch {expected}")
    check(expected.records > 0, "the answer is empty: nothing was checked")
    return seconds
