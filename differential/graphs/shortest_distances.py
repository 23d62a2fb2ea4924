"""Least distances along edges that have lengths."""

from __future__ import annotations

from typing import Any

import numpy as np

from differential import Collection, Variable, innermost
from differential.graphs.inputs import check_columns, check_inputs, check_records
from differential.lowlevel import kind_of
from timely.errors import DataError
from timely.lowlevel import is_null, name_of


def shortest_distances(edges: Collection, roots: Collection) -> Collection:
    """Return (node, least distance) for every node that can be reached from a node of `roots`.

    `edges` holds (source, target, length), and `roots` the distances (node, distance) to begin with; all lengths and
    distances are integers of 64 bits with a sign, or all are floats. This is the method of Bellman and Ford: round i
    has the least distances by up to i edges. A node whose distance falls in many rounds, because paths with more edges
    are shorter, costs the square of their number. A DataError ends the run where a path has a negative length, since
    there might be no least distance, and where a distance needs more than 64 bits: one of floats would be infinite.

    >>> def program(scope):
    ...     roads = Collection.of(scope, np.array([0, 1, 0]), np.array([1, 2, 2]), np.array([2, 3, 9]))
    ...     return shortest_distances(roads, Collection.of(scope, 0, 0))
    >>> example(program)
    [((0, 0), 1), ((1, 2), 1), ((2, 5), 1)]
    """
    check_inputs("shortest_distances", edges=edges)
    check_records("shortest_distances", roots=roots)
    check_columns("shortest_distances", edges=edges, roots=roots)

    def along(node: Any, distance: Any, neighbour: Any, length: Any) -> tuple[Any, Any]:
        _refuse_other_kinds(node, distance, neighbour, length)
        if (length < 0).any():
            first = np.argmax(length < 0)
            raise DataError(
                f"shortest_distances: the edge from {node[first]} to {neighbour[first]} has a negative length, "
                f"{length[first]}"
            )
        if distance.dtype.kind != length.dtype.kind:
            raise DataError(
                f"shortest_distances: the roots have distances of {name_of(distance)}, the edges lengths of "
                f"{name_of(length)}, and large integers would be rounded: convert one of them"
            )
        with np.errstate(over="ignore"):
            reached = distance + length
        # No length is negative, so a sum below the distance has wrapped around.
        if (reached < distance).any() or (np.isinf(reached) > np.isinf(distance) | np.isinf(length)).any():
            raise DataError("shortest_distances: a distance is too large for 64 bits")
        return neighbour, reached

    edges, start = innermost(edges, roots)
    with start.scope.iterative("shortest_distances") as inner:
        found = Variable(inner)
        nearest = found.collection.concat(start).min()
        found.set(nearest.join_map(edges, along))
        return nearest.leave()


def _refuse_other_kinds(node: Any, distance: Any, neighbour: Any, length: Any) -> None:
    """Raise DataError where lengths are neither integers nor floats of 64 bits or less, or something is null."""
    if name_of(length).startswith(("text", "bytes", "bool", "uint64", "decimal")):
        raise DataError(
            f"shortest_distances: lengths must be integers or floats, not {kind_of(length).value}, as that of the edge "
            f"from {node[0]} to {neighbour[0]}: convert them, and the distances of the roots, with astype(int) or "
            "astype(float)"
        )
    for what, column in {"length": length, "distance": distance}.items():
        missing = is_null(column)
        if missing.any():
            first = np.argmax(missing)
            which = f"the edge from {node[first]} to {neighbour[first]}" if what == "length" else f"root {node[first]}"
            raise DataError(
                f"shortest_distances: {which} has no {what}, but a null: fill_null(column, value) of "
                "differential.frames replaces nulls, and filter() leaves such records out"
            )
