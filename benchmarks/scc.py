"""Strongly connected components: the edges within them, by doubly nested iteration."""

from __future__ import annotations

import numpy as np

from benchmarks.graphs import Ints, RandomGraph
from benchmarks.harness import Case, Figures, Reference
from benchmarks.incremental import BATCH, INITIAL, SINGLE_MEDIAN, measure as measure_changes
from differential.graphs import cyclic_edges

CASES = [
    Case("scc 10k/20k", "scc", {"nodes": 10_000, "edges": 20_000, "singles": 20, "batches": 0}),
    Case(
        "scc 100k/200k",
        "scc",
        {"nodes": 100_000, "edges": 200_000, "singles": 50, "batches": 3},
        quick=False,
        references={
            INITIAL: Reference(1.2, 0.2),
            SINGLE_MEDIAN: Reference(1200, 1),
            BATCH: Reference(560, 0.42),
        },
    ),
    Case(
        "scc 100k/1M",
        "scc",
        {"nodes": 100_000, "edges": 1_000_000, "singles": 50, "batches": 3},
        quick=False,
        limits={INITIAL: 5.4, SINGLE_MEDIAN: 5600},
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
