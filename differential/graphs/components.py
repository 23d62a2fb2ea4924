"""Weakly connected components."""

from __future__ import annotations

from differential import Collection
from differential.graphs.propagate import propagate


def connected_components(edges: Collection) -> Collection:
    """Return (node, smallest node of its component) for every node that has an edge, whatever the edges' directions.

    >>> example(lambda scope: connected_components(Collection.of(scope, np.array([2, 5]), np.array([1, 6]))))
    [((1, 1), 1), ((2, 1), 1), ((5, 5), 1), ((6, 5), 1)]
    """
    reversed_edges = edges.map(lambda source, target: (target, source))
    both_ways = edges.concat(reversed_edges)
    return propagate(both_ways, both_ways.map(lambda node, _: (node, node)))
