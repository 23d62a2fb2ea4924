"""A maximal independent set: no two of its nodes are neighbours, and no node can be added."""

from __future__ import annotations

from typing import Any

from differential import Collection, Variable
from differential.graphs.directions import both_ways, starts
from differential.graphs.inputs import check_records
from differential.graphs.order import is_before


def independent_set(edges: Collection) -> Collection:
    """Return the nodes that a scan over all nodes in ascending order takes: those of which it took no neighbour before.

    A node is blocked if a smaller neighbour is taken, and taken if all its smaller neighbours are blocked. Both sets
    grow from round to round, so each node changes once. Nodes are integers or text; edges count in both directions, and
    not from a node to itself.

    >>> edges = np.array([[1, 2], [2, 3], [3, 4]]).T
    >>> example(lambda scope: independent_set(Collection.of(scope, *edges)))
    [((1,), 1), ((3,), 1)]
    """
    check_records("independent_set", edges=edges)
    ends = both_ways(edges)
    upwards = ends.filter(is_before)
    nodes = starts(ends)
    with edges.scope.iterative("independent set") as inner:
        blocked = Variable(inner)
        # Once for each edge from a smaller neighbour that is not blocked; a node is taken if there is none.
        waiting = blocked.collection.negate().concat(nodes).join_map(upwards, _neighbour)
        taken = waiting.distinct().negate().concat(nodes).consolidate()
        blocked.set(taken.join_map(upwards, _neighbour).distinct())
        return taken.leave()


def _neighbour(node: Any, neighbour: Any) -> Any:
    return neighbour
