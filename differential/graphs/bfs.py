"""Breadth-first distances."""

from __future__ import annotations

from differential import Collection


def bfs(edges: Collection, roots: Collection) -> Collection:
    """Return (node, distance) for every node reachable from `roots`, itself at distance 0.

    >>> def program(scope):
    ...     edges = Collection.of(scope, np.array([0, 1, 0]), np.array([1, 2, 3]))
    ...     return bfs(edges, Collection.of(scope, 0))
    >>> example(program)
    [((0, 0), 1), ((1, 1), 1), ((2, 2), 1), ((3, 1), 1)]
    """
    start = roots.map(lambda root: (root, 0))
    return start.iterate(
        lambda inner: (
            inner.join_map(edges, lambda node, distance, neighbour: (neighbour, distance + 1)).concat(start).min()
        )
    )
