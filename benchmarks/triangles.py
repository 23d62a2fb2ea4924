"""Triangles (a, b, c) of edges (a, b), (b, c), (a, c), by two joins and by a worst-case optimal delta query."""

from __future__ import annotations

import numpy as np

from benchmarks.graphs import Ints, RandomGraph
from benchmarks.harness import PEAK, Case, Figures, Reference
from benchmarks.incremental import BATCH, INITIAL, SINGLE_MEDIAN, measure as measure_changes
from differential.graphs import triangles, triangles_by_joins

ALGORITHMS = {"joins": triangles_by_joins, "wco": triangles}
PATHS_AT_ONCE = 1 << 24
BYTES_PER_EDGE = {"joins": 4000, "wco": 400}
"""The approximate memory of each algorithm with a hundred edges for each node."""

CASES = [
    Case("triangles_joins 10k/100k", "triangles", {"nodes": 10_000, "edges": 100_000, "algorithm": "joins"}),
    Case("triangles_wco 10k/100k", "triangles", {"nodes": 10_000, "edges": 100_000, "algorithm": "wco"}),
    Case(
        "triangles_joins 10k/1M",
        "triangles",
        {"nodes": 10_000, "edges": 1_000_000, "algorithm": "joins"},
        quick=False,
        references={PEAK: Reference(3800)},
        limits={INITIAL: 14, SINGLE_MEDIAN: 1470, BATCH: 180},
    ),
    Case(
        "triangles_wco 10k/1M",
        "triangles",
        {"nodes": 10_000, "edges": 1_000_000, "algorithm": "wco"},
        quick=False,
        references={PEAK: Reference(3600)},
        limits={INITIAL: 16, SINGLE_MEDIAN: 1200, BATCH: 150},
    ),
]


def from_scratch(source: Ints, target: Ints, nodes: int) -> tuple[Ints, Ints, Ints]:
    """Return all triangles, each as often as its edges occur. SciPy checks their number, which is that of A·A∘A."""
    from scipy.sparse import csr_matrix

    graph = csr_matrix((np.ones(len(source), np.int64), (source, target)), shape=(nodes, nodes))
    dense = graph.astype(np.int16).toarray()
    order = np.argsort(source, kind="stable")
    source, target = source[order], target[order]
    first = np.searchsorted(source, np.arange(nodes))
    ends = np.searchsorted(source, np.arange(nodes), side="right")
    degree = (ends - first)[target]
    pieces = np.searchsorted(np.cumsum(degree), np.arange(0, int(degree.sum()) + PATHS_AT_ONCE, PATHS_AT_ONCE))
    found = []
    for low, high in zip(pieces, np.append(pieces[1:], len(source))):
        which = np.repeat(np.arange(low, high), degree[low:high])
        step = np.arange(len(which)) - np.repeat(np.cumsum(degree[low:high]) - degree[low:high], degree[low:high])
        a, b = source[which], target[which]
        c = target[first[b] + step]
        times = dense[a, c]
        closed = np.repeat(np.flatnonzero(times), times[times > 0])
        found.append(np.column_stack((a[closed], b[closed], c[closed])))
    corners = np.concatenate(found)
    number = int((graph @ graph).multiply(graph).sum())
    assert number == len(corners), f"{len(corners)} triangles were listed, but SciPy counts {number}"
    return corners[:, 0], corners[:, 1], corners[:, 2]


def measure(nodes: int, edges: int, algorithm: str, singles: int = 200, batches: int = 5) -> Figures:
    """Return the figures on a random graph."""
    graph = RandomGraph(nodes, edges)
    at_hand = BYTES_PER_EDGE[algorithm] * edges
    return measure_changes(ALGORITHMS[algorithm], from_scratch, graph, singles, batches, at_hand)
