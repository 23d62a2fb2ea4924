"""Columns as users give them: arrays, lists, scalars, and whatever else NumPy makes arrays of.

A plain column holds integers, floats, booleans, text or bytes: values of one kind, none of them missing. Dates, times
and durations become typed columns (see `timely.data.typed`). Anything else is refused with an error that names the
value and its row. Nothing is converted in a way that changes values: a number beside text does not become text, and a
whole number beside floats is never rounded. Every NaN becomes the same one: in a collection all are equal.

Arrays that are columns already are passed through after a check of their type.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from types import NoneType
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from timely.data.column_like import ColumnLike
from timely.data.logical import Array, is_stated, objects
from timely.data.moments import time_name, unit_of, zone_of
from timely.data.strings import plain_string, text_column
from timely.data.typed import typed
from timely.errors import DataError


def as_columns(values: Any, length: int | None = None) -> tuple[Array, ...]:
    """Return an array, a scalar, or a tuple of these, as given by a user, as equally long columns.

    Scalars are repeated to `length` (by default the length of the arrays beside them, or 1 if there are none). Text
    becomes NumPy's variable-width string type. Raises `DataError` for an empty tuple, and for anything that cannot be a
    column.

    >>> [column.tolist() for column in as_columns((np.array([1, 2]), "a"))]
    [[1, 2], ['a', 'a']]
    """
    given = values if isinstance(values, tuple) else (values,)
    if not given:
        raise DataError("a record must have at least one column")
    if _are_columns(given, length):
        return given
    columns = tuple(as_column(value) for value in given)
    if length is None:
        sizes = [len(each) for each, value in zip(columns, given) if each.ndim and not isinstance(value, _MOMENTS)]
        length = sizes[0] if sizes else 1
    for position, column in enumerate(columns):
        if isinstance(column, ColumnLike) and isinstance(given[position], _MOMENTS):
            columns = (*columns[:position], column.repeat(length), *columns[position + 1 :])
        elif column.ndim > 1 or (column.ndim == 1 and len(column) != length):
            rows = "; tuple(array.T), or tuple(zip(*rows)), turns rows into columns" if column.ndim > 1 else ""
            raise DataError(
                f"column {position} has shape {column.shape}; every column of a batch must be one-dimensional "
                f"and of the same length, here {length}{rows}"
            )
    if all(column.ndim for column in columns):
        return columns
    return tuple(column if column.ndim else np.full(length, column, column.dtype) for column in columns)


def rows_and_columns(made: Any, rows: int) -> tuple[NDArray[np.int64], tuple[Array, ...]]:
    """Return the positions and the columns that a function of `flat_map` returned for a batch of `rows` rows."""
    if not isinstance(made, tuple) or len(made) < 2:
        raise DataError("the function of flat_map must return (rows, column, ...)")
    positions = np.asarray(made[0])
    if positions.ndim != 1 or (len(positions) and positions.dtype.kind not in "iu"):
        found = f"{positions.dtype}{positions.shape}"
        raise DataError(f"flat_map: rows must be a column of positions (integers), not {found}")
    if len(positions) and not (0 <= int(positions.min()) and int(positions.max()) < rows):
        raise DataError(f"flat_map: a row position is outside the {rows} rows of the batch")
    return positions.astype(np.int64), as_columns(made[1:], len(positions))


TEXT: Final = np.dtypes.StringDType()
"""The dtype of columns of text."""

_INT64: Final = np.dtype(np.int64)
_KINDS: Final = "biufT"
"""The kinds of dtypes that columns have as they are: booleans, integers, floats, text."""


def _are_columns(values: tuple[Any, ...], length: int | None) -> bool:
    """Return whether all values are columns already, of the given length if there is one. Most are."""
    for value in values:
        if type(value) is not np.ndarray and not isinstance(value, ColumnLike):
            return False
        if value.ndim != 1:
            return False
        dtype = value.dtype
        # NumPy has one object for this type, so identity finds most columns; others are compared by kind.
        if dtype is not _INT64:
            kind = dtype.kind
            if kind not in _KINDS or (kind == "T" and dtype != TEXT) or (kind == "f" and _has_odd_nan(value)):
                return False
        if length is None:
            length = len(value)
        elif len(value) != length:
            return False
    return True


def as_column(value: Any) -> Array:
    """Return a value as an array of a kind that columns can have; a scalar becomes zero-dimensional.

    Text becomes NumPy's variable-width string type; times become a typed column, which has one row for a scalar. Bytes
    become an array of objects, because NumPy's fixed-width types do not distinguish b"a" from b"a\\0"; in an array that
    already has such a type, NumPy has dropped trailing zeros.

    Raises DataError for anything else: values of several kinds, None, masked values, integers of more than 64 bits.

    >>> as_column([1, 2]), as_column(["to", "be"]).dtype, as_column([b"to"]).dtype
    (array([1, 2]), StringDType(), dtype('O'))
    """
    if isinstance(value, ColumnLike):
        return cast(Array, value)
    column: Array = value if isinstance(value, np.ndarray) else _from_python(value)
    if isinstance(column, ColumnLike):
        return column
    if type(column) is not np.ndarray and not isinstance(column, np.ma.MaskedArray):
        column = np.array(column, subok=False)
    kind = column.dtype.kind
    if kind == "O":
        if column.ndim > 1:
            return column  # whatever it holds, `as_columns` refuses it for its shape
        if not column.size:
            return column if is_stated(column) else column.astype(TEXT)
        items = _of_items(column.reshape(-1).tolist())
        return items if isinstance(items, ColumnLike) else items.reshape(column.shape)
    if isinstance(column, np.ma.MaskedArray):
        if np.ma.is_masked(column):
            row = int(np.argmax(column.mask))
            present = column.compressed().tolist()
            raise DataError(f"cannot make a column of masked values, as at row {row}{_leave_out(present, None)}")
        return np.array(column.data, subok=False)
    if kind == "T" and hasattr(column.dtype, "na_object"):
        return _of_items(column.reshape(-1).tolist()).reshape(column.shape)
    if kind == "f" and _has_odd_nan(column):
        return np.where(np.isnan(column), column.dtype.type(np.nan), column)
    if kind in _KINDS:
        return column
    if kind in "mM":
        # NumPy's type has no place for the zone of a Polars series or an Arrow array.
        zone = getattr(getattr(value, "dtype", None), "time_zone", None) or getattr(
            getattr(value, "type", None), "tz", None
        )
        name = time_name(column.dtype)
        name = name if zone is None else f"{name.removesuffix(']')}, {zone}]"
        return cast(Array, typed(column.reshape(-1) if not column.ndim else column, name))
    if kind == "U":
        # Through Python's strings: NumPy's own conversion takes 0.3 to 1 us per character.
        return text_column(column.tolist())
    if kind == "S":
        return column.astype(np.object_)
    raise DataError(f"cannot make a column of {column.dtype}", remedy=_COLUMNS_HOLD)


_NAN_BITS = np.array([np.nan]).view(np.int64)[0]


def _has_odd_nan(column: Any) -> bool:
    """Return whether a column of floats has a NaN of other bits than `np.nan`, by which it would be routed."""
    missing = np.isnan(column)
    if not missing.any():
        return False
    return bool((column[missing].astype(np.float64).view(np.int64) != _NAN_BITS).any())


def stacked(parts: Sequence[Array], what: str = "a column") -> Array:
    """Return the parts of a column concatenated; raise DataError if their kinds differ (see `of_one_kind`).

    >>> stacked((np.array([1, 2]), np.array([3], np.uint64)))
    array([1, 2, 3])
    """
    return np.concatenate(of_one_kind(parts, what))


def of_one_kind(parts: Sequence[Array], what: str = "a column") -> Sequence[Array]:
    """Return the parts of a column such that NumPy compares and concatenates them without changing a value.

    Unsigned integers beside signed ones or booleans become int64. Raises DataError, which names `what`, if the parts
    are of different kinds, which NumPy would round or turn into text. Empty parts are compatible with every kind.

    >>> of_one_kind((np.array([1]), np.array([0.5])), "the key")
    Traceback (most recent call last):
    timely.errors.DataError: the key holds 1 (int64) in one batch and 0.5 (float64) in another: convert one
    """
    first = parts[0].dtype
    for part in parts:
        if part.dtype is not first:
            return _of_one_kind(parts, what)
    return parts


def _of_one_kind(parts: Sequence[Array], what: str) -> Sequence[Array]:
    """Return what `of_one_kind` returns, for parts whose types may differ."""
    filled = [part for part in parts if len(part)] or parts[:1]
    if len({_family(part) for part in filled}) > 1:
        filled = [_as_signed(part) for part in filled]
        one = filled[0]
        others = [part for part in filled if _family(part) != _family(one)]
        if others:
            raise DataError(
                f"{what} holds {_first_of(one)} in one batch and {_first_of(others[0])} in another: convert one"
            )
        parts = [_as_signed(part) for part in parts]
    # The type of a part without rows must not decide that of the whole.
    return [part if len(part) else filled[0][:0] for part in parts]


_FAMILY = {"b": "i", "U": "T", "S": "O"}
"""Kinds that NumPy converts to another without changing a value: whole numbers, text, bytes."""


def _family(part: Array) -> str:
    kind = part.dtype.kind
    return _FAMILY.get(kind, kind)


def _as_signed(part: Array) -> Array:
    """Return unsigned integers as int64 if they fit."""
    return part.astype(np.int64) if part.dtype.kind == "u" and int(part.max(initial=0)) < 1 << 63 else part


def _first_of(part: Array) -> str:
    return f"{reprlib.repr(part[0].item() if isinstance(part[0], np.generic) else part[0])} ({part.dtype})"


def starts_of_runs(columns: Sequence[Array]) -> NDArray[np.int64]:
    """Return where each run of successive rows begins that are equal in all columns, of which there is at least one.

    Every NaN is equal to any other, and a missing time to any other.

    >>> starts_of_runs([np.array([1, 1, 1, 2]), np.array([5, 5, 6, 6])])
    array([0, 2, 3])
    """
    is_first = np.zeros(len(columns[0]), np.bool_)
    is_first[:1] = True
    for column in columns:
        differs = column[1:] != column[:-1]
        if column.dtype.kind in "fcmM":
            # NaN and NaT differ from themselves, so this is False for them: two in succession do not begin a run.
            is_value = column == column
            differs &= is_value[1:] | is_value[:-1]
        is_first[1:] |= differs
    return np.flatnonzero(is_first)


def in_type(column: Array, dtype: np.dtype[Any]) -> Array:
    """Return a column converted to `dtype`; raise DataError if its kind differs or a number does not fit.

    Whole numbers may become floats if these are equal to them. Floats may be rounded to fewer bits.

    >>> in_type(np.array([1, 300]), np.dtype(np.int8))
    Traceback (most recent call last):
    timely.errors.DataError: 300 (int64) does not fit into int8
    """
    if column.dtype == dtype:
        return column
    kind, target = column.dtype.kind, dtype.kind
    if kind not in "biu" or target not in "iuf":
        if _FAMILY.get(kind, kind) != _FAMILY.get(target, target) or target == "b":
            raise DataError(f"values of {column.dtype} cannot become values of {dtype}")
        return column.astype(dtype)
    if len(column):
        least, largest = int(column.min()), int(column.max())
        low, high = _whole_numbers(dtype)
        if least < low or largest > high:
            raise DataError(f"{least if least < low else largest} ({column.dtype}) does not fit into {dtype}")
    return column.astype(dtype)


def _whole_numbers(dtype: np.dtype[Any]) -> tuple[int, int]:
    """Return the least and the largest whole number up to which a numeric type represents every one exactly."""
    if dtype.kind == "f":
        most = 1 << int(np.finfo(dtype).nmant) + 1
        return -most, most
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


_COLUMNS_HOLD = ": a column holds integers, floats, booleans, text, bytes, dates or times"


def _leave_out(items: Sequence[Any], odd: Any) -> str:
    """Return what to do about a value that is not of the kind of the others."""
    known = next((item for item in items if item is not None), None)
    name = next((name for kind, name in _NULLABLE.items() if isinstance(known, kind)), "int64?")
    typed_as = f"typed(values, {name!r}) of differential.frames (docs/types.md lists the types)"
    nulls = f", or make a column that may have nulls with {typed_as}" if odd is None else ""
    either = "leave such rows out" if nulls else "leave such rows out or"
    return f": {either}{',' if nulls else ''} replace the value by one of the column's kind{nulls}"


_NULLABLE: dict[Any, str] = {
    str: "text?",
    bytes: "bytes?",
    (bool, np.bool_): "bool?",
    (float, np.floating): "float64?",
}
"""The types of columns that may have nulls, by the classes of their other values."""
_EXACT = 1 << 53
"""Floats represent all whole numbers up to this one."""


def _from_python(value: Any) -> Array:
    """Return Python values as an array: of objects, unless their kind is obvious."""
    if isinstance(value, (list, tuple)):
        return _of_items(value)
    if isinstance(value, str):
        return _of_items([value]).reshape(())
    if isinstance(value, _MOMENTS):
        return _of_items([value])
    column = np.array(value, np.object_ if isinstance(value, bytes) else None)
    if column.ndim == 1 and column.dtype.kind == "f" and np.isnan(column).any():
        _refuse_nulls_of(value)
    return column


def _refuse_nulls_of(series: Any) -> None:
    """Raise DataError for a series of another library that has integers and nulls: NumPy makes rounded floats of it."""
    names = [name for name in ("to_list", "to_pylist") if hasattr(series, name)]
    items = getattr(series, names[0])() if names else [*series]
    if any(isinstance(item, int) for item in items):
        _of_items([item if isinstance(item, int) else None for item in items])


def _of_items(items: Sequence[Any]) -> Array:
    """Return a column of values from Python: all text, all bytes, or all numbers."""
    types = set(map(type, items))
    if all(issubclass(each, str) for each in types) and types:
        return text_column(items if types == {str} else [plain_string(item) for item in items])
    if all(issubclass(each, bytes) for each in types) and types:
        return objects(items if types == {bytes} else [plain_string(item) for item in items])
    known = types - {NoneType}
    if known and all(issubclass(each, _MOMENTS) for each in known):
        return _of_moments(items)
    if all(issubclass(each, _NUMBERS) and not issubclass(each, np.timedelta64) for each in types):
        return _of_numbers(items, types)
    if types <= {list, tuple, np.ndarray}:
        raise DataError(
            "a column holds one value for each row, not lists or tuples",
            remedy="; tuple(zip(*rows)), or tuple(array.T), turns rows into columns",
        )
    first = items[0]
    row = next((row for row, item in enumerate(items) if not _alike(item, first)), 0)
    beside = f" at row {row}, beside {_shown(first)}" if row else ""
    is_series = isinstance(first, Iterable) and not isinstance(first, (Mapping, tuple))
    hint = "; list() turns an iterator, a range or a set into values" if is_series else ""
    if isinstance(first, Decimal):
        hint = "; typed(values, 'decimal(18, 2)') of differential.frames makes a column of decimals"
    if row or first is None:
        hint = _leave_out(items, items[row])
    remedy = f"{_COLUMNS_HOLD}, all of one kind{hint}"
    raise DataError(f"cannot make a column of {_shown(items[row])}{beside}", remedy=remedy)


_MOMENTS = (date, time, timedelta, np.datetime64, np.timedelta64)
"""Classes of Python's and NumPy's dates, timestamps, times of day, and durations."""


def _of_moments(items: Sequence[Any]) -> Array:
    """Return a column of dates, timestamps, times or durations, of the type of the first, with nulls for None."""
    known = [item for item in items if item is not None]
    first = known[0]
    if isinstance(first, datetime):
        stated = [item for item in known if item == item]
        if 0 < len(stated) < len(known):  # the NaT of pandas is a datetime without a zone
            return _of_moments([item if item == item else None for item in items])
    if isinstance(first, (np.datetime64, np.timedelta64)):
        together = np.array([item for item in known if type(item) is type(first)])
        # NumPy makes objects of durations without a common unit: one counts months, which `time_name` refuses.
        for each in together if together.dtype.kind == "O" else (together,):
            name = time_name(each.dtype)
    elif isinstance(first, datetime):
        unit = unit_of(known)
        name = f"timestamp[{unit}]" if first.tzinfo is None else f"timestamp[{unit}, {zone_of(first)}]"
    elif isinstance(first, date):
        name = "date"
    elif isinstance(first, time):
        name = "time[us]"
    else:
        name = f"duration[{unit_of(known)}]"
    return cast(Array, typed(items, name))


def _shown(value: Any) -> str:
    return f"{reprlib.repr(value)} ({type(value).__name__})"


_NUMBERS = (bool, int, float, np.bool_, np.signedinteger, np.unsignedinteger, np.floating)
"""The classes of numbers. NumPy has derived `np.timedelta64`, which is none, from `np.signedinteger`."""


def _alike(one: Any, other: Any) -> bool:
    """Return whether two values may be in the same column."""
    if isinstance(one, np.timedelta64) or isinstance(other, np.timedelta64):
        return type(one) is type(other)
    return any(isinstance(one, kind) and isinstance(other, kind) for kind in (str, bytes, _NUMBERS))


def _of_numbers(items: Sequence[Any], types: set[type]) -> Array:
    """Return a column of Python or NumPy numbers; raise DataError rather than round a whole number."""
    column = np.asarray(items)
    if column.dtype.kind in "iub":
        return column
    # NumPy makes floats, which may be rounded, of whole numbers beside floats, and of some beyond int64 beside others;
    # of still larger ones it makes objects.
    whole = [int(item) for item in items if isinstance(item, (int, np.integer))] if types - _FLOATS else []
    largest = max(whole, key=abs, default=0)
    if len(whole) == len(items):
        if whole and min(whole) >= 0 and largest < 1 << 64:
            return np.asarray(items, np.uint64)
        if whole:
            raise DataError(f"cannot make a column of {largest}: its integers are too large for any 64-bit type")
    elif abs(largest) > _EXACT:
        raise DataError(f"cannot make a column of {largest} and of floats: as a float it would be rounded")
    return column


_FLOATS = {float, np.float64, np.float32, np.float16}
