"""Containers: a message carries a batch of records.

The usual batch is `Columns`: equally long NumPy arrays, one per field, so operators process whole batches instead of
single records. A plain `list` of arbitrary Python objects is a batch too, for records that do not fit into columns.
Operators then call user functions once per record, and a list can be sent to another process only if its records are
plain data (numbers, text, bytes, tuples).

Batches are immutable: a receiver may keep a batch, and nobody may write to it. Within a process batches are passed by
reference, so programs receive them with read-only columns (see `timely.data.user_functions`). The records of a list are
shared as they are.

Other packages add kinds of batches with `register`. A kind defines how a batch is divided for routing (`take`) and how
it becomes bytes (`to_buffers`, `from_buffers`). Bytes are never executed: `decode` is total, and raises `ValueError` on
anything that `encode` did not produce. `encode` refuses what `decode` would refuse, since the sender of a batch would
never learn of the refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, NoReturn, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from timely.arguments import check_functions
from timely.data.buffers import Buffers, columns_from_buffers, columns_to_buffers
from timely.data.column_like import ColumnLike
from timely.data.columns import as_column as as_column, as_columns as as_columns, stacked
from timely.data.logical import Array as Array
from timely.data.typed import as_filter
from timely.data.user_functions import (
    OF_A_ROW,
    as_read_only as as_read_only,
    for_other_worker as for_other_worker,
    freeze,
    read_only_views,
)
from timely.data.weight import bytes_of as bytes_of
from timely.errors import DataError


@runtime_checkable
class Container(Protocol):
    """A batch that can be routed between workers and sent between processes.

    >>> batch: Container = Columns((np.array([3, 4]),))
    >>> meta, buffers = batch.to_buffers()
    >>> Columns.from_buffers(meta, [buffer.data for buffer in buffers]).take(np.array([1]))
    Columns(array([4]))
    """

    kind: ClassVar[str]

    def __len__(self) -> int: ...

    def take(self, rows: Array) -> Self:
        """Return the batch of the given rows (int64 positions)."""

    def to_buffers(self) -> tuple[Any, Buffers]:
        """Return plain data that describes the batch, and its raw one-dimensional buffers."""

    @classmethod
    def from_buffers(cls, meta: Any, buffers: Sequence[memoryview]) -> Self:
        """Return the batch that `to_buffers` described; raise `ValueError` on anything else."""


Batch = Container | list[Any]

_kinds: dict[str, type[Container]] = {}

ContainerType = TypeVar("ContainerType", bound=type[Container])


def register(cls: ContainerType) -> ContainerType:
    """Register a kind of batch for the wire; return the class, so this can be a decorator.

    >>> @register
    ... class Readings:
    ...     kind = "readings"
    ...     def __init__(self, sensor, values):
    ...         self.sensor, self.values = sensor, values
    ...     def __len__(self):
    ...         return len(self.values)
    ...     def take(self, rows):
    ...         return Readings(self.sensor, self.values[rows])
    ...     def to_buffers(self):
    ...         return self.sensor, [self.values]
    ...     @classmethod
    ...     def from_buffers(cls, meta, buffers):
    ...         return cls(meta, np.frombuffer(buffers[0], np.float64))
    >>> kind, meta, buffers = encode(Readings("cellar", np.array([12.5, 12.25])))
    >>> decode(kind, meta, [buffer.data for buffer in buffers]).sensor
    'cellar'
    """
    _kinds[cls.kind] = cls
    return cls


@register
class Columns:
    """A batch of records as equally long one-dimensional arrays. Raises `DataError` if their lengths differ.

    >>> batch = Columns((np.arange(3), np.array([0.5, 1.5, 2.5])))
    >>> len(batch), list(batch.rows())
    (3, [(0, 0.5), (1, 1.5), (2, 2.5)])
    >>> list(batch.take(np.array([2, 2, 0])).rows())
    [(2, 2.5), (2, 2.5), (0, 0.5)]
    >>> list(batch.compress(batch.columns[1] > 1).rows())
    [(1, 1.5), (2, 2.5)]
    """

    kind: ClassVar[str] = "columns"
    __slots__ = ("columns",)

    def __init__(self, columns: tuple[Array, ...]) -> None:
        if len(columns) > 1:
            length = len(columns[0])
            for column in columns:
                if len(column) != length:
                    raise DataError(
                        "the columns of a batch are arrays of one dimension and one length, not of lengths "
                        f"{', '.join(str(len(each)) for each in columns)}"
                    )
        self.columns = columns

    @staticmethod
    def of_equals(columns: tuple[Array, ...]) -> Columns:
        """Return a batch of columns, which must be equally long. This is not checked.

        >>> Columns.of_equals((np.arange(2), np.arange(2) * 10))
        Columns(array([0, 1]), array([ 0, 10]))
        """
        batch = Columns.__new__(Columns)
        batch.columns = columns
        return batch

    def __len__(self) -> int:
        return len(self.columns[0])

    def __iter__(self) -> NoReturn:
        raise TypeError("Columns are not a sequence of records: rows() yields these, and `columns` has the arrays")

    def __repr__(self) -> str:
        return f"Columns({', '.join(map(repr, self.columns))})"

    @property
    def nbytes(self) -> int:
        """The size of the columns in bytes (see `bytes_of`)."""
        return bytes_of(self.columns)

    def take(self, rows: Array) -> Columns:
        """Return the records at the positions `rows`, in that order."""
        return Columns.of_equals(tuple(column[rows] for column in self.columns))

    def compress(self, mask: Array) -> Columns:
        """Return the records for which the boolean column `mask` is true."""
        return Columns.of_equals(tuple(column[mask] for column in self.columns))

    def as_read_only(self) -> Columns:
        """Return the records for a program to read, in read-only columns.

        >>> Columns((np.arange(2),)).as_read_only().columns[0].flags.writeable
        False
        """
        return Columns.of_equals(read_only_views(self.columns))

    def rows(self) -> Iterator[Any]:
        """Yield the records as Python values: scalars for one column, tuples for several. Costs an object per field."""
        if len(self.columns) == 1:
            return iter(self.columns[0].tolist())
        return zip(*(column.tolist() for column in self.columns))

    def to_buffers(self) -> tuple[Any, Buffers]:
        return columns_to_buffers(self.columns)

    @classmethod
    def from_buffers(cls, meta: Any, buffers: Sequence[memoryview]) -> Columns:
        columns = columns_from_buffers(meta, buffers)
        if not columns or len(set(map(len, columns))) > 1:
            raise ValueError("columns of different lengths")
        return cls.of_equals(columns)


def of_columns(batch: Batch) -> tuple[Array, ...]:
    """Return the columns of a batch; raise DataError if it does not consist of columns.

    >>> of_columns(Columns((np.array([3, 4]),)))
    (array([3, 4]),)
    >>> of_columns([3, 4])
    Traceback (most recent call last):
        ...
    timely.errors.DataError: this operator takes batches of columns, not of kind 'list'; Columns((array, ...)) makes one
    """
    if isinstance(batch, Columns):
        return batch.columns
    kind = "list" if isinstance(batch, list) else check_batch(batch).kind
    raise DataError(f"this operator takes batches of columns, not of kind {kind!r}; Columns((array, ...)) makes one")


def check_batch(batch: Any) -> Any:
    """Return a batch given by a program; raise DataError if it is not one, or its columns differ in length.

    >>> check_batch(np.arange(2))
    Traceback (most recent call last):
    ...
    timely.errors.DataError: a batch is Columns((array, ...)) or a list of records, not of type ndarray
    """
    if isinstance(batch, Columns):
        shapes = {getattr(column, "shape", None) for column in batch.columns}
        if len(shapes) != 1 or len(shapes.pop() or ()) != 1:
            raise DataError(f"the columns of a batch are arrays of one dimension and one length, not {batch!r:.200}")
    elif not (isinstance(batch, list) or hasattr(type(batch), "kind")):
        raise DataError(f"a batch is Columns((array, ...)) or a list of records, not of type {type(batch).__name__}")
    return batch


def frozen(batch: Any) -> Batch:
    """Return a batch given by a program, which nobody can write to any more.

    Arrays become read-only, so a program that writes to one later gets an error; views of writable memory are copied,
    and so are lists, but not their records. Raises DataError if the value is not a batch.

    >>> numbers = np.arange(2)
    >>> frozen(Columns((numbers,))), numbers.flags.writeable
    (Columns(array([0, 1])), False)
    """
    checked = check_batch(batch)
    if isinstance(checked, Columns):
        return Columns.of_equals(freeze(checked.columns))
    return checked[:] if isinstance(checked, list) else checked


def own_columns(values: Any) -> tuple[Array, ...]:
    """Return what `as_columns` returns, in arrays that share no memory with the given ones.

    >>> given = np.arange(2)
    >>> own_columns(given)[0] is given
    False
    """
    # Where `as_columns` does not return the value itself, it has made an array of its own.
    given = values if isinstance(values, tuple) else (values,)
    return tuple([column.copy() if column is value else column for column, value in zip(as_columns(given), given)])


def as_mask(mask: Any, length: int) -> NDArray[np.bool_]:
    """Return the result of a predicate as a boolean column of the given length; raise `DataError` if it is not one.

    A null is False.

    >>> as_mask([True, False], 2), as_mask(True, 2)
    (array([ True, False]), array([ True,  True]))
    """
    array = np.asarray(as_filter(mask))
    if array.dtype.kind != "b" or array.shape not in ((), (length,)):
        raise DataError(
            f"a predicate must return a boolean column of length {length}, got dtype {array.dtype}, shape {array.shape}"
        )
    return array if array.ndim else np.full(length, array)


def as_row_mask(mask: Any, length: int) -> NDArray[np.bool_]:
    """Return what `as_mask` does, but raise `DataError` for one value.

    Whether a batch has a value, say, is not a condition on its rows. It may differ for the batch that retracts a row.

    >>> as_row_mask("an" in np.array(["ann", "an"]), 2)
    Traceback (most recent call last):
    ...
    timely.errors.DataError: a predicate must return a boolean column of length 2, and returned one value, True: ...
    """
    if isinstance(mask, (bool, np.bool_)):
        raise DataError(
            f"a predicate must return a boolean column of length {length}, and returned one value, {mask}: it receives "
            "whole columns. `in`, `is None` and `len` of a column are about the column; for each row there are "
            "np.isin, np.strings.find, is_null of differential.frames and np.strings.str_len, and timely.rowwise for "
            "everything else. "
            "np.full(len(column), True) is True for each row"
        )
    return as_mask(mask, length)


def rowwise(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of columns that calls `function` once per row, for what cannot be expressed on whole columns.

    `function` receives the values of one row and returns a value or a tuple of values. This costs about a microsecond
    per row, a hundred times as much as arithmetic on columns. In a batch that is a list, `function` receives each
    record as it is.

    >>> rowwise(lambda name, times: name * times)(np.array(["ab", "c"]), np.array([2, 3])).tolist()
    ['abab', 'ccc']
    """
    check_functions("rowwise", function=function)

    def over_columns(*columns: Any) -> Any:
        if not all(isinstance(column, (np.ndarray, ColumnLike)) and column.ndim for column in columns):
            return function(*columns)
        row: tuple[Any, ...] = ()
        rows = []
        try:
            for row in zip(*(column.tolist() for column in columns)):
                rows.append(function(*row))
        except Exception as error:
            error.add_note(f"{OF_A_ROW}{row!r:.160}")
            raise
        widths = set(map(_width, rows))
        if len(widths) > 1:
            one, other = (next(row for row in rows if _width(row) == width) for width in list(widths)[:2])
            raise DataError(f"a function of rows returned {one!r:.80} for one row and {other!r:.80} for another")
        if rows and isinstance(rows[0], tuple):
            return tuple(as_column(list(field)) for field in zip(*rows))
        return as_column(rows)

    over_columns.rowwise = function  # type: ignore[attr-defined]
    return over_columns


