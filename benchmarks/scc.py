"""Strongly connected components: the edges within them, by doubly nested iteration."""

from __future__ import annotations

import numpy as np

from benchmarks.graphs import Ints, RandomGraph
from benchmarks.harness import PEAK, Case, Figures, Reference
from benchmarks.incremental import BATCH, INITIAL, SINGLE_MEDIAN, SINGLE_P99, measure as measure_changes
from differential.graphs import cyclic_edges

CASES = [
    Case("scc 10k/20k", "scc", {"nodes": 10_000, "edges": 20_000, "singles": 20, "batches": 0}),
    Case(
        "scc 100k/200k",
        "scc",
        {"nodes": 100_000, "edges": 200_000, "singles": 50, "batches": 3},
        quick=False,
        references={
            INITIAL: Reference(18, 25, 0.3),
            SINGLE_MEDIAN: Reference(15_000, 22_000, 1),
            SINGLE_P99: Reference(170_000, 270_000),
            BATCH: Reference.of(11_000, 0.5),
            PEAK: Reference.of(4880),
        },
    ),
    Case(
        "scc 100k/1M",
        "scc",
        {"nodes": 100_000, "edges": 1_000_000, "singles": 50, "batches": 3},
        quick=False,
        references={
            INITIAL: Reference(18, 31, 0.3),
            SINGLE_MEDIAN: Reference(2800, 5700, 2),
            SINGLE_P99: Reference(8000, 15_000),
            PEAK: Reference.of(1150),
        },
    ),
]


def from_scratch(source: Ints, target: Ints, nodes: int) -> tuple[Ints, Ints]:
    """Return the edges whose ends are in one component, computed by SciPy."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    graph = csr_matrix((np.ones(len(source), np.int8), (source, target)), shape=(nodes, nodes))
    _, components = connected_components(graph, connection="strong")
    within = components[source] == components[target]
    return source[within], target[within]


def measure(nodes: int, edges: int, singles: int, batches: int) -> Figures:
    """Return the figures on a random graph."""
    return measure_changes(cyclic_edges, from_scratch, RandomGraph(nodes, edges), singles, batches)
