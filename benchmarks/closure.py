"""Transitive closure: which nodes are reachable from which; one change can change most of the answer."""

from __future__ import annotations

import numpy as np

from benchmarks.graphs import Ints, RandomGraph
from benchmarks.harness import Case, Figures
from benchmarks.incremental import INITIAL, SINGLE_MEDIAN, measure as measure_changes
from differential.graphs import transitive_closure

CASES = [
    Case(
        "closure 1000/2000",
        "closure",
        {"nodes": 1000, "edges": 2000},
        limits={INITIAL: 0.6, SINGLE_MEDIAN: 102_000},
    ),
]


def from_scratch(source: Ints, target: Ints, nodes: int) -> tuple[Ints, Ints]:
    """Return (node, other) for every path of at least one edge, by SciPy: an edge, and what its end reaches."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import shortest_path

    graph = csr_matrix((np.ones(len(source), np.float32), (source, target)), shape=(nodes, nodes))
    reached = np.isfinite(shortest_path(graph, unweighted=True)).astype(np.float32)
    node, other = np.nonzero(graph @ reached)
    return node, other


def measure(nodes: int, edges: int, singles: int = 50, batches: int = 0) -> Figures:
    """Return the figures on a random graph."""
    return measure_changes(transitive_closure, from_scratch, RandomGraph(nodes, edges), singles, batches)
