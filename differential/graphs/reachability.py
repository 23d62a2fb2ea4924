"""Which nodes can be reached from which roots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from differential import Collection, Variable, innermost
from differential.arguments import check_collections, check_rows


def reachability(edges: Collection, roots: Collection | int | str | Sequence[int] | Sequence[str]) -> Collection:
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
    check_collections("reachability", edges=edges)
    if isinstance(roots, (int, str, list, tuple, np.ndarray)):
        roots = Collection.of(edges.scope, np.atleast_1d(np.array(roots)))
    check_rows("reachability", roots=roots)
    edges, start = innermost(edges, cast(Collection, roots).map(lambda root: (root, root)))
    with start.scope.iterative("reachability") as inner:
        found = Variable(inner)
        reached = found.collection.concat(start).distinct()
        found.set(reached.join_map(edges, lambda node, root, neighbour: (neighbour, root)))
        return reached.leave()
