"""Typed columns: a column of a plain kind, and the logical type of the values that it stores.

A typed column behaves as the read-only array of its values. What only moves rows keeps the type: slices, masks,
positions, `take`, `repeat`, `np.concatenate` and `np.where`. Everything else sees the array (see `docs/types.md`) and
makes columns of the types that NumPy gives them. So a type is lost only where values are computed.

Some types have no array with nulls in it: "integers or null" is one. For these, functions of NumPy that work element by
element leave nulls out, and return a column with a null in the same rows. Any other function raises an error where
there is a null.

The array of times has NaT where the column has a null. NumPy makes times of NaT, and compares it. Functions that would
make a number of it leave nulls out, too. This also holds for computed times, which are `Times`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from timely.data.column_like import ColumnLike
from timely.data.comparisons import COMPARISONS, refuse_comparison, refuse_members
from timely.data.logical import OBJECT, Array, LogicalType, with_none
from timely.data.moments import as_operand, time_name
from timely.data.numeric import Decimals
from timely.data.strings import exact_operand
from timely.data.typed_rows import (
    TypedRows,
    as_filter as as_filter,
    is_null as is_null,
    name_of as name_of,
    refuse_nulls,
)
from timely.data.types import PLAIN, as_plain, logical_type
from timely.data.units import applied
from timely.errors import DataError


class Typed(TypedRows):
    """A column of a logical type.

    >>> column = typed([3, None, 5], "int64?")
    >>> (column + 1).tolist(), (column > 3).tolist(), column[::2].tolist(), is_null(column).tolist()
    ([4, None, 6], [False, None, True], [3, 5], [False, True, False])
    >>> np.sort(column)
    Traceback (most recent call last):
    ...
    timely.errors.DataError: row 1 of a column of int64? is a null, which this function cannot see: ...
    """

    __slots__ = ()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        return _computed(ufunc, method, inputs, options)

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        return _called(function, args, options)

    def __getattr__(self, name: str) -> Any:
        is_time = not name.startswith("__") and self.dtype.kind in "mM" and hasattr(np.ndarray, name)
        return getattr(_as_times(np.asarray(self)), name) if is_time else super().__getattr__(name)

    def __reduce__(self) -> Any:
        return _restored, (self.type.name, np.asarray(self.storage))

    def astype(self, dtype: Any, *args: Any, **options: Any) -> Any:
        """Return the values converted to a type of NumPy: of rows that are not null, where nulls have no place."""
        if self.type.stores == "T" and np.dtype(dtype) == np.dtype(str):
            return self
        if self.type.is_strict or (np.dtype(dtype).kind != "O" and is_null(self).any()):
            return _skipping_nulls(lambda column: np.asarray(column).astype(dtype), (self,))
        return _as_times(np.asarray(self).astype(dtype, *args, **options))


class Times(np.ndarray[Any, Any]):
    """An array of computed times, in which NaT is null: what is computed of it stays null.

    >>> (typed(np.array([7, "NaT"], "m8[D]"), "duration[D]") * 2 // np.timedelta64(1, "D")).tolist()
    [14, None]
    """

    def __array_ufunc__(self, ufunc: np.ufunc, method: Any, *inputs: Any, **options: Any) -> Any:
        return _computed(ufunc, method, inputs, options)

    def __array_function__(self, function: Callable[..., Any], types: Any, args: Any, options: Any) -> Any:
        return _called(function, args, options)

    def astype(self, dtype: Any, *args: Any, **options: Any) -> Any:
        """Return the times converted to a type of NumPy: a column that may have nulls, if there are any."""
        if np.dtype(dtype).kind != "O" and is_null(self).any():
            return _skipping_nulls(lambda times: np.asarray(times).astype(dtype), (self,))
        return _as_times(np.asarray(self).astype(dtype, *args, **options))

    def view(self, *types: Any) -> Any:  # type: ignore[override]
        """Return the array as one of other types, which would show nulls as numbers."""
        refuse_nulls(self)
        return np.asarray(self).view(*types)


def typed(values: Any, name: str) -> Any:
    """Return a column with values of the type of this name; of a plain type, an array.

    `values` are a list, in which None is a null, an array, or a column. An array of whole numbers or text is what a
    nullable column has where there is no null; an array of times without a zone is in UTC. What pandas has in the place
    of a null, in a list or a series, is one.

    Raises DataError where there is no such type, or a value is not of it.

    >>> typed(["1.5", None], "text?").tolist(), typed([7], "uint64").tolist(), typed([1, 2], "int64")
    (['1.5', None], [7], array([1, 2]))
    """
    try:
        return _typed(values, name)
    except DataError:
        # Only now: to look for nulls of pandas takes time, and most columns have none.
        replaced = with_none(values)
        if replaced is values:
            raise
    return _typed(replaced, name)


def _typed(values: Any, name: str) -> Any:
    """Return a column with values of a type, of which those that are None are nulls."""
    if name in PLAIN:
        return as_plain(np.asarray(values) if isinstance(values, Typed) else values, name)
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


def fill_null(column: Any, value: Any) -> Any:
    """Return a column with `value` in the place of nulls; without the type's "?", if it has one.

    >>> fill_null(typed([3, None], "int64?"), 0), fill_null(typed([], "date"), None).tolist()
    (array([3, 0]), [])
    """
    missing = is_null(column)
    if not isinstance(column, Typed):
        if not missing.any():
            return column
        column = typed(np.asarray(column), name_of(column))
    name = column.type.name.removesuffix("?")
    if missing.any():
        filler = typed([value], column.type.name).storage
        # Row 0 of what is joined below is the filler, which moves every row of the column up by one.
        rows = np.where(missing, 0, np.arange(1, len(column) + 1))
        column = Typed(column.type, _joined([filler, column.storage])[rows])
    return column if name == column.type.name else typed(column, name)


def nullable(column: Any) -> Any:
    """Return a column as one that may have nulls. Dates, times, decimals and opaque values always may.

    >>> nullable(np.array([1, 2])).type
    int64?
    """
    name = name_of(column)
    if not isinstance(column, Typed):
        return column if column.dtype.kind in "mM" else typed(column, f"{name}?")
    return typed(column, f"{name}?") if name == "uint64" else column


def _restored(name: str, storage: Array) -> Typed:
    return Typed(logical_type(name), storage)


_KNOWING_NAT = COMPARISONS | {np.isnat, np.isnan, np.isinf, np.isfinite} | {
    np.add, np.subtract, np.multiply, np.remainder, np.negative, np.positive, np.absolute,
    np.maximum, np.minimum, np.fmax, np.fmin,
}  # fmt: skip
"""The functions of NumPy that make a time of NaT and a time, or are defined for it."""

_BY_ROW = frozenset((np.is_busday, np.busday_count, np.busday_offset, np.datetime_as_string))
"""Other functions of NumPy that work element by element."""


def _computed(ufunc: np.ufunc, method: Any, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Return a function of NumPy of values, of which some are typed columns or computed times."""
    is_call = method == "__call__"
    if ufunc in COMPARISONS and is_call:
        refuse_comparison(*inputs)
    inputs = tuple(map(exact_operand, inputs))
    if is_call and not options and any(_leaves_nulls_out(each, ufunc) for each in inputs):
        return _skipping_nulls(ufunc, inputs)
    plain = list(map(_plain, inputs))
    times = [each for each in inputs if _is_time(each)]
    if not times:
        return getattr(ufunc, method)(*plain, **_all_plain(options))
    is_instant = any(getattr(each.type, "zone", None) for each in inputs if isinstance(each, Typed))
    plain = [as_operand(each, is_instant) for each in plain]
    if is_call and not options:
        return _as_times(applied(ufunc, plain))
    made = getattr(ufunc, method)(*plain, **_all_plain(options))
    # The result would have a number in the place of a null.
    if ufunc not in _KNOWING_NAT and getattr(made, "dtype", OBJECT).kind not in "mM":
        for each in times:
            refuse_nulls(each)
    return _as_times(made)


def _called(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Return any other function of NumPy of arguments, of which some are typed columns or computed times."""
    refuse_members(function, args)
    moved = _MOVERS.get(function) if any(isinstance(each, Typed) for each in _within(args)) else None
    if moved is not None and not options:
        return moved(*args)
    if function in _BY_ROW and any(is_null(each).any() for each in args if _is_time(each)):
        return _skipping_nulls(lambda *columns: function(*map(_plain, columns), **_all_plain(options)), args)
    return _as_times(function(*_all_plain(args), **_all_plain(options)))


def _within(args: tuple[Any, ...]) -> list[Any]:
    """Return arguments, and the items of those that are lists or tuples."""
    return [each for one in args for each in (one if isinstance(one, (list, tuple)) else (one,))]


def _is_time(value: Any) -> bool:
    return isinstance(value, (Typed, Times)) and value.dtype.kind in "mM"


def _as_times(made: Any) -> Any:
    """Return what NumPy made of times as an array in which NaT stays null, if it is one of times."""
    return made.view(Times) if type(made) is np.ndarray and made.dtype.kind in "mM" else made


def _leaves_nulls_out(value: Any, ufunc: np.ufunc) -> bool:
    """Return whether a function sees only the rows of a column that are not null."""
    if isinstance(value, Typed) and value.type.is_strict:
        return True
    is_time = _is_time(value) and ufunc not in _KNOWING_NAT
    is_decimal = isinstance(value, Typed) and isinstance(value.type, Decimals)
    return (is_time or is_decimal) and bool(is_null(value).any())


def _plain(value: Any) -> Any:
    """Return a value with every typed column in it as an array, and every string as one that NumPy keeps."""
    if isinstance(value, (Typed, Times)):
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
    columns = [each for each in inputs if isinstance(each, (Typed, Times))]
    missing = np.logical_or.reduce([is_null(each) for each in columns])
    result = function(*[_rows(each, ~missing) for each in inputs])
    is_strict = any(isinstance(each, Typed) and each.type.is_strict for each in columns)
    if isinstance(result, tuple):
        return tuple(_result(each, missing, is_strict) for each in result)
    return _result(result, missing, is_strict)


def _rows(value: Any, rows: Array) -> Any:
    if isinstance(value, Typed) and not value.type.is_strict:
        return value[rows]
    if isinstance(value, ColumnLike):
        return np.asarray(cast(Array, value)[rows])
    return value[rows] if isinstance(value, np.ndarray) and value.ndim else value


def _result(values: Array, missing: NDArray[np.bool_], is_strict: bool) -> Typed | Array:
    """Return a column of values in the rows that are not missing; of objects an array, with None elsewhere.

    Times are typed if the type of the result is not to depend on whether there are nulls.
    """
    if values.dtype.kind in "Mm" and not is_strict:
        times = np.full(len(missing), "NaT", values.dtype)
        times[~missing] = values
        return times.view(Times)
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
    # Row 0 of what is joined below is a null, and row n the n-th of the stored values.
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
    # True, which is level 2, is stored as 1.
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
    columns = [_with_type(each) for each in columns]
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


def _with_type(column: Any) -> Any:
    """Return a column of times that is an array as a typed one; any other as it is."""
    is_plain = not isinstance(column, Typed) and column.dtype.kind in "mM"
    return typed(np.asarray(column), name_of(column)) if is_plain else column


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
    # A column of one row is a value for all rows.
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
