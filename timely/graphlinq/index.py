"""The position of each node's state: a slot in arrays, for every node that a worker knows.

Invariant: `nodes[slot]` is the node of a slot; slots are 0, 1, ... without gaps; and no node has two. Slots are
assigned in the order in which nodes are included, and in increasing order of the nodes of one call.

If nodes are whole numbers not much larger than their number, a table maps each node to its slot, which takes a few
nanoseconds per row. Otherwise a lookup is a binary search in sorted layers (`timely.graphlinq.names`), which takes some
100 nanoseconds for 100,000 nodes of one call (`dense_renaming` avoids it). Nodes that are included a few at a time cost
no more than a logarithmic number of sorts and copies each.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from timely.errors import DataError
from timely.graphlinq.names import NodeNumbers
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

    __slots__ = ("_numbers", "_room", "_size", "_table")

    def __init__(self) -> None:
        self._room: Ints = np.empty(0, np.int64)
        self._size = 0
        self._table: Ints | None = np.empty(0, np.int64)
        self._numbers = NodeNumbers()  # without a table: the slot of each node

    def __len__(self) -> int:
        return self._size

    @property
    def nodes(self) -> Ints:
        """The nodes, in the order of their slots. Nobody may write to them."""
        return self._room[: self._size]

    def slots(self, nodes: Ints) -> Ints:
        """Return the slot of each node, or -1 if it has none."""
        table = self._table
        if table is None:
            return self._numbers.numbers(nodes)
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
        if not self._size and len(nodes):
            self._add(distinct(nodes))
        slots = self.slots(nodes)
        if len(slots) and slots.min() < 0:
            self._add(distinct(nodes[slots < 0]))
            slots = self.slots(nodes)
        return slots

    def _add(self, new: Ints) -> None:
        first, end = self._size, self._size + len(new)
        self._room, self._size = appended(self._room, first, new), end
        table = self._table
        # The new nodes are in order, so the first is the least and the last the greatest.
        if table is not None and new[0] >= 0 and new[-1] < max(SMALL, ROOM * end):
            if new[-1] >= len(table):
                grown = np.full(max(int(new[-1]) + 1, 3 * len(table) // 2), -1)
                grown[: len(table)] = table
                self._table = table = grown
            table[new] = np.arange(first, end)
        elif table is None:
            self._numbers.add(new, np.arange(first, end))
        else:
            self._table = None
            self._numbers.add(self.nodes, np.arange(end))


def appended(column: Array, length: int, more: Array) -> Array:
    """Return a column with `more` from row `length` on; if it must grow, it gets room for as many rows again.

    >>> appended(np.array([1, 2, 0]), 2, np.array([3])).tolist()
    [1, 2, 3]
    """
    end = length + len(more)
    if end > len(column):
        grown = np.empty(max(end, 2 * length), column.dtype)
        grown[:length] = column[:length]
        column = grown
    column[length:end] = more
    return column


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


def check_edges(columns: tuple[Array, ...]) -> None:
    """Raise DataError unless these are the columns of edges, of which there are two at least.

    >>> check_edges(([(1, 2)],))
    Traceback (most recent call last):
    timely.errors.DataError: edges are columns (source, target, values ...), not a single column or records in a list
    """
    if len(columns) < 2:
        raise DataError("edges are columns (source, target, values ...), not a single column or records in a list")


def as_nodes(column: Array) -> Ints:
    """Return a column of nodes as int64; raise DataError if it cannot be converted.

    >>> as_nodes(np.array([1.5]))
    Traceback (most recent call last):
    timely.errors.DataError: nodes are whole numbers, not float64: assign numbers with `dense_renaming`
    """
    if isinstance(column, list):
        raise DataError("nodes are a column of whole numbers, not records in a list")
    if column.dtype.kind not in "iu":
        raise DataError(f"nodes are whole numbers, not {column.dtype}: assign numbers with `dense_renaming`")
    if column.dtype == np.uint64 and column.max(initial=0) > LARGEST:
        raise DataError(f"node {column.max()} is larger than {LARGEST}: assign numbers with `dense_renaming`")
    return column.astype(np.int64, copy=False)
