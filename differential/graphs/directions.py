"""Edges against their direction and in both directions, and the nodes at their ends."""

from __future__ import annotations

from differential import Collection
from differential.graphs.order import is_same


def transpose(edges: Collection) -> Collection:
    """Return (target, source) for each edge.

    >>> example(lambda scope: transpose(Collection.of(scope, 1, 2)))
    [((2, 1), 1)]
    """
    return edges.map(lambda source, target: (target, source))


def both_ways(edges: Collection) -> Collection:
    """Return (node, neighbour) for each edge from both of its ends.

    >>> example(lambda scope: both_ways(Collection.of(scope, np.array([1, 3]), np.array([2, 3]))))
    [((1, 2), 1), ((2, 1), 1), ((3, 3), 2)]
    """
    return edges.concat(transpose(edges))


def neighbours(edges: Collection) -> Collection:
    """Return (node, neighbour) from both ends, once however many edges join the two, and never (node, node).

    >>> example(lambda scope: neighbours(Collection.of(scope, np.array([1, 2, 3]), np.array([2, 1, 3]))))
    [((1, 2), 1), ((2, 1), 1)]
    """
    return both_ways(edges.filter(lambda source, target: ~is_same(source, target))).distinct()


def starts(edges: Collection) -> Collection:
    """Return the nodes that an edge leads from, each once.

    >>> example(lambda scope: starts(Collection.of(scope, np.array([1, 1]), np.array([2, 3]))))
    [((1,), 1)]
    """
    return edges.map(lambda source, _: source).distinct()
