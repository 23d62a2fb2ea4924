"""Columns of Python values, of which some may be None, and of NumPy's arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, cast

import numpy as np

from timely.errors import DataError
from timely.lowlevel import (
    Array,
    ColumnLike,
    Typed,
    as_column,
    hashable,
    is_stated,
    nullable,
    time_name,
    typed,
    unit_of,
    with_none,
    zone_of,
)

_NUMBERS = (int, float, np.integer, np.floating)


def column_of(values: Any, name: str) -> Array:
    """Return values as a column, of the type that they have; columns and most arrays as they are.

    Raises DataError, which names the column, where values are of several types, or all are None.

    >>> column_of([1, None], "a").type, column_of([[1], [2, 3]], "a").type
    (int64?, value)
    """
    try:
        return _column_of(values)
    except DataError as error:
        raise DataError(f"column {name!r}: {error}") from None


def _column_of(values: Any) -> Array:
    if isinstance(values, ColumnLike):
        return cast(Array, values)
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        return _of_masked(values)
    if isinstance(values, np.ndarray) and (values.dtype.kind != "O" or is_stated(values)):
        if values.dtype.kind == "u" and values.dtype.itemsize == 8:
            return typed(values, "uint64")  # type: ignore[no-any-return]
        column = as_column(values)
        if column.ndim != 1:
            raise DataError(f"an array of shape {column.shape} is not a column")
        return widened(column)
    items = with_none(values.tolist() if isinstance(values, np.ndarray) else listed(values))
    plain = _of_one_class(items)
    return typed(items, type_of(items)) if plain is None else plain


def listed(values: Any) -> list[Any]:
    """Return the values of a column as a list. Raises DataError for a value that is not a column."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise DataError(f"{values!r:.80} is one value: give a list of values, one for each row")
    return list(values)


def _of_one_class(items: list[Any]) -> Array | None:
    """Return numbers or text, all of one plain class, as a column, for which no item is looked at; None for others."""
    classes = set(map(type, items))
    # By `type`, because a boolean is an integer for `isinstance`.
    base = _PLAIN.get(classes.pop()) if len(classes) == 1 else None
    try:
        return None if base is None else np.array(items, base)
    except (OverflowError, UnicodeEncodeError):
        return None


_PLAIN: dict[type, Any] = {int: np.int64, float: np.float64, bool: np.bool_, str: np.dtypes.StringDType()}


def items(column: Array) -> list[Any]:
    """Return the values of a column as Python's: hashable, and equal where values are. Each NaN is `numpy.nan`.

    >>> items(np.array([float("nan")])) == items(np.array([-float("nan")]))
    True
    """
    found: list[Any] = column.tolist()
    return list(map(hashable, found)) if isinstance(column, Typed) or column.dtype.kind == "f" else found


def widened(column: Array) -> Array:
    """Return a column of integers with 64 bits, as collections have them; other columns as they are."""
    return column.astype(np.int64, copy=False) if column.dtype.kind in "iu" else column


def type_of(items: Sequence[Any]) -> str:
    """Return the name of the type of Python values, which ends in "?" only where one is None.

    Raises DataError where there is none.

    >>> type_of([1, 2]), type_of([1.5, None]), type_of([date(2024, 2, 29), None]), type_of([Decimal("1.50")])
    ('int64', 'float64?', 'date', 'decimal(18, 2)')
    """
    present = [item for item in items if item is not None]
    if not present:
        if items:
            raise DataError("all values are None, which has no type: state one, as in types={'column': 'text?'}")
        return "text"
    name = _name(present)
    return f"{name}?" if len(present) < len(items) and name in _MAY_BE_PLAIN else name


_MAY_BE_PLAIN = {"int64", "uint64", "float64", "float32", "float16", "bool", "text", "bytes"}


def _name(present: list[Any]) -> str:
    """Return the name of the type of values that are not None."""
    first = present[0]
    if isinstance(first, (np.datetime64, np.timedelta64)):
        _check(present, (type(first),))
        return time_name(np.array(present).dtype)
    if isinstance(first, datetime):
        _check(present, (datetime,))
        unit = unit_of(present)
        return f"timestamp[{unit}]" if first.tzinfo is None else f"timestamp[{unit}, {zone_of(first)}]"
    for classes, name in _NAMES:
        if isinstance(first, classes):
            _check(present, classes, without=(datetime,) if name == "date" else ())
            return f"duration[{unit_of(present)}]" if name == "duration[us]" else name
    if isinstance(first, Decimal) or (isinstance(first, int) and Decimal in set(map(type, present))):
        _check(present, (Decimal, int))
        return _decimal_name(present)
    _check(present, _NUMBERS)
    return _number_name(present)


