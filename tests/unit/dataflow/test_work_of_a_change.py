"""What one change costs the tracker, and which Python objects it makes and leaves: counts, without a clock.

`tests/unit/kernels/test_calls_of_a_change.py` counts what it costs operators and kernels.
"""

from __future__ import annotations

import functools
import gc
import statistics
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

from benchmarks import bfs, degrees
from benchmarks.graphs import RandomGraph
from differential import Collection, new_input
from differential.graphs import weakly_connected_components
from differential.kernels import compile as kernels
from timely import Config, Worker, execute
from timely.progress.reachability import Tracker
from timely.worker.garbage import paused

pytestmark = pytest.mark.skipif(kernels._IS_INTERPRETED, reason="kernels make Python objects if they are interpreted")

Definition = Callable[[Collection], Collection]
CHANGES = 100
DEFINITIONS: list[Definition] = [degrees.distribution, bfs.definition, weakly_connected_components]


class Changes:
    """A dataflow that maintains an answer about a graph and keeps nothing of it, and the changes of the graph."""

    def __init__(self, worker: Worker, definition: Definition) -> None:
        self._worker = worker
        self._graph = RandomGraph(200, 1_000)
        with worker.dataflow() as scope:
            self._edges, edges = new_input(scope)
            self._probe = definition(edges).probe()
        self.tracker = scope.dataflow.tracker
        self._made = 0
        self._edges.insert(*self._graph.initial)
        self.make()

    def make(self, count: int = CHANGES) -> None:
        """Make changes, each in an epoch of its own whose answer is final before the next one begins."""
        for _ in range(count):
            source, target, diffs = self._graph.changes(self._made, 1)
            self._made += 1
            self._edges.update(source, target, diff=diffs)
            self._edges.advance_to(self._made)
            self._worker.step_while(lambda: self._probe.less_than(self._made))

    def close(self) -> None:
        self._edges.close()
        self._worker.step_while(lambda: not self._probe.done())


def run(definition: Definition, measure: Callable[[Changes], Any], *, general: bool = False) -> Any:
    """Return what `measure` returns for a lone worker, in regions or by the tracker alone."""

    def program(worker: Worker) -> Any:
        changes = Changes(worker, definition)
        result = measure(changes)
        changes.close()
        return result

    return execute(program, Config(general=general))[0]


@contextmanager
def uncollected() -> Iterator[None]:
    """Collect garbage before the block instead of in it."""
    while gc.collect():  # what has a finaliser leaves garbage behind
        pass
    with paused():
        yield


def blocks() -> int:
    """Return how many blocks of memory all Python objects have, without those that wait for reuse."""
    gc.collect()
    return sys.getallocatedblocks()


def cycles(changes: Changes) -> int:
    """Return how many objects in cycles there are after a hundred changes."""
    with uncollected():
        changes.make()
        return gc.collect()


class Cost(NamedTuple):
    """What a hundred changes cost, and what they leave."""

    propagations: int
    growth: int
    """Blocks of memory, of five hundred changes."""
    garbage: int
    """Objects in cycles."""
    peaks: list[int]


@functools.cache
def cost(which: int, general: bool) -> Cost:
    def measure(changes: Changes) -> Cost:
        before = changes.tracker.revision
        changes.make()
        propagations = changes.tracker.revision - before
        garbage = min(cycles(changes) for _ in range(3))  # threads of earlier tests may leave some, too, once
        held = blocks()
        changes.make(5 * CHANGES)
        return Cost(propagations, blocks() - held, garbage, peaks(changes))

    return run(DEFINITIONS[which], measure, general=general)


def peaks(changes: Changes) -> list[int]:
    """Return the most bytes that there are at once during each of some changes, beyond those before it."""
    found = []
    tracemalloc.start()
    try:
        for _ in range(CHANGES):
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            changes.make(1)
            found.append(tracemalloc.get_traced_memory()[1] - before)
    finally:
        tracemalloc.stop()
    return found


each = pytest.mark.parametrize("which", range(len(DEFINITIONS)), ids=["degrees", "bfs", "wcc"])
both_ways = pytest.mark.parametrize(
    "general", [False, pytest.param(True, marks=pytest.mark.lengthy)], ids=["regions", "general"]
)
PROPAGATIONS = {True: [3.0, 5.3, 5.4], False: [2.0, 2.0, 2.0]}
UPDATES = {True: [11.8, 23.0, 34.5], False: [4.0, 4.0, 4.0]}
"""The most there may be for a change of each definition, by the tracker alone and in regions."""
BYTES = [5_000, 8_000, 9_000]


@pytest.mark.composed
@both_ways
@each
def test_the_tracker_propagates_a_few_times_for_a_change(which: int, general: bool) -> None:
    assert cost(which, general).propagations / CHANGES <= PROPAGATIONS[general][which]


@pytest.mark.composed
@pytest.mark.interpreted
@both_ways
@each
def test_the_tracker_absorbs_few_updates_of_pointstamps_for_a_change(
    which: int, general: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    absorbed = 0
    absorb = Tracker._absorb

    def counting(tracker: Tracker) -> None:
        nonlocal absorbed
        absorbed += len(tracker._buffer)
        absorb(tracker)

    monkeypatch.setattr(Tracker, "_absorb", counting)

    def measure(changes: Changes) -> int:
        before = absorbed
        changes.make()
        return absorbed - before

    assert run(DEFINITIONS[which], measure, general=general) / CHANGES <= UPDATES[general][which]


@both_ways
@each
def test_changes_leave_no_objects(which: int, general: bool) -> None:
    """Some hundred objects more or less are batches of the traces, whose number goes up and down."""
    assert cost(which, general).growth < 4 * CHANGES


@both_ways
@each
def test_changes_leave_no_cycles_for_the_garbage_collector(which: int, general: bool) -> None:
    assert cost(which, general).garbage == 0


@both_ways
@each
def test_a_change_takes_few_bytes(which: int, general: bool) -> None:
    """Half of the changes take at most so many; others merge batches."""
    assert statistics.median(cost(which, general).peaks) <= BYTES[which]
