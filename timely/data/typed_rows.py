"""The rows of a typed column: what they store, and how they are moved."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from timely.data.column_like import ColumnLike
from timely.data.fingerprints import hashed
from timely.data.logical import Array, LogicalType
from timely.data.moments import time_name
from timely.data.weight import bytes_of
from timely.errors import DataError


class TypedRows(ColumnLike):
    """Rows of values of a logical type, which `storage` has as a column of a plain kind."""

    __slots__ = ("_array", "dtype", "storage", "type")
    base = None
    """What NumPy's arrays call the array whose memory they show: nobody else can reach the values."""

    def __init__(self, type: LogicalType, storage: Array) -> None:
        """Take a column of the kind that the type is stored as."""
        self.type = type
        self.storage = storage
        self.dtype = type.dtype
        self._array: Array | None = None

    @property
    def compared_as(self) -> str | None:
        return self.type.compared_as

    @property
    def nbytes(self) -> int:
        """The bytes of the storage, and of the text or bytes to which it refers (see `bytes_of`)."""
        return bytes_of((self.storage,))

    def __len__(self) -> int:
        return len(self.storage)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        array = self._array
        if array is None:
            if self.type.is_strict:
                refuse_nulls(self)
            array = self.type.array(self.storage)
            if array is self.storage:
                # Only a view becomes read-only: the flags of the storage belong to whoever made it.
                array = array[:]
            array.setflags(write=False)
            self._array = array
        if dtype is not None and np.dtype(dtype) != array.dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def __getitem__(self, rows: Any) -> Any:
        if rows is ...:
            return self  # immutable, so it is a view of itself
        if isinstance(rows, slice):
            return self if rows == _WHOLE else self._of(self.storage[rows])
        if isinstance(rows, TypedRows):
            rows = as_filter(rows)
        if isinstance(rows, (list, np.ndarray)):
            storage = self.storage[rows]
            if storage.ndim == 1:
                return self._of(storage)
        if isinstance(rows, (int, np.integer)):
            return self[[rows]].tolist()[0]
        return np.asarray(self)[rows]

    def __repr__(self) -> str:
        return f"typed({self.tolist()!r:.300}, {self.type.name!r})"

    def tolist(self) -> list[Any]:
        """Return the values as Python objects, None for a null."""
        return self.type.to_list(self.storage)

    def copy(self, order: str = "C") -> Self:
        """Return the column, which nobody can change."""
        return self

    def take(self, rows: Any) -> Self:
        return self._of(self.storage.take(rows))

    def repeat(self, times: Any, axis: int | None = None) -> Self:
        return self._of(self.storage.repeat(times, axis))

    def hashes(self) -> NDArray[np.uint64]:
        return hashed(self.storage)

    def _of(self, storage: Array) -> Self:
        return type(self)(self.type, storage)


_WHOLE = slice(None)


def is_null(column: Any) -> NDArray[np.bool_]:
    """Return which rows of a column are null. A plain column has none, unless it is of times: NaN is a float.

    >>> from timely.data.typed import typed
    >>> is_null(typed(["a", None], "text?")).tolist(), is_null(np.array([np.nan])).tolist()
    ([False, True], [False])
    """
    if isinstance(column, TypedRows):
        return column.type.nulls(column.storage)
    array = np.asarray(column)
    return np.isnat(array) if array.dtype.kind in "mM" else np.zeros(len(array), np.bool_)


def name_of(column: Any) -> str:
    """Return the name of the type of a column.

    >>> from timely.data.typed import typed
    >>> name_of(np.array([1])), name_of(np.array([0.5])), name_of(typed(["a"], "text?"))
    ('int64', 'float64', 'text?')
    """
    if isinstance(column, TypedRows):
        return column.type.name
    kind = column.dtype.kind
    if kind == "f":
        return str(column.dtype.name)
    if kind in "mM":
        return time_name(column.dtype)
    return {"b": "bool", "T": "text", "U": "text", "O": "bytes", "S": "bytes"}.get(kind, "int64")


def as_filter(column: Any) -> Any:
    """Return a column of booleans as an array, in which a null is False."""
    if isinstance(column, TypedRows) and column.type.name == "bool?":
        return np.asarray(column.storage == 1)
    return column


def refuse_nulls(column: Any) -> None:
    """Raise DataError if a row is null."""
    missing = is_null(column)
    if missing.any():
        of = column.type if isinstance(column, TypedRows) else column.dtype
        raise DataError(
            f"row {int(np.argmax(missing))} of a column of {of} is a null, which this function cannot see: "
            "fill_null(column, value) replaces nulls, and ~is_null(column) finds others, with fill_null and is_null "
            "of differential.frames"
        )
