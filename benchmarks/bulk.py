"""Bulk work: arrange, join and count many rows at once, on one worker.

Arrange: random (key, value) rows become one arrangement. Join: a second arrangement of as many rows is filled and
joined with the first. The figure is the time beyond that of arranging the first; the results are only counted, and
their rate is for arranging and joining together. Count: the number of rows by key.

A program that runs for long uses memory that it used before, and one that has just started gets new memory from the
system: the cases in fresh memory measure what a user sees first.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.graphs import RandomGraph
from benchmarks.harness import WARM_UP, Case, Figures, check
from benchmarks.residence import forget_peak, have_at_hand, peak
from differential import new_input
from timely import Worker, execute_directly

ARRANGE, JOIN, COUNT = "arrange s", "join, without arranging, s", "count by key s"
RESULTS, PEAK = "results of the join/s", "peak bytes/row"
BYTES_PER_ROW = 200
"""An upper bound of the memory for each row."""

CASES = [
    Case("bulk 1M rows, 100k keys", "bulk", {"rows": 1_000_000, "keys": 100_000}),
    Case("bulk 1M rows, fresh memory", "bulk", {"rows": 1_000_000, "keys": 100_000, "fresh": True}),
    Case(
        "bulk 10M rows, 1M keys",
        "bulk",
        {"rows": 10_000_000, "keys": 1_000_000},
        quick=False,
        limits={ARRANGE: 0.88, JOIN: 1.55, COUNT: 1.08},
    ),
    Case("bulk 10M rows, fresh memory", "bulk", {"rows": 10_000_000, "keys": 1_000_000, "fresh": True}, quick=False),
]


def measure(rows: int, keys: int, fresh: bool = False) -> Figures:
    """Return the figures for that many rows and keys on each side, in memory used before or in `fresh` memory."""
    return execute_directly(lambda worker: _program(worker, rows, keys, fresh))


def _program(worker: Worker, rows: int, keys: int, fresh: bool) -> Figures:
    begun = clock.perf_counter()
    _run(worker, 20_000, 2_000)
    figures = {WARM_UP: clock.perf_counter() - begun}
    if not fresh:
        have_at_hand(BYTES_PER_ROW * rows)
    before = forget_peak()
    figures |= _run(worker, rows, keys)
    figures[PEAK] = (peak() - before) / (2 * rows)
    return figures


def _run(worker: Worker, rows: int, keys: int) -> Figures:
    graph = RandomGraph(keys, 2 * rows)
    source, target = graph.initial
    left, right = (source[:rows], target[:rows]), (source[rows:], target[rows:])
    counted, kept = [0], list[Any]()

    def tally(_: Any, batch: Any) -> None:
        counted[0] += len(batch) if not len(batch.diffs) else int(batch.diffs.sum())

    with worker.dataflow("join") as scope:
        first, ours = new_input(scope)
        second, theirs = new_input(scope)
        joined = ours.join_map(theirs, lambda key, our, their: their).stream.inspect_batch(tally).probe()
    with worker.dataflow("count") as scope:
        third, rows_by_key = new_input(scope)
        counts = rows_by_key.count().stream.inspect_batch(lambda _, batch: kept.append(batch)).probe()

    def seconds(change: Callable[[], None], behind: Callable[[], bool]) -> float:
        begun = clock.perf_counter()
        change()
        worker.step_while(behind)
        return clock.perf_counter() - begun

    def fill(session: Any, columns: Any, other: Any) -> None:
        session.insert(*columns)
        session.advance_to(session.epoch + 1)
        other.advance_to(session.epoch)

    arrange = seconds(lambda: fill(first, left, second), lambda: joined.less_than(first.time))
    both = seconds(lambda: fill(second, right, first), lambda: joined.less_than(first.time))
    expected = np.bincount(left[0], minlength=keys)
    results = int(expected @ np.bincount(right[0], minlength=keys))
    check(counted[0] == results, f"{counted[0]} results of the join, not {results}")
    count = seconds(lambda: fill(third, left, third), lambda: counts.less_than(third.time))
    found = np.zeros(keys, np.int64)
    for batch in kept:
        found[batch.columns[0]] += batch.columns[1]
    check(bool((found == expected).all()), "the counts are wrong")
    for session in (first, second, third):
        session.close()
    worker.step_while(lambda: not (joined.done() and counts.done()))
    return {ARRANGE: arrange, JOIN: both - arrange, RESULTS: counted[0] / both, COUNT: count}
