"""Batches of updates: what a collection's stream carries.

An update `(data, time, diff)` means that at `time` the number of occurrences of the record `data` changes by `diff`. A
batch holds its records as columns. Its times are a small table, and a column that has for each record the place of its
time there (absent if all have the same time). Its diffs are a column (absent if all are 1). A batch is neither sorted
nor consolidated; arranging does both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from differential.data.interned import strings_of
from differential.kernels.compile import NOTHING
from differential.kernels.products import opposite
from differential.kernels.times import later_times, table_of_times, times_at_rounds, times_inside, times_outside
from timely.errors import DataError
from timely.lowlevel import (
    LIMIT,
    Buffers,
    Time,
    Typed,
    bytes_of,
    columns_from_buffers,
    columns_to_buffers,
    hashable,
    less_equal,
    read_only_views,
    register,
)

Array = NDArray[Any]
Ints = NDArray[np.int64]

_ONE: Final = np.ones(1, np.int64)
_ABSENT: Final = read_only_views((NOTHING,))[0]

FEW_TIMES: Final = 8
"""So few times, or coordinates of them, are examined one by one."""


class Updates:
    """A batch of updates.

    `columns` hold n rows; `times` is int64[T, D]; `time_index` is int64[n], or absent when T = 1; `diffs` is
    int64[n], or absent when all are 1. Immutable. A batch without rows still has columns of some types, and a time.

    >>> updates = Updates.at((7,), (np.array([1, 2]), np.array(["a", "b"])), np.array([1, -1]))
    >>> list(updates.rows())
    [((1, 'a'), (7,), 1), ((2, 'b'), (7,), -1)]
    >>> updates.each_time(), updates.each_time_index(), updates.each_diff(), updates.negated().each_diff()
    ([(7,), (7,)], array([0, 0]), array([ 1, -1]), array([-1,  1]))
    >>> updates.take(np.array([1])).with_columns((np.array([5]),)).with_times(np.array([[8]]))
    Updates([((5,), (8,), -1)])
    >>> updates.entered(1).delayed(2).times, updates.entered(1).left(1).times
    (array([[7, 2]]), array([[7]]))
    >>> updates.entered_at(np.array([2, 0]), 9).each_time(), updates.entered_at(np.array(10), 9)
    ([(7, 2), (7, 0)], None)
    """

    kind: ClassVar[str] = "updates"
    __slots__ = ("columns", "diffs", "time_index", "times")

    def __init__(
        self, columns: tuple[Array, ...], times: Ints, time_index: Ints = NOTHING, diffs: Ints = NOTHING
    ) -> None:
        self.columns = columns
        self.times = times
        self.time_index = time_index
        self.diffs = diffs

    def __reduce__(self) -> Any:
        """Return how to make a copy in another process: a class compiled to C has no other way."""
        return Updates, (self.columns, self.times, self.time_index, self.diffs)

    @classmethod
    def at(cls, time: Time, columns: tuple[Array, ...], diffs: Ints = NOTHING) -> Updates:
        """Return a batch of updates that all happen at `time`."""
        return Updates(columns, table_of_times((time,)), NOTHING, diffs)

    def __len__(self) -> int:
        return len(self.columns[0])

    @property
    def nbytes(self) -> int:
        """The bytes of records, times and diffs."""
        columns = bytes_of(self.columns)
        return columns + self.times.nbytes + self.time_index.nbytes + self.diffs.nbytes

    def with_columns(self, columns: tuple[Array, ...]) -> Updates:
        """Return other records with the same times and diffs."""
        return Updates(columns, self.times, self.time_index, self.diffs)

    def with_times(self, times: Ints) -> Updates:
        """Return the same updates under another table of times."""
        return Updates(self.columns, times, self.time_index, self.diffs)

    def delayed(self, step: int) -> Updates:
        """Return the same updates, each `step` later in the last coordinate of its time."""
        return self.with_times(later_times(plain(self.times), step))

    def entered(self, more: int) -> Updates:
        """Return the same updates at times with more coordinates, which are 0."""
        return self.with_times(times_inside(plain(self.times), more))

    def entered_at(self, rounds: Array, most: int) -> Updates | None:
        """Return the same updates in a loop, each in its own round; None unless all rounds are from 0 to `most`.

        `rounds` is an array of integers, with an item for each update or one for all.
        """
        if rounds.dtype.kind == "u" and rounds.size and int(rounds.max()) > most:
            return None
        # Unsigned rounds are in bounds now, so none becomes negative.
        each = np.full(len(self), int(rounds), np.int64) if not rounds.ndim else rounds.astype(np.int64, order="C")
        times, index = times_at_rounds(plain(self.times), plain(self.time_index), each, most)
        return None if len(self) and not len(times) else Updates(self.columns, times, index, self.diffs)

    def left(self, keep: int) -> Updates:
        """Return the same updates at times without the coordinates from `keep` on."""
        return self.with_times(times_outside(plain(self.times), keep))

    def take(self, rows: Array) -> Updates:
        """Return the given rows: positions, or a boolean mask."""
        return Updates(
            tuple(column[rows] for column in self.columns),
            self.times,
            self.time_index[rows] if len(self.time_index) else NOTHING,
            self.diffs[rows] if len(self.diffs) else NOTHING,
        )

    def is_in_advance_of(self, time: Time) -> bool:
        """Return whether each update is at or after `time`, which has as many coordinates.

        >>> updates = Updates((np.arange(2),), np.array([[3, 0], [2, 1]]), np.array([0, 1]))
        >>> updates.is_in_advance_of((2, 0)), updates.is_in_advance_of((3, 0)), updates.is_in_advance_of((2,))
        (True, False, False)
        >>> updates.take(np.array([0])).is_in_advance_of((3, 0))
        True
        """
        if self.times.shape[1] != len(time):
            return False
        if len(self.times) <= FEW_TIMES:  # to call NumPy takes longer than to compare a few numbers
            if all(less_equal(time, tuple(each)) for each in self.times.tolist()):
                return True
        elif bool((self.times >= np.array(time)).all()):
            return True
        # The table may have times that no row has: `take` leaves it as it is.
        return len(self.time_index) > 0 and bool((self.times[self.time_index] >= np.array(time)).all())

    def as_read_only(self) -> Updates:
        """Return the updates for a program to read, in read-only arrays.

        >>> Updates.at((7,), (np.array([1, 2]),)).as_read_only().times.flags.writeable
        False
        """
        columns = read_only_views(strings_of(self.columns))
        return Updates(columns, _protected(self.times), _protected(self.time_index), _protected(self.diffs))

    def for_other_worker(self) -> Updates:
        """Return the updates with arrays of strings instead of numbers in this worker's table (`data.interned`).

        >>> updates = Updates.at((7,), (np.array([1, 2]),))
        >>> updates.for_other_worker() is updates
        True
        """
        columns = strings_of(self.columns)
        return self if columns is self.columns else self.with_columns(columns)

    def negated(self) -> Updates:
        """Return the updates with the opposite diffs."""
        diffs = opposite(plain(self.diffs), len(self))
        if len(diffs) != len(self):
            raise DataError("a record that occurs -2 ** 63 times cannot be negated: 2 ** 63 does not fit into 64 bits")
        return Updates(self.columns, self.times, self.time_index, diffs)

    def each_diff(self) -> Ints:
        """Return the diffs, spelled out."""
        return self.diffs if len(self.diffs) else _ONE.repeat(len(self))

    def each_time_index(self) -> Ints:
        """Return `time_index`, spelled out."""
        return self.time_index if len(self.time_index) else np.zeros(len(self), np.int64)

    def each_time(self) -> list[Time]:
        """Return the time of every row."""
        table = [tuple(time) for time in self.times.tolist()]
        return [table[index] for index in self.time_index.tolist()] if len(self.time_index) else table * len(self)

    def rows(self) -> Iterator[tuple[tuple[Any, ...], Time, int]]:
        """Yield (record, time, diff) as Python values; a record is a tuple of its fields, which are hashable.

        Equal records are equal as Python values: every NaN is `np.nan`. Lists are tuples, and structs are tuples of
        (name, value).
        """
        records = zip(*map(_values, self.columns))
        return zip(records, self.each_time(), self.each_diff().tolist())

    def __repr__(self) -> str:
        return f"Updates({list(self.rows())})"

    def to_buffers(self) -> tuple[Any, Buffers]:
        dtypes, buffers = columns_to_buffers(self.columns)
        times = np.ascontiguousarray(self.times).reshape(-1)
        index, diffs = np.ascontiguousarray(self.time_index), np.ascontiguousarray(self.diffs)
        return [dtypes, self.times.shape[1]], [times, index, diffs, *buffers]

    @classmethod
    def from_buffers(cls, meta: Any, buffers: Sequence[memoryview]) -> Updates:
        if not isinstance(meta, (list, tuple)) or len(meta) != 2 or len(buffers) < 4:
            raise ValueError("not a batch of updates")
        dtypes, width = meta
        if not isinstance(width, int) or isinstance(width, bool) or not 0 < width < 256:
            raise ValueError("a time has between 1 and 255 coordinates")
        times, time_index, diffs = [np.frombuffer(buffer, np.int64) for buffer in buffers[:3]]
        columns = columns_from_buffers(dtypes, buffers[3:])
        length = len(columns[0]) if columns else 0
        if not columns or any(len(column) != length for column in columns):
            raise ValueError("columns of different lengths, or none")
        if len(times) % width or not len(times):
            raise ValueError("the table of times is cut off")
        if not _are_coordinates(times):
            raise ValueError("a time that no scope has")
        table = times.reshape(-1, width)
        # Kernels do not check bounds, so what another process has sent is checked here.
        if len(time_index) or len(table) > 1:
            if len(time_index) != length or not length:
                raise ValueError("not one time per row")
            if int(time_index.min()) < 0 or int(time_index.max()) >= len(table):
                raise ValueError("a time index out of range")
        if len(diffs) not in (0, length):
            raise ValueError("not one diff per row")
        return cls(columns, table, time_index, diffs)


def _protected(column: Ints) -> Ints:
    """Return a read-only view of a column, or of a table of times; always the same one of a column that is absent."""
    return read_only_views((column,))[0] if len(column) else _ABSENT


def _are_coordinates(times: Ints) -> bool:
    """Return whether numbers, at least one, may be coordinates of times."""
    if len(times) <= FEW_TIMES:
        numbers: list[int] = times.tolist()
        return min(numbers) >= 0 and max(numbers) <= LIMIT
    return int(times.view(np.uint64).max()) <= LIMIT  # as unsigned numbers, those below 0 are the largest


def _values(column: Array) -> list[Any]:
    """Return the values of a column as hashable Python objects, equal ones as equal objects."""
    items: list[Any] = column.tolist()
    if isinstance(column, Typed):
        return list(map(hashable, items)) if column.type.name.startswith("float") else items
    return list(map(hashable, items)) if column.dtype.kind == "f" and np.isnan(column).any() else items


register(Updates)  # called, for classes with decorators are compiled to less (see `hatch_build.py`)


def plain(column: Ints) -> Ints:
    """Return a column, or a table of times, as kernels take it."""
    return column if column.flags.carray else column.copy()  # aligned, contiguous, and writable


def updates_of(batch: object) -> Updates:
    """Return a batch of updates as such. Raises DataError for another one, which an ordinary stream carries.

    >>> updates_of([1, 2])
    Traceback (most recent call last):
    ...
    timely.errors.DataError: the stream of a collection carries batches of updates (differential.data.updates.Updates),
    not of type list: Collection.of(scope, ...) makes a collection of values, and new_input(scope) one that can change
    """
    if isinstance(batch, Updates):
        return batch
    raise DataError(
        "the stream of a collection carries batches of updates (differential.data.updates.Updates), not of type "
        f"{type(batch).__name__}: Collection.of(scope, ...) makes a collection of values, and new_input(scope) one "
        "that can change"
    )
