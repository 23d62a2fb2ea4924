"""Cores: the part of a graph that remains when nodes with few neighbours are removed, again and again."""

from __future__ import annotations

from differential import Collection
from differential.graphs.directions import neighbours
from differential.graphs.inputs import check_records
from timely.lowlevel import check_whole


def k_core(edges: Collection, k: int) -> Collection:
    """Return (node, neighbour), both ways, for the largest part of the graph in which each node has `k` neighbours.

    Edges count in both directions, once however often they occur; edges from a node to itself do not count.
    (Seidman, "Network structure and minimum degree", Social Networks 5, 1983.)

    >>> edges = np.array([[1, 2], [2, 3], [3, 1], [3, 4]]).T
    >>> example(lambda scope: k_core(Collection.of(scope, *edges), 2))
    [((1, 2), 1), ((1, 3), 1), ((2, 1), 1), ((2, 3), 1), ((3, 1), 1), ((3, 2), 1)]
    """
    check_records("k_core", edges=edges)
    check_whole("k_core", 0, k=k)

    def kept(inner: Collection) -> Collection:
        enough = inner.count().filter(lambda node, degree: degree >= k).map(lambda node, degree: node)
        half = inner.semijoin(enough).map(lambda node, neighbour: (neighbour, node))
        return half.semijoin(enough).map(lambda neighbour, node: (node, neighbour))

    return neighbours(edges).iterate(kept)
