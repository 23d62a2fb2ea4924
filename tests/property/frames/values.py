"""Values of every type of columns, and what is equal and less among them, as docs/types.md defines it."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import numpy as np
from hypothesis import strategies as st

from timely.lowlevel import Items, hashable

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_SCALARS: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    TEXT,
    st.binary(max_size=3),
    st.dates(),
    st.datetimes(),
    st.times(),
    st.timedeltas(),
)
NESTED = st.recursive(
    st.lists(_SCALARS, max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab\0"), inner, max_size=3),
    max_leaves=6,
)


def _decimals(digits: int, scale: int) -> st.SearchStrategy[Decimal]:
    most = 10**digits - 1
    return st.integers(-most, most).map(lambda number: Decimal((int(number < 0), _digits(number), -scale)))


def _digits(number: int) -> tuple[int, ...]:
    return tuple(map(int, str(abs(number))))


def _counts(dtype: str, most: int = (1 << 63) - 1) -> st.SearchStrategy[Any]:
    return st.integers(-most, most).map(lambda count: np.array(count, dtype)[()])


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int64": st.integers(-(1 << 63), (1 << 63) - 1),
    "int64?": st.integers(-(1 << 63), (1 << 63) - 2),
    "uint64": st.integers(0, (1 << 64) - 1),
    "uint64?": st.integers(0, (1 << 64) - 2),
    "float64": st.floats(),
    "float64?": st.floats(),
    "float32": st.floats(width=32),
    "float32?": st.floats(width=32),
    "float16": st.floats(width=16),
    "bool": st.booleans(),
    "bool?": st.booleans(),
    "text": TEXT,
    "text?": TEXT.filter(lambda text: not text.startswith("\U0010ffff")),
    "bytes": st.binary(max_size=20),
    "bytes?": st.binary(max_size=20),
    "date": st.dates(),
    "timestamp[s]": st.datetimes().map(lambda moment: moment.replace(microsecond=0)),
    "timestamp[us]": st.datetimes(),
    "timestamp[ns]": _counts("M8[ns]"),
    "timestamp[us, Europe/Berlin]": st.datetimes(dt.datetime(1, 1, 3), timezones=st.just(dt.UTC)),
    "duration[ms]": st.integers(-(10**12), 10**12).map(lambda count: dt.timedelta(milliseconds=count)),
    "duration[us]": st.timedeltas(dt.timedelta(-100_000_000), dt.timedelta(100_000_000)),
    "duration[ns]": _counts("m8[ns]"),
    "time[us]": st.times(),
    "time[ns]": st.times(),
    "decimal(5, 2)": _decimals(5, 2),
    "decimal(18, 18)": _decimals(18, 18),
    "decimal(38, 4)": _decimals(38, 4),
    "decimal(76, 0)": _decimals(76, 0),
    "value": NESTED,
}
"""Values of each type that are not null."""

NULLABLE = [name for name in VALUES if name[-1] in "?])" or name in ("date", "value")]
"""The types that may have nulls."""

ZERO_NANS = [0.0, -0.0, math.nan, -math.nan, math.inf, -math.inf, 5e-324]


def values_of(name: str) -> st.SearchStrategy[Any]:
    """Return a strategy of values of a type, None among them where it may be null."""
    values = VALUES[name]
    if name.startswith("float"):
        values = st.sampled_from(ZERO_NANS[:6]) | values
    return st.none() | values if name in NULLABLE else values


def columns_of(name: str, least: int = 0) -> st.SearchStrategy[list[Any]]:
    """Return a strategy of lists of values of a type, in which values occur several times."""
    some = st.lists(values_of(name), min_size=1, max_size=4)
    return some.flatmap(lambda few: st.lists(st.sampled_from(few), min_size=least, max_size=8))


def canonical(value: Any) -> Any:
    """Return equal hashable objects for equal values."""
    return Items(value) if isinstance(value, (list, dict)) else hashable(value)


def same(one: Any, other: Any) -> bool:
    """Return whether two values are one in a list or struct: of one class, and equal."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    return type(one) is type(other) and (one == other or (one != one and other != other))


def order(value: Any) -> Any:
    """Return what orders as values of one type do: NaN after other floats, null after all."""
    if value is None:
        return (255,)
    if isinstance(value, bool):
        return (16 + value,)
    if isinstance(value, float):
        return (48, 1, 0.0) if math.isnan(value) else (48, 0, value)
    if isinstance(value, (list, tuple)):
        return (112, *map(order, value))
    if isinstance(value, dict):
        return (128, *(each for name in sorted(value) for each in (order(name), order(value[name]))))
    for tag, kind in _TAGS:
        if isinstance(value, kind):
            return (tag, value)
    raise AssertionError(value)


_TAGS: tuple[tuple[int, Any], ...] = (
    (32, (int, np.timedelta64)),
    (64, str),
    (80, bytes),
    (97, (dt.datetime, np.datetime64)),
    (96, dt.date),
    (99, dt.time),
    (100, dt.timedelta),
    (101, Decimal),
)
