"""What a user hands over as columns: arrays, lists, scalars, and whatever NumPy makes arrays of.

A column holds integers, floats, booleans, text or bytes, all of one kind, and nothing that is missing. What is
something else is refused with an error that names the value and its row, never converted: a text is not made of a
number beside texts, nor a rounded float of a whole number beside floats.

Arrays that are columns already are handed on as they are, after a look at their type.
"""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timely.errors import DataError

Array = NDArray[Any]


def as_columns(values: Any, length: int | None = None) -> tuple[Array, ...]:
    """Return what a user handed over (an array, a scalar, or a tuple of them) as equally long columns.

    Scalars are repeated to `length` (or to the length of the arrays beside them; one record when there are none).
    Text becomes NumPy's variable-width string type. Raises `DataError` where there is no column, and on
    anything that is none.

    >>> [column.tolist() for column in as_columns((np.array([1, 2]), "a"))]
    [[1, 2], ['a', 'a']]
    """
    given = values if isinstance(values, tuple) else (values,)
    if not given:
        raise DataError("a record has at least one column; there is none")
    if _are_columns(given, length):
        return given
    columns = tuple(as_column(value) for value in given)
    if length is None:
        length = next((len(column) for column in columns if column.ndim), 1)
    for position, column in enumerate(columns):
        if column.ndim > 1 or (column.ndim == 1 and len(column) != length):
            rows = "; rows become columns by tuple(array.T), or tuple(zip(*rows))" if column.ndim > 1 else ""
            raise DataError(
                f"column {position} has shape {column.shape}; every column of a batch must be one-dimensional "
                f"and of the same length, here {length}{rows}"
            )
    if all(column.ndim for column in columns):
        return columns
    return tuple(column if column.ndim else np.full(length, column, column.dtype) for column in columns)


TEXT = np.dtypes.StringDType()
"""The type of columns of text."""

_KINDS = "biufT"
"""The kinds of arrays that are columns as they are: booleans, integers, floats, text."""


def _are_columns(values: tuple[Any, ...], length: int | None) -> bool:
    """Whether values are columns as they are, of the length if one is given: most are."""
    for value in values:
        if type(value) is not np.ndarray or value.ndim != 1:
            return False
        kind = value.dtype.kind
        if kind not in _KINDS or (kind == "T" and value.dtype != TEXT):
            return False
        if length is None:
            length = len(value)
        elif len(value) != length:
            return False
    return True


def as_column(value: Any) -> Array:
    """Return an array (zero-dimensional for a scalar) of a kind that columns can have.

    Text becomes NumPy's variable-width string type. Bytes become an array of objects, for NumPy's fixed-width types do
    not tell b"a" from b"a\\0"; where the value is such an array already, NumPy has dropped the zeros at the end.

    Raises DataError on anything else: values of several kinds, None, masked values, integers of more than 64 bits.

    >>> as_column([1, 2]), as_column(["to", "be"]).dtype, as_column([b"to"]).dtype
    (array([1, 2]), StringDType(), dtype('O'))
    """
    column: Array = value if isinstance(value, np.ndarray) else _from_python(value)
    kind = column.dtype.kind
    if kind == "O":
        if not column.size:
            return column.astype(TEXT)
        return _of_items(column.reshape(-1).tolist()).reshape(column.shape)
    if isinstance(column, np.ma.MaskedArray):
        if np.ma.is_masked(column):
            row = int(np.argmax(column.mask))
            raise DataError(f"cannot make a column of masked values, as at row {row}{_LEAVE_OUT}")
        return column.data
    if kind == "T" and hasattr(column.dtype, "na_object"):
        return _of_items(column.reshape(-1).tolist()).reshape(column.shape)
    if kind in _KINDS:
        return column
    if kind == "U":
        # By way of Python's strings: NumPy's own conversion takes 0.3 to 1 us for each character.
        return np.asarray(column.tolist(), TEXT)
    if kind == "S":
        return column.astype(np.object_)
    hint = "; .astype(np.int64) makes numbers of times" if kind in "mM" else ""
    raise DataError(f"cannot make a column of {column.dtype}{_COLUMNS_HOLD}{hint}")


_COLUMNS_HOLD = ": a column holds integers, floats, booleans, text or bytes"
_LEAVE_OUT = ": leave such rows out, or put a value of the column's kind in their place"
_EXACT = 1 << 53
"""Floats tell whole numbers apart up to here."""


def _from_python(value: Any) -> Array:
    """Return Python values as an array, of objects where it is not plain what they are."""
    if isinstance(value, (list, tuple)):
        return _of_items(value)
    if isinstance(value, str):
        return _of_items([value]).reshape(())
    return np.asarray(value, np.object_ if isinstance(value, bytes) else None)


def _of_items(items: Sequence[Any]) -> Array:
    """Return the column of values that Python holds: all text, all bytes, or all numbers."""
    types = set(map(type, items))
    if all(issubclass(each, str) for each in types) and types:
        try:
            return np.asarray(items, TEXT)
        except UnicodeEncodeError as error:
            raise DataError(f"cannot make a column of text that is no Unicode: {error}") from None
    if all(issubclass(each, bytes) for each in types) and types:
        column = np.empty(len(items), np.object_)
        column[:] = items
        return column
    if all(issubclass(each, _NUMBERS) for each in types):
        return _of_numbers(items, types)
    if types <= {list, tuple, np.ndarray}:
        raise DataError(
            "a column holds one value for each row, no lists or tuples; rows become columns by tuple(zip(*rows)), or "
            "tuple(array.T)"
        )
    first = items[0]
    row = next((row for row, item in enumerate(items) if not _alike(item, first)), 0)
    beside = f" at row {row}, beside {_shown(first)}" if row else ""
    hint = "; list() makes values of what yields them" if hasattr(first, "__next__") else ""
    if row or first is None:
        hint = _LEAVE_OUT
    raise DataError(f"cannot make a column of {_shown(items[row])}{beside}{_COLUMNS_HOLD}, all of one kind{hint}")


def _shown(value: Any) -> str:
    return f"{reprlib.repr(value)} ({type(value).__name__})"


_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)


def _alike(one: Any, other: Any) -> bool:
    """Whether two values may be in one column."""
    return any(isinstance(one, kind) and isinstance(other, kind) for kind in (str, bytes, _NUMBERS))


def _of_numbers(items: Sequence[Any], types: set[type]) -> Array:
    """Return the column of Python's or NumPy's numbers; raise DataError rather than round a whole one."""
    column = np.asarray(items)
    if column.dtype.kind in "iub":
        return column
    whole = [int(item) for item in items if isinstance(item, (int, np.integer))] if types - _FLOATS else []
    largest = max(whole, key=abs, default=0)
    if len(whole) == len(items):
        if whole and min(whole) >= 0 and largest < 1 << 64:
            return np.asarray(items, np.uint64)
        if whole:
            raise DataError(f"cannot make a column of {largest}: its integers are too large for 64 bits together")
    elif abs(largest) > _EXACT:
        raise DataError(f"cannot make a column of {largest} and of floats: as a float it would be rounded")
    return column


_FLOATS = {float, np.float64, np.float32, np.float16}