def _width(row: Any) -> int | None:
    return len(row) if isinstance(row, tuple) else None


def concatenate(batches: Sequence[Columns]) -> Columns:
    """Return one batch with the records of all batches, in order.

    Raises DataError if the batches differ in width, or in the kind of a column (see `columns.of_one_kind`).

    >>> concatenate([Columns((np.array([1, 2]),)), Columns((np.array([3]),))])
    Columns(array([1, 2, 3]))
    """
    if len(batches) == 1:
        return batches[0]
    widths = {len(batch.columns) for batch in batches}
    if len(widths) > 1:
        raise DataError(f"batches of {' and of '.join(map(str, sorted(widths)))} columns cannot be concatenated")
    columns = zip(*(batch.columns for batch in batches))
    return Columns.of_equals(tuple(stacked(parts, f"column {position}") for position, parts in enumerate(columns)))


def records(batch: Batch) -> Iterator[Any]:
    """Yield the records of a batch as Python values.

    >>> list(records(Columns((np.array([1, 2]), np.array([0.5, 1.5])))))
    [(1, 0.5), (2, 1.5)]
    """
    if isinstance(batch, list):
        return iter(batch)
    if isinstance(batch, Columns):
        return batch.rows()
    raise DataError(f"a batch of kind {check_batch(batch).kind!r} has no individual records")


