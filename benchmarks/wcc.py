"""Weakly connected components, by label propagation with priority; nodes without edges have no label."""

from __future__ import annotations

import numpy as np

from benchmarks.graphs import ChangingGraph, DebianGraph, Ints, RandomGraph
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
from differential.graphs import weakly_connected_components

CASES = [
    Case(
        "wcc 10k/100k",
        "wcc",
        {"nodes": 10_000, "edges": 100_000},
        # A hundredth and a fifth of the time that Pathway takes.
        limits={INITIAL: 0.065, SINGLE_MEDIAN: 640, SINGLE_P99: 5200},
    ),
    Case(
        "wcc 100k/1M",
        "wcc",
        {"nodes": 100_000, "edges": 1_000_000},
        references={
            INITIAL: Reference(1.07, 0.28),
            SINGLE_MEDIAN: Reference(120, 1),
            BATCH: Reference(24, 0.77),
            PEAK: Reference(105),
        },
    ),
    Case(
        "wcc 1M/10M",
        "wcc",
        {"nodes": 1_000_000, "edges": 10_000_000, "singles": 1000},
        quick=False,
        references={
            INITIAL: Reference(11.9, 0.26),
            SINGLE_MEDIAN: Reference(133, 1),
            BATCH: Reference(44.9, 0.45),
            PEAK: Reference(91.2, 1),
        },
    ),
    Case(
        "wcc 100k/1M, 2 processes",
        "wcc",
        {"nodes": 100_000, "edges": 1_000_000},
        processes=2,
        quick=False,
        limits={SINGLE_P99: 19_000},
    ),
    Case(
        "wcc 1M/10M, 2 processes",
        "wcc",
        {"nodes": 1_000_000, "edges": 10_000_000, "singles": 1000},
        processes=2,
        quick=False,
    ),
    Case(
        "wcc 1M/10M, 2 threads",
        "wcc",
        {"nodes": 1_000_000, "edges": 10_000_000, "singles": 1000},
        workers=2,
        quick=False,
    ),
    *cases_apart("wcc"),
    Case("wcc Debian 59k/279k", "wcc", {}, limits={INITIAL: 0.7, SINGLE_MEDIAN: 1000}),
]


def from_scratch(source: Ints, target: Ints, nodes: int) -> tuple[Ints, Ints]:
    """Return (node, smallest node of its component) for every node that has an edge, computed by SciPy."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components as scipy_components

    graph = csr_matrix((np.ones(len(source), np.int8), (source, target)), shape=(nodes, nodes))
    _, components = scipy_components(graph, connection="weak")
    _, smallest = np.unique(components, return_index=True)
    return of_present(smallest[components], source, target)


def of_present(labels: Ints, source: Ints, target: Ints) -> tuple[Ints, Ints]:
    """Return (node, label) for every node that has an edge."""
    present = np.zeros(len(labels), bool)
    present[source] = present[target] = True
    found = np.flatnonzero(present)
    return found, labels[found]


def measure(nodes: int = 0, edges: int = 0, singles: int = 200, batches: int = 10, apart: bool = False) -> Figures:
    """Return the figures on a random graph or, without a size, on the Debian graph."""
    if apart:
        return measure_apart(weakly_connected_components, from_scratch, nodes, edges)
    graph: ChangingGraph = RandomGraph(nodes, edges) if nodes else DebianGraph()
    return measure_changes(weakly_connected_components, from_scratch, graph, singles, batches)
