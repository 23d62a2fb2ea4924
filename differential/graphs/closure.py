"""Which nodes can be reached from which."""

from __future__ import annotations

from differential import Collection, Variable
from differential.graphs.directions import transpose
from differential.graphs.inputs import check_records


def transitive_closure(edges: Collection) -> Collection:
    """Return (node, other) for every path of one edge or more from a node to another, or to itself.

    >>> example(lambda scope: transitive_closure(Collection.of(scope, np.array([0, 1]), np.array([1, 2]))))
    [((0, 1), 1), ((0, 2), 1), ((1, 2), 1)]
    """
    check_records("transitive_closure", edges=edges)
    with edges.scope.iterative("closure") as inner:
        longer = Variable(inner)
        paths = longer.collection.concat(transpose(edges)).distinct()
        longer.set(paths.join_map(edges, lambda _, source, target: (target, source)))
        return transpose(paths.leave())
