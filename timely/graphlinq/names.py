"""Numbers by name, as names come.

The names are in layers, each sorted; one is put together with the one before it when it is at least half as large. So
the layers are about as many as the names have binary digits, a name is sorted anew about as often, and to look some up
is a binary search in each layer, however many there are.
"""

from __future__ import annotations

import numpy as np

from timely.data.columns import of_one_kind, stacked
from timely.data.container import Array
from timely.graphlinq.index import Ints

_WHAT = "what has a number"


class Names:
    """The number of each name that was added.

    >>> names = Names()
    >>> names.add(np.array([70, 30]), np.array([0, 1]))
    >>> names.add(np.array([50]), np.array([2]))
    >>> names.numbers(np.array([30, 40, 50])).tolist()
    [1, -1, 2]
    """

    __slots__ = ("_layers",)

    def __init__(self) -> None:
        self._layers: list[tuple[Array, Ints]] = []

    def add(self, names: Array, numbers: Ints) -> None:
        """Add names that were not added before, in any order, with a number from 0 on for each."""
        if not len(names):
            return
        layers = self._layers
        layers.append(in_order_of_names(names, numbers))
        while len(layers) > 1 and len(layers[-2][0]) <= 2 * len(layers[-1][0]):
            last, before = layers.pop(), layers.pop()
            names, numbers = stacked((before[0], last[0]), _WHAT), np.concatenate((before[1], last[1]))
            layers.append(in_order_of_names(names, numbers))

    def numbers(self, names: Array) -> Ints:
        """Return the number of each name; -1 for one that was not added."""
        found = np.full(len(names), -1)
        for layer, numbers in self._layers:
            known, asked = of_one_kind((layer, names), _WHAT)
            places = np.minimum(np.searchsorted(known, asked), len(known) - 1)
            found = np.where(known[places] == asked, numbers[places], found)
        return found


def in_order_of_names(names: Array, numbers: Ints) -> tuple[Array, Ints]:
    """Return both, sorted by name.

    >>> [column.tolist() for column in in_order_of_names(np.array([7, 3]), np.array([0, 1]))]
    [[3, 7], [1, 0]]
    """
    order = np.argsort(names, kind="stable")
    return names[order], numbers[order]
