"""A maximal independent set: no two of its nodes are neighbours, and no node can be added."""

from __future__ import annotations

from differential import Collection
from differential.arguments import check_rows
from differential.graphs.directions import both_ways, starts
from differential.graphs.order import is_before


def independent_set(edges: Collection) -> Collection:
    """Return the nodes that a scan over all nodes in ascending order takes: those of which it took no neighbour before.

    A node is taken if no smaller neighbour is; that is a fixed point, reached from the smallest nodes upwards. Nodes
    are integers or text; edges count in both directions, and not from a node to itself.

    >>> edges = np.array([[1, 2], [2, 3], [3, 4]]).T
    >>> example(lambda scope: independent_set(Collection.of(scope, *edges)))
    [((1,), 1), ((3,), 1)]
    """
    check_rows("independent_set", edges=edges)
    ends = both_ways(edges)
    upwards = ends.filter(is_before)
    nodes = starts(ends)

    def taken(inner: Collection) -> Collection:
        blocked = inner.join_map(upwards, lambda node, neighbour: neighbour).distinct()
        return nodes.concat(blocked.negate()).consolidate()

    return nodes.iterate(taken)
