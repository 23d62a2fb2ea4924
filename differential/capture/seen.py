"""Separate new updates from those seen before, whole columns at a time.

An update is a row of four integers: codes of its record (two), the number of its time, its diff. Rows are kept sorted
by the first three in layers of geometrically growing size. Whether a row is there is found by a binary search that
takes all wanted rows at once, column by column: each narrows the range in which the next is searched.

Cost: a sort of the new rows and a search in each of O(log n) layers; rows are merged O(log n) times.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Rows = NDArray[np.int64]
"""int64[4, n]: two codes of the record, the time's number, the diff."""

_DIFF = 3


class Seen:
    """The updates seen at times that are not complete.

    >>> seen = Seen()
    >>> seen.add(np.array([[7, 7, 8], [0, 0, 0], [0, 0, 0], [1, 1, 2]]))
    (array([0, 2]), array([], dtype=int64))
    >>> seen.add(np.array([[7, 8, 9], [0, 0, 0], [0, 0, 0], [1, 1, 1]]))
    (array([2]), array([1]))
    """

    def __init__(self) -> None:
        self._layers: list[Rows] = []

    def __len__(self) -> int:
        return sum(layer.shape[1] for layer in self._layers)

    def add(self, rows: Rows) -> tuple[Ints, Ints]:
        """Return the positions of the rows that are new, and of those that contradict an earlier one by their diff."""
        order = _sorted(rows)
        ordered = rows[:, order]
        # The sort is stable, so of equal rows the first is the one that counts as new.
        same = np.zeros(len(order), np.bool_)
        same[1:] = (ordered[:_DIFF, 1:] == ordered[:_DIFF, :-1]).all(axis=0)
        unlike = np.zeros(len(order), np.bool_)
        unlike[1:] = same[1:] & (ordered[_DIFF, 1:] != ordered[_DIFF, :-1])
        for layer in self._layers:
            there, place = _search(layer, ordered)
            unlike |= there & (layer[_DIFF, place] != ordered[_DIFF])
            same |= there
        if not same.all():
            layers = self._layers
            layers.append(ordered[:, ~same])
            while len(layers) > 1 and layers[-2].shape[1] <= 2 * layers[-1].shape[1]:
                together = np.concatenate([layers.pop(), layers.pop()], axis=1)
                layers.append(together[:, _sorted(together)])
        return np.sort(order[~same]), np.sort(order[unlike])

    def columns(self) -> list[tuple[Ints, Ints]]:
        """Return the columns of codes held."""
        return [(layer[0], layer[1]) for layer in self._layers]

    def forget(self, numbers: Ints) -> None:
        """Forget the rows at the times with these numbers."""
        kept = [layer[:, ~np.isin(layer[2], numbers)] for layer in self._layers]
        self._layers = [layer for layer in kept if layer.shape[1]]


def _sorted(rows: Rows) -> Ints:
    return np.lexsort((rows[2], rows[1], rows[0]))


def _search(layer: Rows, wanted: Rows) -> tuple[NDArray[np.bool_], Ints]:
    """Return whether each wanted row is in the layer, and a place in it, its own if it is."""
    low = np.searchsorted(layer[0], wanted[0], "left")
    high = np.searchsorted(layer[0], wanted[0], "right")
    for column in (1, 2):
        first = _bound(layer[column], wanted[column], low, high, equal=False)
        high = _bound(layer[column], wanted[column], first, high, equal=True)
        low = first
    return low < high, np.minimum(low, layer.shape[1] - 1)


def _bound(column: Ints, wanted: Ints, low: Ints, high: Ints, *, equal: bool) -> Ints:
    """Return where, in the sorted ranges `low:high`, what is before the wanted (or equal to it) ends."""
    while (open := low < high).any():
        middle = (low + high) >> 1
        found = column[np.minimum(middle, len(column) - 1)]
        before = open & ((found <= wanted) if equal else (found < wanted))
        low, high = np.where(before, middle + 1, low), np.where(open & ~before, middle, high)
    return low
