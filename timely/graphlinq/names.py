"""A map from names to numbers that grows.

The names are in sorted layers; a layer is merged with the one before it when it is at least half as large. So n names
are in at most about log2 n layers, and each name is sorted again about as often. A lookup is one binary search per
layer.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from timely.lowlevel import Array, of_one_kind, stacked

Ints = NDArray[np.int64]

_WHAT = "the column of names"


class NodeNumbers:
    """The number of each name that was added.

    >>> names = NodeNumbers()
    >>> names.add(np.array([70, 30]), np.array([0, 1]))
    >>> names.add(np.array([50]), np.array([2]))
    >>> names.numbers(np.array([30, 40, 50])).tolist()
    [1, -1, 2]
    """

    __slots__ = ("_layers",)

    def __init__(self) -> None:
        self._layers: list[tuple[Array, Ints]] = []

    def add(self, names: Array, numbers: Ints) -> None:
        """Add new names, in any order, with their numbers (at least 0). Names must not have been added before."""
        if not len(names):
            return
        layers = self._layers
        while layers and len(layers[-1][0]) <= 2 * len(names):
            before = layers.pop()
            names, numbers = stacked((before[0], names), _WHAT), np.concatenate((before[1], numbers))
        layers.append(in_order_of_names(names, numbers))

    def numbers(self, names: Array) -> Ints:
        """Return the number of each name, or -1 if it was not added."""
        found = np.full(len(names), -1)
        for layer, numbers in self._layers:
            # No layer is empty, and a name is in one layer at most.
            known, asked = of_one_kind((layer, names), _WHAT)
            places = np.minimum(_positions(known, asked), len(known) - 1)
            near = known[places]
            is_known = near == asked
            if near.dtype.kind in "fmM":
                is_known |= (near != near) & (asked != asked)  # only NaN and NaT differ from themselves
            found = np.where(is_known, numbers[places], found)
        return found


def _positions(known: Array, asked: Array) -> Ints:
    """Return how many of the sorted `known` are less than each of `asked`."""
    if known.dtype.kind != "T":
        return np.searchsorted(known, asked)
    # Up to NumPy 2.4, `searchsorted` looks for texts of more than 15 bytes in the memory of the wrong array.
    less = np.zeros(len(asked), np.int64)
    step = 1 << len(known).bit_length()
    while step := step >> 1:
        more = less + step
        is_less = known[np.minimum(more, len(known)) - 1] < asked
        less = np.where(is_less & (more <= len(known)), more, less)
    return less


def in_order_of_names(names: Array, numbers: Ints) -> tuple[Array, Ints]:
    """Return names and numbers sorted by name.

    >>> [column.tolist() for column in in_order_of_names(np.array([7, 3]), np.array([0, 1]))]
    [[3, 7], [1, 0]]
    """
    order = np.argsort(names, kind="stable")
    return names[order], numbers[order]
