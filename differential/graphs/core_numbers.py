"""The largest core of a graph that each node is in."""

from __future__ import annotations

from typing import Any

import numpy as np

from differential import Collection, Groups, Variable
from differential.arguments import check_rows
from differential.graphs.directions import neighbours

MANY = 1 << 40
"""More than any node's number of neighbours."""


def core_numbers(edges: Collection) -> Collection:
    """Return (node, the largest k whose k-core it is in) for every node that has a neighbour other than itself.

    Edges count in both directions, once however often they occur, and not from a node to itself. Each node's number is
    the largest h such that h of its neighbours have h or more: in the first round its degree, then by the neighbours'
    numbers in the round before. Numbers only fall, so they settle, and they settle on the core numbers. (Lü, Zhou,
    Zhang and Stanley, "The H-index of a network node and its relation to degree and coreness", Nature Communications
    7, 2016.) A few rounds suffice on most graphs; a path takes half as many as it has nodes.

    >>> edges = np.array([[1, 2], [2, 3], [3, 1], [3, 4]]).T
    >>> example(lambda scope: core_numbers(Collection.of(scope, *edges)))
    [((1, 2), 1), ((2, 2), 1), ((3, 2), 1), ((4, 1), 1)]
    """
    check_rows("core_numbers", edges=edges)
    joined = neighbours(edges)
    with edges.scope.iterative("core_numbers") as inner:
        received = Variable(inner, joined.map(lambda node, _: (node, MANY)))
        numbers = received.collection.reduce(_h_index)
        received.set(numbers.join_map(joined, lambda node, number, neighbour: (neighbour, number)))
        return numbers.leave()


def _h_index(groups: Groups) -> tuple[Any, Any]:
    """Return, of each group, the largest h such that h of its numbers are h or more."""
    order = np.lexsort((-groups.values[0], groups.index))
    starts = groups.offsets[:-1]
    so_far = np.cumsum(groups.counts[order])
    before = so_far[starts] - groups.counts[order][starts]
    as_large = so_far - np.repeat(before, np.diff(groups.offsets))
    return np.arange(len(groups)), np.maximum.reduceat(np.minimum(groups.values[0][order], as_large), starts)
