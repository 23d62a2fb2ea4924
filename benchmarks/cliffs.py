"""Latency without cliffs: percentiles over many successive changes of large indexes.

The merging of an index's layers is spread over the changes that make it necessary, so no change waits for a whole
merge. The figures are percentiles of the latency under sustained load, for single changes and for a thousand at a time.
"""

from __future__ import annotations

import time as clock

import numpy as np

from benchmarks.graphs import Ints, RandomGraph
from benchmarks.harness import WARM_UP, Case, Figures
from benchmarks.incremental import BATCH_SIZE, Definition, FromScratch, compare, settled
from differential import Collection
from timely import Worker, execute_directly


def degrees(edges: Collection) -> Collection:
    """Return (node, outgoing edges)."""
    return edges.count()


def lines(edges: Collection) -> Collection:
    """Return (a, c) for all edges (a, b), (b, c) with a below 10: few results, and edges indexed both ways."""
    starts = edges.filter(lambda source, target: source < 10).map(lambda source, target: (target, source))
    return starts.join_map(edges, lambda middle, start, end: (start, end))


def sums(edges: Collection) -> Collection:
    """Return (last digit of the source, sum of the targets): ten groups, however many edges there are."""
    return edges.map(lambda source, target: (source % 10, target)).sum()


def tops(edges: Collection) -> Collection:
    """Return, for each last digit of the source, the ten edges with the largest targets, whose codes have no order."""
    halves = edges.map(lambda source, target: (source % 10, target / 2, source))
    return halves.top_k(10).map(lambda digit, half, source: (digit, (2 * half).astype(np.int64), source))


def counted_degrees(source: Ints, target: Ints, nodes: int) -> tuple[Ints, Ints]:
    """Return `degrees`, counted by NumPy."""
    numbers = np.bincount(source, minlength=nodes)
    present = np.flatnonzero(numbers)
    return present, numbers[present]


def listed_lines(source: Ints, target: Ints, nodes: int) -> tuple[Ints, Ints]:
    """Return `lines`, listed by NumPy."""
    order = np.argsort(source, kind="stable")
    first = np.searchsorted(source[order], np.arange(nodes + 1))
    starts, middles = source[source < 10], target[source < 10]
    ends = [target[order[first[middle] : first[middle + 1]]] for middle in middles]
    return np.repeat(starts, [len(each) for each in ends]), np.concatenate(ends)


def added_sums(source: Ints, target: Ints, nodes: int) -> tuple[Ints, Ints]:
    """Return `sums`, added up by NumPy."""
    found = np.zeros(10, np.int64)
    np.add.at(found, source % 10, target)
    present = np.unique(source % 10)
    return present, found[present]


def sorted_tops(source: Ints, target: Ints, nodes: int) -> tuple[Ints, Ints, Ints]:
    """Return `tops`, sorted by NumPy."""
    order = np.lexsort((source, target, source % 10))
    digits = source[order] % 10
    last = np.searchsorted(digits, digits, side="right") - np.arange(len(digits)) <= 10
    kept = order[last]
    return source[kept] % 10, target[kept], source[kept]


DEFINITIONS: dict[str, tuple[Definition, FromScratch]] = {
    "count": (degrees, counted_degrees),
    "join": (lines, listed_lines),
    "sum": (sums, added_sums),
    "top": (tops, sorted_tops),
}
CASES = [
    Case(
        f"cliffs {name} {size}",
        "cliffs",
        {"definition": name, "nodes": nodes, "edges": edges, "singles": singles, "batches": batches},
        quick=quick,
    )
    for name in DEFINITIONS
    for size, nodes, edges, singles, batches, quick in (
        ("100k/1M", 100_000, 1_000_000, 5_000, 200, True),
        ("1M/10M", 1_000_000, 10_000_000, 50_000, 2_000, False),
    )
]
PERCENTILES = {"p50": 50.0, "p99": 99.0, "p99.9": 99.9, "max": 100.0}


def measure(definition: str, nodes: int, edges: int, singles: int, batches: int) -> Figures:
    """Return percentiles of the latency of changes."""
    graph = RandomGraph(nodes, edges)
    return execute_directly(lambda worker: _program(worker, *DEFINITIONS[definition], graph, singles, batches))


def _program(
    worker: Worker,
    definition: Definition,
    from_scratch: FromScratch,
    graph: RandomGraph,
    singles: int,
    batches: int,
) -> Figures:
    begun = clock.perf_counter()
    session = settled(worker, definition, graph)
    session.change(BATCH_SIZE)
    figures: Figures = {WARM_UP: clock.perf_counter() - begun}
    for count, rounds in ((1, singles), (BATCH_SIZE, batches)):
        latencies = np.array([session.change(count) for _ in range(rounds)])
        for name, percentile in PERCENTILES.items():
            figures[f"{count:,} at once, {name}, us"] = 1e6 * float(np.percentile(latencies, percentile))
    session.close()
    compare(session.fingerprint, from_scratch, graph, session.changes_made)
    return figures