_NAMES: tuple[tuple[tuple[type, ...], str], ...] = (
    ((bool, np.bool_), "bool"),
    ((str,), "text"),
    ((bytes,), "bytes"),
    ((list, tuple, dict, np.ndarray), "value"),
    ((date,), "date"),
    ((time,), "time[us]"),
    ((timedelta,), "duration[us]"),
)


def _check(present: list[Any], classes: tuple[type, ...], without: tuple[type, ...] = ()) -> None:
    """Raise DataError unless all values are of some classes."""

    def is_wrong(item: Any) -> bool:
        is_other_boolean = isinstance(item, (bool, np.bool_)) and bool not in classes and list not in classes
        return not isinstance(item, classes) or isinstance(item, without) or is_other_boolean

    if not any(map(is_wrong, {type(item): item for item in present}.values())):  # one of each class
        return
    for item in present:
        if is_wrong(item):
            first = present[0]
            beside = f" beside {first!r:.80} ({type(first).__name__})" if item is not first else ""
            raise DataError(
                f"{item!r:.80} ({type(item).__name__}){beside}: values of a column are of one type, or None; a column "
                "holds numbers, booleans, text, bytes, dates, times, decimals, lists or dicts"
            )


def _number_name(present: list[Any]) -> str:
    """Return the name of the type of numbers: floats if one is a float, and none of the others would be rounded."""
    whole = [item for item in present if isinstance(item, (int, np.integer))]
    # A float is among them.
    if len(whole) < len(present):
        if max(map(abs, map(int, whole)), default=0) > 1 << 53:
            raise DataError("a whole number of more than 53 bits among floats: as a float it would be rounded")
        only = type(present[0]) if len(set(map(type, present))) == 1 else float
        return np.dtype(only).name if only in (np.float32, np.float16) else "float64"
    # If one is negative as well, `typed` refuses it.
    return "uint64" if max(whole) >= 1 << 63 else "int64"


def _decimal_name(present: list[Any]) -> str:
    """Return the name of the narrowest type of decimals that has all digits."""
    before, after, like = 1, 0, Decimal(0)
    for item in present:
        number = Decimal(item)
        if not number.is_finite():
            raise DataError(f"{item!r:.80} is not a finite decimal")
        if not number.same_quantum(like):  # to ask for the exponent makes a tuple of the digits
            like = number
            after = max(after, -int(number.as_tuple().exponent))
        before = max(before, number.adjusted() + 1)
    for precision in (18, 38, 76):
        if before + after <= precision:
            return f"decimal({precision}, {after})"
    raise DataError(f"decimals of {before + after} digits: at most 76 fit into a column")


def _of_masked(values: Any) -> Array:
    """Return a masked array as a column in which what is masked is null. Raises DataError where everything is."""
    missing = np.ma.getmaskarray(values)
    present = np.ma.getdata(values)[~missing]
    if not len(present):
        raise DataError("all values are masked: state a type, as in types={'column': 'int64?'}")
    items = np.full(len(values), None, np.object_)
    column = _column_of(present)
    items[~missing] = column.tolist()
    # `nullable` of no rows, because an error of it would state the row among those that are present.
    return typed(items.tolist(), nullable(column[:0]).type.name)  # type: ignore[no-any-return]


def columns_of_rows(rows: Sequence[Any]) -> tuple[list[str] | None, list[list[Any]]]:
    """Return the names and the columns of rows: dicts, dataclasses, named tuples, or tuples, which have no names.

    A field that a dict lacks is None. Raises DataError for rows of several classes or lengths.

    >>> columns_of_rows([{"a": 1}, {"a": 2, "b": "x"}])
    (['a', 'b'], [[1, 2], [None, 'x']])
    """
    first = rows[0]
    odd = next((row for row in rows if type(row) is not type(first)), None)
    if odd is not None:
        raise DataError(f"rows of several classes: {first!r:.80} and {odd!r:.80}")
    if isinstance(first, dict):
        names = list(dict.fromkeys(name for row in rows for name in row))
        return names, [[row.get(name) for row in rows] for name in names]
    if is_dataclass(first):
        names = [field.name for field in fields(first)]
        return names, [[getattr(row, name) for row in rows] for name in names]
    if isinstance(first, (tuple, list)):
        length = len(first)
        short = next((row for row in rows if len(row) != length), None)
        if short is not None:
            raise DataError(f"rows of several lengths: {first!r:.80} and {short!r:.80}")
        found = getattr(first, "_fields", None)
        return list(found) if found else None, [list(column) for column in zip(*rows)]
    raise DataError(
        f"a row is a tuple, a list, a dict or a dataclass, not {first!r:.80}: [(value,), ...] has one column"
    )


def names_of(data: Mapping[Any, Any]) -> list[str]:
    """Return the names of a dict of columns. Raises DataError where one is not text."""
    odd = next((name for name in data if not isinstance(name, str)), None)
    if odd is not None:
        raise DataError(f"the name of a column must be text, not {odd!r:.80}")
    return list(data)
