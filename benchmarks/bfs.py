"""Breadth-first search: distances from node 0 in a random graph, by iteration."""

from __future__ import annotations

import numpy as np

from benchmarks.graphs import Ints, RandomGraph
from benchmarks.harness import PEAK, Case, Figures, Reference
from benchmarks.incremental import (
    BATCH,
    INITIAL,
    SINGLE_MEDIAN,
    SINGLE_P99,
    cases_apart,
    measure as measure_changes,
    measure_apart,
)
from differential import Collection
from differential.graphs import bfs

CASES = [
    Case(
        "bfs 100k/1M",
        "bfs",
        {"nodes": 100_000, "edges": 1_000_000},
        references={
            INITIAL: Reference(0.54, 0.15),
            SINGLE_MEDIAN: Reference(67, 1),
            BATCH: Reference(14.5, 0.69),
            PEAK: Reference(70),
        },
    ),
    Case(
        "bfs 1M/10M",
        "bfs",
        {"nodes": 1_000_000, "edges": 10_000_000, "singles": 1000},
        quick=False,
        references={
            INITIAL: Reference(6.07, 0.18),
            SINGLE_MEDIAN: Reference(81, 1),
            BATCH: Reference(28.5, 0.59),
            PEAK: Reference(43),
        },
    ),
    Case(
        "bfs 100k/1M, 2 processes",
        "bfs",
        {"nodes": 100_000, "edges": 1_000_000},
        processes=2,
        quick=False,
        references={SINGLE_MEDIAN: Reference(93, 2)},
        limits={SINGLE_P99: 19_000},
    ),
    Case(
        "bfs 1M/10M, 2 processes",
        "bfs",
        {"nodes": 1_000_000, "edges": 10_000_000, "singles": 1000},
        processes=2,
        quick=False,
    ),
    Case(
        "bfs 1M/10M, 2 threads",
        "bfs",
        {"nodes": 1_000_000, "edges": 10_000_000, "singles": 1000},
        workers=2,
        quick=False,
    ),
    *cases_apart("bfs"),
]


def definition(edges: Collection) -> Collection:
    """Return (node, distance) for every node reachable from node 0."""
    return bfs(edges, Collection.of(edges.scope, 0))


def from_scratch(source: Ints, target: Ints, nodes: int, start: int = 0) -> tuple[Ints, Ints]:
    """Return the same for a search from `start`, computed by SciPy."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import breadth_first_order

    graph = csr_matrix((np.ones(len(source), np.int8), (source, target)), shape=(nodes, nodes))
    order, before = breadth_first_order(graph, start)
    # A level of the search is the run of nodes that were reached from the level before.
    place = np.empty(nodes, np.int64)
    place[order] = np.arange(len(order))
    reached_from = place[before[order[1:]]]
    distances = np.zeros(len(order), np.int64)
    end, level = 1, 0
    while end < len(order):
        begin, end, level = end, 1 + int(np.searchsorted(reached_from, end)), level + 1
        distances[begin:end] = level
    return order.astype(np.int64), distances


def measure(nodes: int, edges: int, singles: int = 200, batches: int = 10, apart: bool = False) -> Figures:
    """Return the figures on a random graph."""
    if apart:
        return measure_apart(definition, from_scratch, nodes, edges)
    return measure_changes(definition, from_scratch, RandomGraph(nodes, edges), singles, batches)
