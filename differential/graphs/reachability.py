"""Which nodes can be reached from which roots."""

from __future__ import annotations

from differential import Collection, Variable, innermost
from differential.graphs.inputs import Nodes, check_inputs, nodes_of


def reachability(edges: Collection, roots: Collection | Nodes) -> Collection:
    """Return (node, root) for every node reachable from each of `roots`, the root itself included.

    `roots` is a collection, or a node or some nodes that do not change.

    >>> def program(scope):
    ...     edges = Collection.of(scope, np.array([0, 1, 3]), np.array([1, 2, 2]))
    ...     return reachability(edges, Collection.of(scope, np.array([0, 3])))
    >>> example(program)
    [((0, 0), 1), ((1, 0), 1), ((2, 0), 1), ((2, 3), 1), ((3, 3), 1)]
    >>> example(lambda scope: reachability(Collection.of(scope, np.array([0, 1]), np.array([1, 2])), 1))
    [((1, 1), 1), ((2, 1), 1)]
    """
    check_inputs("reachability", edges=edges)
    edges, start = innermost(edges, nodes_of("reachability", edges, roots).map(lambda root: (root, root)))
    with start.scope.iterative("reachability") as inner:
        found = Variable(inner)
        reached = found.collection.concat(start).distinct()
        found.set(reached.join_map(edges, lambda node, root, neighbour: (neighbour, root)))
        return reached.leave()
