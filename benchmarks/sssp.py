"""Shortest paths: least distances from node 0 along edges with lengths.

The length of an edge is between 1 and 100, by a hash of its ends.
"""

from __future__ import annotations

import numpy as np

from benchmarks.graphs import Ints, RandomGraph, mixed
from benchmarks.harness import Case, Figures
from benchmarks.incremental import measure as measure_changes
from differential import Collection
from differential.graphs import shortest_distances

CASES = [Case("sssp 100k/1M", "sssp", {"nodes": 100_000, "edges": 1_000_000, "batches": 3})]


def with_lengths(source: Ints, target: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the edges with their lengths."""
    hashes = mixed(mixed(source.astype(np.uint64)) + target.astype(np.uint64))
    return source, target, 1 + (hashes % np.uint64(100)).astype(np.int64)


def definition(edges: Collection) -> Collection:
    """Return (node, least distance) for every node reachable from node 0."""
    return shortest_distances(edges.map(with_lengths), Collection.of(edges.scope, 0, 0))


def from_scratch(source: Ints, target: Ints, nodes: int) -> tuple[Ints, Ints]:
    """Return the same, computed by SciPy. It adds up the lengths of multiple edges, so each edge is passed once."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import dijkstra

    once = np.unique(source * nodes + target)
    source, target, length = with_lengths(once // nodes, once % nodes)
    distances = dijkstra(csr_matrix((length, (source, target)), shape=(nodes, nodes)), indices=0)
    reached = np.flatnonzero(np.isfinite(distances))
    return reached, distances[reached].astype(np.int64)


def measure(nodes: int, edges: int, singles: int = 200, batches: int = 10) -> Figures:
    """Return the figures on a random graph."""
    return measure_changes(definition, from_scratch, RandomGraph(nodes, edges), singles, batches)
