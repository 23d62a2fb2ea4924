"""Columns of times as whole numbers: counts of the column's own unit.

A column of event times holds integers, dates or timestamps. Arithmetic on them is the same for all: on int64 counts of
the unit of the column, 1970-01-01 being 0. Durations are counted in the same unit.

>>> at = np.array(["2026-03-01T12:00", "2026-03-01T12:30"], "M8[s]")
>>> count_of(np.timedelta64(1, "h"), at), of_ticks(ticks(at) // 3600 * 3600, at).tolist()
(3600, [datetime.datetime(2026, 3, 1, 12, 0), datetime.datetime(2026, 3, 1, 12, 0)])
"""

from __future__ import annotations

import datetime as dt
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from timely.errors import DataError
from timely.lowlevel import Typed, is_null, typed

Array = NDArray[Any]
Ints = NDArray[np.int64]
Duration = int | dt.timedelta | np.timedelta64

_NANOS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9, "D": 86_400 * 10**9}
_NANOS["W"] = 7 * _NANOS["D"]
"""The nanoseconds of NumPy's units, except for months and years, which differ in length."""
LARGEST = (1 << 63) - 1
"""The largest count of units."""


def ticks(column: Array) -> Ints:
    """Return a column of times as counts of its unit. Raises DataError for other columns, and for nulls.

    >>> ticks(np.array([3, 5]))
    array([3, 5])
    >>> ticks(np.array([0.5]))
    Traceback (most recent call last):
    timely.errors.DataError: event times are integers, dates or timestamps, not float64
    """
    if isinstance(column, Typed) and is_null(column).any():
        raise DataError("an event time is null")
    array = np.asarray(column)
    if array.dtype.kind == "M":
        if np.isnat(array).any():
            raise DataError("an event time is null")
        return array.view(np.int64)  # datetime64 is a count of its unit since 1970
    if array.dtype.kind != "i":  # the start of a window may be negative, and the end beyond 2 ** 63
        found = column.type.name if isinstance(column, Typed) else "text" if array.dtype.kind == "T" else array.dtype
        raise DataError(f"event times are integers, dates or timestamps, not {found}")
    return array.astype(np.int64, copy=False)


def of_ticks(counts: Ints, like: Array) -> Array:
    """Return counts as a column of times of the same type as `like`.

    >>> of_ticks(np.array([1]), np.array([], "M8[D]"))
    array(['1970-01-02'], dtype='datetime64[D]')
    """
    array = np.asarray(like[:0])
    made = counts.view(array.dtype) if array.dtype.kind == "M" else counts.astype(array.dtype)
    return cast(Array, typed(made, like.type.name)) if isinstance(like, Typed) else made


def count_of(duration: Any, like: Array) -> int:
    """Return a duration in the unit of a column of times. Raises DataError where it is not a whole number of units.

    >>> count_of(dt.timedelta(days=2), np.array([], "M8[D]")), count_of(7, np.array([1]))
    (2, 7)
    >>> count_of(dt.timedelta(hours=1), np.array([], "M8[D]"))
    Traceback (most recent call last):
    timely.errors.DataError: 1:00:00 is not a whole number of units of a column of datetime64[D]
    """
    dtype = np.asarray(like[:0]).dtype
    if dtype.kind != "M":
        if isinstance(duration, (int, np.integer)) and not isinstance(duration, bool):
            return int(duration)
        raise DataError(f"{duration!r} is not a duration for event times of {dtype}: give a whole number")
    if not isinstance(duration, (dt.timedelta, np.timedelta64)):
        raise DataError(f"{duration!r} is not a duration for event times of {dtype}: give a timedelta")
    exact = getattr(duration, "to_timedelta64", None)  # of Pandas, whose durations count nanoseconds
    units, rest = in_units(np.timedelta64(duration) if exact is None else exact(), dtype)
    if rest or abs(units) > LARGEST:
        raise DataError(f"{duration} is not a whole number of units of a column of {dtype}")
    return units


def in_units(time: Any, dtype: np.dtype[Any]) -> tuple[int, bool]:
    """Return a NumPy time or duration in the unit of a type, rounded down, and whether something remains.

    The number may be beyond 64 bits, where NumPy itself raises OverflowError or, up to version 2.4, wraps around.
    Raises DataError where the time has no unit of fixed length.

    >>> in_units(np.datetime64("2026-03-01T12:00"), np.dtype("M8[D]"))
    (20513, True)
    """
    (unit, count), (to, _) = np.datetime_data(time.dtype), np.datetime_data(dtype)
    if unit not in _NANOS:
        raise DataError(f"{time!r} has no unit of fixed length")
    units, rest = divmod(int(time.view(np.int64)) * count * _NANOS[unit], _NANOS[to])
    return units, rest != 0