def take(batch: Batch, rows: Array) -> Batch:
    """Return the batch of the given rows, of the same kind as `batch`.

    >>> take(["a", "b", "c"], np.array([2, 0]))
    ['c', 'a']
    """
    if isinstance(batch, list):
        return [batch[row] for row in rows.tolist()]
    return batch.take(rows)


def encode(batch: Batch) -> tuple[str, Any, Buffers]:
    """Return (kind, plain data, raw buffers) of a batch, for the wire.

    Raises DataError if no process could decode it: its kind is not registered, or a column has an unsupported type.

    >>> encode(Columns((np.arange(3),)))
    ('columns', ['<i8'], [array([0, 1, 2])])
    """
    if isinstance(batch, list):
        return "list", batch, []
    kind = batch.kind
    if kind not in _kinds:
        raise DataError(
            f"a batch of kind {kind!r} cannot be sent to another process: call timely.data.container.register with its "
            f"class, `{type(batch).__qualname__}`, in a module that all processes import"
        )
    meta, buffers = batch.to_buffers()
    return kind, meta, buffers


def decode(kind: Any, meta: Any, buffers: Sequence[memoryview]) -> Batch:
    """Return the batch that `encode` encoded; raise `ValueError` on anything else.

    >>> decode("columns", ["<i8"], [np.arange(3).data])
    Columns(array([0, 1, 2]))
    >>> decode("columns", ["<i8"], [])
    Traceback (most recent call last):
        ...
    ValueError: fewer buffers than columns
    """
    if kind == "list":
        if not isinstance(meta, (list, tuple)) or buffers:
            raise ValueError("a list batch must be a sequence of records")
        return list(meta)
    cls = _kinds.get(kind) if isinstance(kind, str) else None
    if cls is None:
        raise ValueError(f"unknown kind of batch {kind!r}")
    return cls.from_buffers(meta, buffers)
