"""A colouring: no two neighbours have the same colour."""

from __future__ import annotations

from typing import Any

import numpy as np

from differential import Collection, Groups, Variable
from differential.graphs.directions import both_ways, starts
from differential.graphs.inputs import check_records
from differential.graphs.order import is_before


def colouring(edges: Collection) -> Collection:
    """Return (node, colour) for the colours 0, 1, ... that a walk over all nodes in ascending order gives them.

    Each node gets the least colour that no smaller neighbour has, so that there are at most as many colours as the
    largest degree and one more. In each round the nodes get one whose smaller neighbours all have one, so each changes
    once. Nodes are integers or text; edges count in both directions, unless they lead from a node to itself.
    (Welsh and Powell, "An upper bound for the chromatic number of a graph", 1967, with the nodes in another order.)

    >>> edges = np.array([[1, 2], [2, 3], [1, 3], [3, 4]]).T
    >>> example(lambda scope: colouring(Collection.of(scope, *edges)))
    [((1, 0), 1), ((2, 1), 1), ((3, 2), 1), ((4, 0), 1)]
    """
    check_records("colouring", edges=edges)
    ends = both_ways(edges)
    upwards = ends.filter(is_before)
    # -1 occurs once for each edge to a smaller neighbour, and once more.
    smaller = starts(ends).concat(upwards.map(lambda node, neighbour: neighbour)).map(lambda node: (node, -1))
    with edges.scope.iterative("colouring") as inner:
        taken = Variable(inner)
        colours = taken.collection.concat(smaller).reduce(_least_free)
        taken.set(colours.join_map(upwards, lambda node, colour, neighbour: (neighbour, colour)))
        return colours.leave()


def _least_free(groups: Groups) -> tuple[Any, Any]:
    """Return, of each group in which -1 occurs once more than all colours, the least colour that is not in it."""
    order = np.lexsort((groups.values[0], groups.index))
    starts = groups.offsets[:-1]
    place = np.arange(len(order)) - np.repeat(starts, np.diff(groups.offsets))
    # The distinct values ascend from -1: each is its place less 1 until a colour is missing, and greater after that.
    without_gap = groups.values[0][order] == place - 1
    counts = groups.counts[order]
    # Of m smaller neighbours, -1 occurs m + 1 times, and all have a colour if there are 2 m + 1 rows in all.
    is_due = 2 * counts[starts] - 1 == np.add.reduceat(counts, starts)
    return np.flatnonzero(is_due), (np.add.reduceat(without_gap.astype(np.int64), starts) - 1)[is_due]
