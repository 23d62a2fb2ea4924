"""The position of each node's state: a slot in arrays, for every node that a worker knows.

Invariant: `nodes[slot]` is the node of a slot; slots are 0, 1, ... without gaps; and no node has two. Slots are
assigned in the order in which nodes are included, and in increasing order of the nodes of one call.

If nodes are whole numbers not much larger than their number, a table maps each node to its slot, which takes a few
nanoseconds per row. Otherwise a lookup is a binary search among the sorted nodes, which takes some 100 nanoseconds for
100,000 nodes (`dense_renaming` avoids it).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from timely.errors import DataError
from timely.lowlevel import Array

Ints = NDArray[np.int64]

ROOM = 16
"""The largest number of entries of a table per node."""

SMALL = 1 << 16
"""The number of entries that a table may have, however few nodes there are."""

LARGEST = (1 << 63) - 1
"""The largest possible node."""


class Index:
    """A slot for each node that was included.

    >>> index = Index()
    >>> index.include(np.array([7, 3, 7])).tolist()
    [1, 0, 1]
    >>> index.slots(np.array([3, 4, 7])).tolist(), index.nodes.tolist()
    ([0, -1, 1], [3, 7])
    """

    __slots__ = ("_order", "_sorted", "_table", "nodes")

    def __init__(self) -> None:
        self.nodes: Ints = np.empty(0, np.int64)
        self._table: Ints | None = np.empty(0, np.int64)
        self._sorted = self._order = self.nodes  # without a table: the sorted nodes, and their slots

    def __len__(self) -> int:
        return len(self.nodes)

    def slots(self, nodes: Ints) -> Ints:
        """Return the slot of each node, or -1 if it has none."""
        table = self._table
        if table is None:
            # Not empty: only `_add` gives the table up, and it has nodes to add.
            places = np.minimum(np.searchsorted(self._sorted, nodes), len(self._sorted) - 1)
            return np.where(self._sorted[places] == nodes, self._order[places], -1)
        if not len(nodes):
            return np.empty(0, np.int64)
        if nodes.min() >= 0 and nodes.max() < len(table):
            return table[nodes]
        slots = np.full(len(nodes), -1)
        inside = (nodes >= 0) & (nodes < len(table))
        slots[inside] = table[nodes[inside]]
        return slots

    def include(self, nodes: Ints) -> Ints:
        """Return the slot of each node; unknown nodes get new slots, in increasing order of the nodes."""
        if not len(self.nodes) and len(nodes):
            self._add(distinct(nodes))
        slots = self.slots(nodes)
        if len(slots) and slots.min() < 0:
            self._add(distinct(nodes[slots < 0]))
            slots = self.slots(nodes)
        return slots

    def _add(self, new: Ints) -> None:
        first = len(self.nodes)
        self.nodes = np.append(self.nodes, new)
        table = self._table
        # The new nodes are in order, so the first is the least and the last the greatest.
        if table is not None and new[0] >= 0 and new[-1] < max(SMALL, ROOM * len(self.nodes)):
            if new[-1] >= len(table):
                grown = np.full(max(int(new[-1]) + 1, 3 * len(table) // 2), -1)
                grown[: len(table)] = table
                self._table = table = grown
            table[new] = np.arange(first, len(self.nodes))
        else:
            self._table = None
            self._order = np.argsort(self.nodes)
            self._sorted = self.nodes[self._order]


def distinct(nodes: Ints) -> Ints:
    """Return the distinct nodes, in order.

    >>> distinct(np.array([5, 2, 5])).tolist()
    [2, 5]
    """
    if is_increasing(nodes):
        return nodes
    if nodes.min() >= 0 and nodes.max() < max(SMALL, ROOM * len(nodes)):
        is_there = np.zeros(int(nodes.max()) + 1, np.bool_)
        is_there[nodes] = True
        return np.flatnonzero(is_there)
    return np.unique(nodes)


def is_increasing(nodes: Ints) -> bool:
    """Return whether each node is greater than the one before it, so all are distinct."""
    return bool((nodes[1:] > nodes[:-1]).all())


def as_nodes(column: Array) -> Ints:
    """Return a column of nodes as int64; raise DataError if it cannot be converted.

    >>> as_nodes(np.array([1.5]))
    Traceback (most recent call last):
    timely.errors.DataError: nodes are whole numbers, not float64: assign numbers with `dense_renaming`
    """
    if column.dtype.kind not in "iu":
        raise DataError(f"nodes are whole numbers, not {column.dtype}: assign numbers with `dense_renaming`")
    if column.dtype == np.uint64 and column.max(initial=0) > LARGEST:
        raise DataError(f"node {column.max()} is larger than {LARGEST}: assign numbers with `dense_renaming`")
    return column.astype(np.int64, copy=False)
