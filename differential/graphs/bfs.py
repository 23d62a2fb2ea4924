"""Breadth-first distances."""

from __future__ import annotations

from differential import Collection, Variable, innermost
from differential.graphs.inputs import Nodes, check_inputs, nodes_of


def bfs(edges: Collection, roots: Collection | Nodes) -> Collection:
    """Return (node, distance) for every node reachable from `roots`, itself at distance 0.

    `roots` is a collection, or a node or some nodes that do not change. The reduction to the least distance indexes its
    result, and the edges are joined with that index.

    >>> def program(scope):
    ...     edges = Collection.of(scope, np.array([0, 1, 0]), np.array([1, 2, 3]))
    ...     return bfs(edges, Collection.of(scope, 0))
    >>> example(program)
    [((0, 0), 1), ((1, 1), 1), ((2, 2), 1), ((3, 1), 1)]
    >>> example(lambda scope: bfs(Collection.of(scope, np.array([0, 1]), np.array([1, 2])), 1))
    [((1, 0), 1), ((2, 1), 1)]
    """
    check_inputs("bfs", edges=edges)
    edges, start = innermost(edges, nodes_of("bfs", edges, roots).map(lambda root: (root, 0)))
    with start.scope.iterative("bfs") as inner:
        found = Variable(inner)
        nearest = found.collection.concat(start).min()
        found.set(nearest.join_map(edges, lambda node, distance, neighbour: (neighbour, distance + 1)))
        return nearest.leave()
