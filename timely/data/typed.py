"""Typed columns: a column of a plain kind, and the logical type of the values that it stores.

A typed column behaves as the read-only array of its values. What only moves rows keeps the type: slices, masks,
positions, `take`, `repeat`, `np.concatenate` and `np.where`. Everything else sees the array (see `docs/types.md`) and
makes columns of the types that NumPy gives them. So a type is lost only where values are computed.

Some types have no array with nulls in it: "integers or null" is one. For these, functions of NumPy that work element by
element leave nulls out, and return a column with a null in the same rows. Any other function raises an error where
there is a null.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast
from zlib import adler32, crc32

import numpy as np
from numpy.typing import NDArray

from timely.data.column_like import ColumnLike
from timely.data.comparisons import COMPARISONS, refuse_comparison, refuse_members
from timely.data.logical import OBJECT, TEXT, Array, LogicalType
from timely.data.moments import as_operand, time_name
from timely.data.nullable import of_strings
from timely.data.numeric import Booleans, Decimals, Floats, Numbers
from timely.data.stated import stated
from timely.data.strings import exact_operand
from timely.data.types import logical_type
from timely.data.units import applied
from timely.errors import DataError


class Typed(ColumnLike):
    """A column of a logical type.

    >>> column = typed([3, None, 5], "int64?")
    >>> (column + 1).tolist(), (column > 3).tolist(), column[::2].tolist(), is_null(column).tolist()
    ([4, None, 6], [False, None, True], [3, 5], [False, True, False])
    >>> np.sort(column)
    Traceback (most recent call last):
    ...
    timely.errors.DataError: row 1 of a column of int64? is a null, which this function cannot see: ...
    """

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
        """What kind of values the column holds, where it is compared."""
        return self.type.compared_as

    @property
    def nbytes(self) -> int:
        """The bytes of the storage."""
        return self.storage.nbytes

    def __len__(self) -> int:
        return len(self.storage)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        array = self._array
        if array is None:
            if self.type.is_strict:
                missing = self.type.nulls(self.storage)
                if missing.any():
                    raise DataError(
                        f"row {int(np.argmax(missing))} of a column of {self.type} is a null, which this function "
                        "cannot see: fill_null(column, value) replaces nulls, and ~is_null(column) finds others, "
                        "with fill_null and is_null of differential.frames"
                    )
            array = self.type.array(self.storage)
            if array is self.storage:
                array = array[:]
            array.setflags(write=False)
            self._array = array
        if dtype is not None and np.dtype(dtype) != array.dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if ufunc in COMPARISONS and method == "__call__":
            refuse_comparison(*inputs)
        inputs = tuple(map(exact_operand, inputs))
        if method == "__call__" and not options and any(map(_leaves_nulls_out, inputs)):
            return _skipping_nulls(ufunc, inputs)
        plain = list(map(_plain, inputs))
        if self.dtype.kind in "mM":
            is_instant = any(getattr(each.type, "zone", None) for each in inputs if isinstance(each, Typed))
            plain = [as_operand(each, is_instant) for each in plain]
            if method == "__call__" and not options:
                return applied(ufunc, plain)
        return getattr(ufunc, method)(*plain, **_all_plain(options))

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        refuse_members(function, args)
        moved = _MOVERS.get(function)
        if moved is not None and not options:
            return moved(*args)
        return function(*_all_plain(args), **_all_plain(options))

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, slice):
            return self if rows == _WHOLE else self._of(self.storage[rows])
        if isinstance(rows, Typed):
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

    def __reduce__(self) -> Any:
        return _restored, (self.type.name, np.asarray(self.storage))

    def tolist(self) -> list[Any]:
        """Return the values as Python objects, None for a null."""
        return self.type.to_list(self.storage)

    def astype(self, dtype: Any, *args: Any, **options: Any) -> Any:
        """Return the values converted to a type of NumPy: of rows that are not null, where nulls have no place."""
        if self.type.stores == "T" and np.dtype(dtype) == np.dtype(str):
            return self
        if self.type.is_strict or (np.dtype(dtype).kind in "TU" and is_null(self).any()):
            return _skipping_nulls(lambda array: array.astype(dtype), (self,))
        return np.asarray(self).astype(dtype, *args, **options)

    def copy(self, order: str = "C") -> Typed:
        """Return the column, which nobody can change."""
        return self

    def take(self, rows: Any) -> Typed:
        """Return the rows at some positions."""
        return self._of(self.storage.take(rows))

    def repeat(self, times: Any, axis: int | None = None) -> Typed:
        """Return each row several times over."""
        return self._of(self.storage.repeat(times, axis))

    def hashes(self) -> NDArray[np.uint64]:
        """Return a hash of each row: the same on every machine."""
        if self.type.stores == "i":
            words = np.ascontiguousarray(self.storage).view(np.uint64)
        else:
            known: dict[Any, int] = {}
            words = np.array([_fingerprint(item, known) for item in self.storage.tolist()], np.uint64)
        words = (words ^ (words >> np.uint64(32))) * _MULTIPLIER
        return (words ^ (words >> np.uint64(29))) * _MULTIPLIER ^ (words >> np.uint64(32))

    def _of(self, storage: Array) -> Typed:
        return Typed(self.type, storage)


_WHOLE = slice(None)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


def typed(values: Any, name: str) -> Any:
    """Return a column with values of the type of this name; of a plain type, an array.

    `values` are a list, in which None is a null, an array, or a column. An array of whole numbers or text is what a
    nullable column has where there is no null; an array of times without a zone is in UTC.

    Raises DataError where there is no such type, or a value is not of it.

    >>> typed(["1.5", None], "text?").tolist(), typed([7], "uint64").tolist(), typed([1, 2], "int64")
    (['1.5', None], [7], array([1, 2]))
    """
    base = _PLAIN.get(name)
    if base is not None:
        return _as_plain(values, name, base)
    of = logical_type(name)
    if isinstance(values, Typed):
        if values.type == of:
            return values
        if values.type.is_strict and of.is_strict:
            missing = values.type.nulls(values.storage)
            if missing.any():
                return _scattered(of, of.store(np.asarray(values[~missing])), missing)
        values = values.tolist() if values.type.is_opaque else np.asarray(values)
    elif isinstance(values, ColumnLike):
        values = np.asarray(values)
    return Typed(of, of.store(values))


def is_null(column: Any) -> NDArray[np.bool_]:
    """Return which rows of a column are null. A plain column has none: NaN is a float.

    >>> is_null(typed(["a", None], "text?")).tolist(), is_null(np.array([np.nan])).tolist()
    ([False, True], [False])
    """
    return column.type.nulls(column.storage) if isinstance(column, Typed) else np.zeros(len(column), np.bool_)


def fill_null(column: Any, value: Any) -> Any:
    """Return a column with `value` in the place of nulls; without the type's "?", if it has one.

    >>> fill_null(typed([3, None], "int64?"), 0), fill_null(typed([], "date"), None).tolist()
    (array([3, 0]), [])
    """
    if not isinstance(column, Typed):
        return column
    missing = is_null(column)
    name = column.type.name.removesuffix("?")
    if missing.any():
        filler = typed([value], column.type.name).storage
        rows = np.where(missing, 0, np.arange(1, len(column) + 1))
        column = Typed(column.type, _joined([filler, column.storage])[rows])
    return column if name == column.type.name else typed(column, name)


def nullable(column: Any) -> Any:
    """Return a column as one that may have nulls. Dates, times, decimals and opaque values always may.

    >>> nullable(np.array([1, 2])).type
    int64?
    """
    if not isinstance(column, Typed):
        return typed(column, f"{name_of(column)}?")
    name = column.type.name
    return typed(column, f"{name}?") if name == "uint64" else column


def name_of(column: Any) -> str:
    """Return the name of the type of a column.

    >>> name_of(np.array([1])), name_of(np.array([0.5])), name_of(typed(["a"], "text?"))
    ('int64', 'float64', 'text?')
    """
    if isinstance(column, Typed):
        return column.type.name
    kind = column.dtype.kind
    if kind == "f":
        return str(column.dtype.name)
    return {"b": "bool", "T": "text", "U": "text", "O": "bytes", "S": "bytes"}.get(kind, "int64")


def as_filter(column: Any) -> Any:
    """Return a column of booleans as an array, in which a null is False."""
    if isinstance(column, Typed) and column.type.name == "bool?":
        return np.asarray(column.storage == 1)
    return column


_PLAIN: dict[str, Any] = {
    "int64": np.int64,
    "float64": np.float64,
    "float32": np.float32,
    "float16": np.float16,
    "bool": np.bool_,
    "text": TEXT,
    "bytes": np.object_,
}


def _as_plain(values: Any, name: str, base: Any) -> Array:
    """Return values as a plain column. Raises DataError where one is null, or not of its type."""
    if isinstance(values, ColumnLike) and not isinstance(values, Typed) and values.dtype == np.dtype(base):
        return cast(Array, values)
    values = np.asarray(values) if isinstance(values, ColumnLike) else values
    if name not in ("text", "bytes"):
        make = Booleans if name == "bool" else Numbers if name == "int64" else Floats
        made = make(name, name).plain(values)
        return made if len(made) else stated(made)
    if isinstance(values, np.ndarray) and values.dtype == TEXT and name == "text":
        return values
    items = values.tolist() if isinstance(values, np.ndarray) else list(values)
    made = of_strings(items, name, str if name == "text" else bytes)
    return made if items else stated(made)


def _restored(name: str, storage: Array) -> Typed:
    return Typed(logical_type(name), storage)


def _fingerprint(item: Any, known: dict[Any, int]) -> int:
    found = known.get(item)
    if found is None:
        data = item.encode() if isinstance(item, str) else item
        found = known[item] = crc32(data) << 32 | adler32(data)
    return found


def _leaves_nulls_out(value: Any) -> bool:
    """Return whether functions see only the other rows of a column: of a strict type, or of decimals with a null."""
    if not isinstance(value, Typed) or value.type.is_strict:
        return isinstance(value, Typed)
    return isinstance(value.type, Decimals) and bool(is_null(value).any())


def _plain(value: Any) -> Any:
    """Return a value with every typed column in it as an array, and every string as one that NumPy keeps."""
    if isinstance(value, Typed):
        return np.asarray(value)
    operand = exact_operand(value)
    if operand is value and (type(value) is tuple or type(value) is list):
        return type(value)(map(_plain, value))
    return operand


def _all_plain(values: Any) -> Any:
    return {name: _plain(value) for name, value in values.items()} if type(values) is dict else _plain(values)


def _skipping_nulls(function: Callable[..., Any], inputs: tuple[Any, ...]) -> Any:
    """Return `function` of columns where none is null, and a null in the other rows; several if it returns several."""
    logical = _logical(function, inputs)
    if logical is not None:
        return logical
    length = next(len(each) for each in inputs if isinstance(each, Typed))
    missing = np.zeros(length, np.bool_)
    for each in inputs:
        missing |= is_null(each) if isinstance(each, Typed) else False
    kept = [_rows(each, ~missing) for each in inputs]
    result = function(*kept)
    if isinstance(result, tuple):
        return tuple(_result(each, missing) for each in result)
    return _result(result, missing)


def _rows(value: Any, rows: Array) -> Any:
    if isinstance(value, Typed) and not value.type.is_strict:
        return value[rows]
    if isinstance(value, ColumnLike):
        return np.asarray(cast(Array, value)[rows])
    return value[rows] if isinstance(value, np.ndarray) and value.ndim else value


def _result(values: Array, missing: NDArray[np.bool_]) -> Typed | Array:
    """Return a column of values in the rows that are not missing; of objects an array, with None elsewhere."""
    if values.dtype == OBJECT:
        column = np.full(len(missing), None, OBJECT)
        column[~missing] = values
        return column
    name = values.dtype.name if values.dtype.kind in "bf" else {"i": "int64", "u": "uint64"}.get(values.dtype.kind, "")
    if values.dtype.kind in "Mm":
        name = time_name(values.dtype)
    elif values.dtype.kind in "TU":
        name = "text"
    if not name:
        raise DataError(f"what a function makes of nulls has no type: it returned values of {values.dtype}")
    of = logical_type(name if values.dtype.kind in "Mm" else f"{name}?")
    return _scattered(of, of.store(values), missing)


def _scattered(of: LogicalType, stored: Array, missing: NDArray[np.bool_]) -> Typed:
    """Return a column with the stored values in the rows that are not missing, and nulls in the others."""
    rows = np.where(missing, 0, np.cumsum(~missing))
    return Typed(of, _joined([of.null_storage(1), stored])[rows])


_LOGIC: dict[Any, Any] = {
    np.logical_and: np.minimum,
    np.bitwise_and: np.minimum,
    np.logical_or: np.maximum,
    np.bitwise_or: np.maximum,
}
"""Functions of two booleans, as functions of levels: 0 is false, 1 null, 2 true. So false and null is false."""


def _logical(function: Any, inputs: tuple[Any, ...]) -> Typed | None:
    """Return what a function of two booleans, of which some are null, makes of them; None for other functions."""
    choose = _LOGIC.get(function)
    if choose is None or not all(map(_is_boolean, inputs)):
        return None
    levels = choose(*map(_levels, inputs))
    of = logical_type("bool?")
    return Typed(of, np.where(levels == 1, of.null_storage(1), levels >> 1))


def _is_boolean(value: Any) -> bool:
    return name_of(value) in ("bool", "bool?") if hasattr(value, "dtype") else isinstance(value, bool)


def _levels(value: Any) -> Any:
    if isinstance(value, Typed):
        return np.where(is_null(value), 1, 2 * (value.storage == 1))
    return 2 * np.asarray(value).astype(np.int64)


def _joined(parts: list[Array]) -> Array:
    """Return the concatenation of storages, of which some may be interned and others not."""
    first = parts[0]
    if all(type(part) is type(first) for part in parts):
        return np.concatenate(parts)
    return np.concatenate([np.asarray(part) for part in parts])


def _alike(columns: Any) -> list[Typed]:
    """Return columns of one type. Plain columns beside those that may be null may be, too."""
    of = next(column.type for column in columns if isinstance(column, Typed))
    if any(isinstance(column, Typed) and column.type.is_strict for column in columns):
        columns = [nullable(column) if len(column) else Typed(of, of.null_storage(0)) for column in columns]
        of = columns[0].type
    other = next((column for column in columns if not isinstance(column, Typed) or column.type != of), None)
    if other is not None:
        raise DataError(
            f"a column of {of} beside one of {name_of(other)}: convert one with typed(column, {of.name!r}) of "
            "differential.frames"
        )
    return list(columns)


def _concatenated(columns: Any) -> Typed:
    alike = _alike(columns)
    return Typed(alike[0].type, _joined([column.storage for column in alike]))


def _where(condition: Any, *chosen: Any) -> Any:
    if isinstance(condition, Typed):
        condition = as_filter(condition)
    if len(chosen) != 2:
        return np.where(_plain(condition))
    if not any(isinstance(each, Typed) for each in chosen):
        return np.where(condition, *chosen)
    of = next(each.type for each in chosen if isinstance(each, Typed))
    columns = [
        each if isinstance(each, (ColumnLike, np.ndarray)) and each.ndim else typed([each], of.name) for each in chosen
    ]
    one, other = _alike(columns)
    rows = np.arange(len(condition))
    first = rows if len(one) > 1 else np.zeros(len(rows), np.int64)
    second = (rows if len(other) > 1 else np.zeros(len(rows), np.int64)) + len(one)
    return Typed(one.type, _joined([one.storage, other.storage])[np.where(condition, first, second)])


_MOVERS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.concatenate: _concatenated,
    np.where: _where,
    np.repeat: lambda column, times: column.repeat(_plain(times)),
    np.take: lambda column, rows: column.take(_plain(rows)),
}
"""The functions that only move rows, as they do it with storage."""
