"""The state of nodes: columns with a row for each known node, on the worker that the node hashes to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timely.errors import DataError
from timely.graphlinq.index import Index, Ints, appended
from timely.lowlevel import Array, as_columns, call, in_type


class NodeTable:
    """A row for each node, initialised by `init(nodes)` when the node is first included.

    Invariant: each column has at least as many rows as `index` has slots; the row of a node is its slot.

    >>> table = NodeTable(lambda nodes: 10 * nodes)
    >>> slots = table.include(np.array([3, 1]))
    >>> table.rows(slots)[0].tolist()
    [30, 10]
    >>> table.put(slots[:1], (np.array([7]),)); table.rows(slots)[0].tolist()
    [7, 10]
    """

    __slots__ = ("_columns", "_init", "index")

    def __init__(self, init: Callable[..., Any]) -> None:
        self._init = init
        self._columns: tuple[Array, ...] | None = None
        self.index = Index()

    def include(self, nodes: Ints) -> Ints:
        """Return the slots of nodes; unknown nodes get a row."""
        known = len(self.index)
        slots = self.index.include(nodes)
        new = self.index.nodes[known:]
        if len(new):
            rows = as_columns(call(self._init, (new,)), len(new))
            if self._columns is None:
                # Without rows: `appended` copies the first ones, too, which may be a column of the program.
                self._columns = tuple(column[:0] for column in rows)
            rows = self._alike(rows)
            self._columns = tuple(appended(column, known, row) for column, row in zip(self._columns, rows))
        return slots

    def rows(self, slots: Ints) -> tuple[Array, ...]:
        """Return the columns of the rows at these slots, which must exist."""
        return tuple(column[slots] for column in self._columns or ())

    def put(self, slots: Ints, columns: tuple[Array, ...]) -> None:
        """Write the rows at these slots, which must exist; of several for one slot, the last is kept."""
        assert self._columns is not None
        for whole, column in zip(self._columns, self._alike(columns)):
            whole[slots] = column

    def _alike(self, columns: tuple[Array, ...]) -> tuple[Array, ...]:
        """Return columns of state converted to the types of the first ones; raise DataError if they do not fit."""
        wholes = self._columns or ()
        if len(columns) != len(wholes):
            raise DataError(f"a state of {len(columns)} column(s) was given, but before it had {len(wholes)}")
        return tuple(in_type(column, whole.dtype) for whole, column in zip(wholes, columns))
