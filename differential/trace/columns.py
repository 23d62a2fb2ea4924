"""The columns of updates: in a block, or in arrays of their own.

Kernels read columns by a *head*: an array that begins with the row that stands for them in a table of batches, and
that keeps them alive (`differential.kernels.memory`). Few rows are in a block, which is its own head
(`differential.kernels.blocks`): one array from the kernel that makes it to the kernels that read it. Python's views of
its columns are made when they are first asked for. Other columns are in arrays, and their head is made at its first
use: of few rows it is a block with copies, which costs less than references to the arrays.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.blocks import columns_of, entered_block, pack_block
from differential.kernels.compile import NOTHING, Ints, Table
from differential.kernels.memory import address_of
from differential.trace.table import owning
from timely.lowlevel import Time

Rows = tuple[Ints, Ints, Ints, Ints, Table]
"""Keys, values, time index, diffs and the table of times."""


FEW = 256
"""At most this many rows are copied into a block."""


class UpdateColumns:
    """Keys, values, time index, diffs and the table of times of updates. Immutable.

    >>> columns = UpdateColumns.of((np.array([3, 5]), NOTHING, NOTHING, NOTHING, np.array([[7]])))
    >>> len(columns), columns.time_count, columns.depth, columns.head[:1].tolist()
    (2, 1, 1, [2])
    >>> columns.entered().rows[4].tolist()
    [[7, 0]]
    """

    __slots__ = ("_head", "_length", "_outside", "_rows", "_rows_at", "depth", "is_block", "is_sealed", "time_count")

    def __init__(self, length: int, time_count: int, depth: int, head: Ints | None, rows: Rows | None) -> None:
        """Take either a block, as `head`, or arrays."""
        self._length = length
        self.time_count = time_count
        """The number of times."""
        self.depth = depth
        """The number of coordinates of a time."""
        self._head = head
        self._rows = rows
        self._rows_at: Ints | None = None
        self._outside: UpdateColumns | None = None
        self.is_block = rows is None
        """Whether these are in a block."""
        self.is_sealed = False
        """Whether these are known to be sorted and consolidated."""

    @classmethod
    def of(cls, rows: Rows) -> UpdateColumns:
        """Return columns that are in arrays."""
        times = rows[4]
        return UpdateColumns(len(rows[0]), len(times), times.shape[1], None, rows)

    def __len__(self) -> int:
        return self._length

    @property
    def head(self) -> Ints:
        """What kernels read the columns by."""
        head = self._head
        if head is None:
            assert self._rows is not None
            if self._length <= FEW:
                keys, vals, index, diffs, times = self._rows
                head = self._head = pack_block(keys, vals, index, diffs, times)
            else:
                # The head consists of addresses, so it must own the arrays: a table may outlive these columns.
                head = self._head = owning([address_of(*self._rows)], self._rows)[0]
        return head

    @property
    def rows(self) -> Rows:
        """The columns as arrays."""
        rows = self._rows
        if rows is None:
            assert self._head is not None
            # Kept: an interner holds weak references to these arrays, by which it knows that their codes are in use.
            rows = self._rows = columns_of(self._head)
        return rows

    def time(self) -> Time:
        """Return the time of all rows, where there is one."""
        if self._rows is None:
            assert self._head is not None
            return tuple(self._head[-self.depth :].tolist())  # the times are the last items of a block
        return tuple(self._rows[4][0].tolist())

    @property
    def rows_at(self) -> Ints:
        """How many rows there are at each time."""
        if self._rows_at is None:
            index = self.rows[2] if self.time_count > 1 or not self._length else np.zeros(self._length, np.int64)
            self._rows_at = np.bincount(index, minlength=self.time_count)
        return self._rows_at

    def with_rows_at(self, rows_at: Ints | None) -> UpdateColumns:
        """Return these columns, of which it is known how many rows there are at each time."""
        self._rows_at = rows_at
        return self

    def entered(self) -> UpdateColumns:
        """Return the columns as an inner scope sees them, with one more coordinate, 0, in each time."""
        if self.is_block:
            entered = UpdateColumns(self._length, self.time_count, self.depth + 1, entered_block(self.head), None)
        else:
            keys, vals, index, diffs, times = self.rows
            inside = np.zeros((len(times), self.depth + 1), np.int64)
            inside[:, :-1] = times
            entered = UpdateColumns(
                self._length, self.time_count, self.depth + 1, None, (keys, vals, index, diffs, inside)
            )
        # What codes mean is known for as long as the columns outside exist (`arrangement.arranged.watcher`).
        entered._outside = self
        return entered


def nothing(depth: int) -> UpdateColumns:
    """Return columns without rows, for times of `depth` coordinates."""
    return UpdateColumns.of((NOTHING, NOTHING, NOTHING, NOTHING, np.empty((0, depth), np.int64)))
