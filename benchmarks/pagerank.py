"""PageRank in twenty rounds: exact, so that a change ripples through all ranks, and within a tolerance.

With a tolerance of 0.01 changes die out; the mean error of a rank is then about a thousandth. Both are
checked against the same computation in integers by SciPy.
"""

from __future__ import annotations

import numpy as np

from benchmarks.graphs import Ints, RandomGraph
from benchmarks.harness import Case, Figures
from benchmarks.incremental import INITIAL, SINGLE_MEDIAN, measure as measure_changes
from benchmarks.wcc import of_present
from differential.graphs import pagerank

UNIT = 1_000_000
ROUNDS = 20
LIMITS = {INITIAL: 2.5, SINGLE_MEDIAN: 1.5e6}

CASES = [
    Case("pagerank 10k/100k", "pagerank", {"nodes": 10_000, "edges": 100_000}),
    Case("pagerank 10k/100k, tolerance 1 %", "pagerank", {"nodes": 10_000, "edges": 100_000, "tolerance": 0.01}),
    Case(
        "pagerank 100k/1M",
        "pagerank",
        {"nodes": 100_000, "edges": 1_000_000, "singles": 10, "batches": 3},
        quick=False,
        limits=LIMITS,
    ),
    Case(
        "pagerank 100k/1M, tolerance 1 %",
        "pagerank",
        {"nodes": 100_000, "edges": 1_000_000, "tolerance": 0.01},
        quick=False,
        limits=LIMITS,
    ),
]


def from_scratch(source: Ints, target: Ints, nodes: int, tolerance: float = 0.0) -> tuple[Ints, Ints]:
    """Return (node, rank) for every node that has an edge, computed by products with SciPy's sparse matrices."""
    from scipy.sparse import csr_matrix

    matrix = csr_matrix((np.ones(len(source), np.int64), (target, source)), shape=(nodes, nodes))
    degrees = np.maximum(np.bincount(source, minlength=nodes), 1)
    present = np.zeros(nodes, np.int64)
    present[source] = present[target] = 1
    is_dangling = (np.bincount(source, minlength=nodes) == 0) & (present > 0)
    ranks, step = UNIT * present, max(1, round(tolerance * UNIT))
    for _ in range(ROUNDS):
        passed = 17 * ((ranks + step // 2) // step * step)
        share = (passed[is_dangling] // 20).sum() // present.sum()
        jumps = UNIT * 3 // 20 + (share + step // 2) // step * step
        ranks = jumps * present + matrix @ (passed // (20 * degrees))
    return of_present(ranks, source, target)


def measure(nodes: int, edges: int, tolerance: float = 0.0, singles: int = 20, batches: int = 3) -> Figures:
    """Return the figures on a random graph."""
    return measure_changes(
        lambda collection: pagerank(collection, rounds=ROUNDS, unit=UNIT, tolerance=tolerance),
        lambda source, target, nodes: from_scratch(source, target, nodes, tolerance),
        RandomGraph(nodes, edges),
        singles,
        batches,
    )
