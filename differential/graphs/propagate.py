"""Every node learns the smallest label that reaches it."""

from __future__ import annotations

from differential import Collection, innermost


def propagate(edges: Collection, labels: Collection) -> Collection:
    """Return (node, smallest label) over all labels of nodes from which the node can be reached, its own included.

    `labels` holds (node, label). This is label propagation: each round, each node whose label fell tells its neighbours.

    >>> def program(scope):
    ...     edges = Collection.of(scope, np.array([2, 1]), np.array([1, 3]))
    ...     return propagate(edges, Collection.of(scope, np.array([1, 2, 3]), np.array([10, 5, 7])))
    >>> example(program)
    [((1, 5), 1), ((2, 5), 1), ((3, 5), 1)]
    """
    edges, labels = innermost(edges, labels)
    return labels.iterate(
        lambda inner: inner.join_map(edges, lambda node, label, neighbour: (neighbour, label)).concat(labels).min()
    )
