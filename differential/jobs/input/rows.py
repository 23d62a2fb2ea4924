"""NumPy files: an integer array of the shape (edges, 2 to 4), mapped into memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from differential.jobs.input.edges import EdgeBatch, Progress, Weights, ignore
from differential.jobs.input.faults import Fault, Faults
from differential.jobs.input.layout import InputLayout, Places, WeightKind, places, weight_kind
from timely.errors import DataError

SLICE = 1 << 18
"""How many rows a batch has."""
MOST = 2**63


class ArrayGraph:
    """The edges in the rows of an array."""

    names = None

    def __init__(self, path: str, array: NDArray[Any], where: Places, kind: WeightKind | None, faults: Faults) -> None:
        self._array = array
        self._where = where
        self._kind: WeightKind = kind or ("float" if array.dtype.kind == "f" else "integer")
        self.weight = None if where.weight is None else self._kind
        self._faults = faults
        self.label = path
        self.total = len(array)

    def share(self, index: int, peers: int, progress: Progress = ignore) -> Iterator[EdgeBatch]:
        """Yield one of `peers` slices of equal length."""
        begin, end = (self.total * each // peers for each in (index, index + 1))
        for start in range(begin, end, SLICE):
            rows = self._array[start : min(start + SLICE, end)]
            progress(len(rows))
            edges = self._edges(rows, start)
            if edges.source.size:
                yield edges

    def _edges(self, rows: NDArray[Any], start: int) -> EdgeBatch:
        where = self._where
        bad = np.zeros(len(rows), bool)
        for place in (where.source, where.target, where.time):
            if place is not None:
                bad |= ~are_integers(rows[:, place])
        if where.weight is not None:
            legal = np.isfinite(rows[:, where.weight]) if self._kind == "float" else are_integers(rows[:, where.weight])
            bad |= ~legal
        for row in np.flatnonzero(bad).tolist():
            text = " ".join(map(str, rows[row].tolist()))
            reason = "a node, a time or a weight is not a 64-bit integer"
            self._faults.add(Fault(self.label, start + row + 1, text, reason, unit="row"))
        if bad.any():
            rows = rows[~bad]
        weight: Weights | None = None
        if where.weight is not None:
            given = rows[:, where.weight]
            weight = given.astype(np.float64) if self._kind == "float" else given.astype(np.int64)
        time = None if where.time is None else rows[:, where.time].astype(np.int64)
        return EdgeBatch(rows[:, where.source].astype(np.int64), rows[:, where.target].astype(np.int64), weight, time)


def are_integers(column: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which numbers are integers of 64 bits."""
    found = np.ones(len(column), np.bool_)
    if column.dtype.kind == "f":
        found &= (column == np.floor(column)) & (column >= -MOST) & (column < MOST)
    elif column.dtype == np.uint64:
        found &= column < np.uint64(MOST)
    return found


def open_npy(path: str, layout: InputLayout, faults: Faults) -> ArrayGraph:
    """Return the graph in an array. Raises DataError if the array has another shape or holds something else."""
    try:
        array = np.lib.format.open_memmap(path, mode="r")
    except (ValueError, EOFError) as error:
        raise DataError(f"{path} is damaged, or holds Python objects: {error}") from None
    if array.ndim != 2 or not 2 <= array.shape[1] <= 4:
        raise DataError(f"{path} has the shape {array.shape}, but edges have the shape (edges, 2 to 4)")
    if array.dtype.kind not in "iuf":
        raise DataError(f"{path} holds {array.dtype}, but nodes are integers in an array")
    if layout.names or layout.header:
        raise DataError(f"{path} is an array, which has neither names nor a header")
    where = places(path, layout, array.shape[1], None)
    return ArrayGraph(path, array, where, weight_kind(layout.weight)[1], faults)
