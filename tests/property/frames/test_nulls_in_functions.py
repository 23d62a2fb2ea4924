"""Functions of NumPy of columns with nulls return what they return for the other rows, and nulls."""

from __future__ import annotations

import datetime as dt
import warnings
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings, strategies as st

from timely.data.comparisons import COMPARISONS
from timely.data.typed import is_null, typed

DEFINED_FOR_NAT = COMPARISONS | {np.isnat, np.isnan, np.isinf, np.isfinite, np.fmax, np.fmin}
"""What docs/types.md states for times that are null."""

VALUES: dict[str, Any] = {
    "date": st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1)),
    "timestamp[us]": st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)),
    "timestamp[s, UTC]": st.integers(-(10**9), 10**9).map(lambda second: np.datetime64(second, "s")),
    "duration[us]": st.timedeltas(dt.timedelta(-999), dt.timedelta(999)),
    "duration[D]": st.integers(-99, 99).map(lambda days: np.timedelta64(days, "D")),
    "time[ms]": st.integers(0, 86_399_999).map(lambda count: np.timedelta64(count, "ms")),
    "decimal(9, 2)": st.integers(-9999, 9999).map(lambda cents: Decimal(cents) / 100),
    "decimal(30, 1)": st.integers(-9999, 9999).map(lambda tenths: Decimal(tenths) / 10),
    "int64?": st.integers(-99, 99),
    "float64?": st.floats(-99, 99),
}
TIMES = [name for name in VALUES if name.startswith(("date", "time", "duration"))]
SCALARS = (dt.date(2000, 1, 2), dt.datetime(2000, 1, 2, 3), dt.timedelta(hours=5), 3, 2.5, Decimal("1.5"))
UFUNCS = sorted(
    {each for each in vars(np).values() if isinstance(each, np.ufunc) and not each.signature} - DEFINED_FOR_NAT, key=str
)
TARGETS = ("i8", "i4", "u8", "f8", "f4", "?", "T", "M8[Y]", "M8[M]", "M8[D]", "M8[s]", "m8[us]", "m8[h]")


def items(name: str, length: int) -> st.SearchStrategy[list[Any]]:
    return st.lists(VALUES[name] | st.none(), min_size=length, max_size=length)


@st.composite
def columns(draw: st.DrawFn, length: int, names: Iterable[str] = VALUES) -> Any:
    name = draw(st.sampled_from(sorted(names)))
    return typed(draw(items(name, length)), name)


def outcome(function: Callable[..., Any], *operands: Any) -> tuple[Any, ...] | type[Exception]:
    """Return the results of a function, or the class of the error that it raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = function(*operands)
    except Exception as error:
        return type(error)
    return made if isinstance(made, tuple) else (made,)


def nulls(result: Any) -> list[bool]:
    if getattr(result, "dtype", None) == np.dtype(object) and isinstance(result, np.ndarray):
        return [item is None for item in result.tolist()]
    return is_null(result).tolist()


def check(function: Callable[..., Any], *operands: Any) -> None:
    """Check a function of columns with nulls by the same function of the rows in which no operand is null."""
    missing = np.logical_or.reduce([is_null(each) for each in operands if hasattr(each, "dtype")])
    rest = [each[~missing] if hasattr(each, "dtype") else each for each in operands]
    expected, found = outcome(function, *rest), outcome(function, *operands)
    if isinstance(expected, type) or isinstance(found, type):
        assert isinstance(found, type), (expected, found)
        return
    for one, other in zip(found, expected, strict=True):
        wanted = missing.copy()
        wanted[~missing] = nulls(other)  # as of a division by zero
        assert nulls(one) == wanted.tolist()
        np.testing.assert_array_equal(np.asarray(one[~missing]), np.asarray(other))


@pytest.mark.parametrize("name", VALUES)
@settings(max_examples=1, deadline=None, phases=[Phase.generate])
@given(data=st.data())
def test_a_function_of_elements_leaves_nulls_out(name: str, data: st.DataObject) -> None:
    columns = {each: typed(data.draw(items(each, 4)), each) for each in (*VALUES, name)}
    first, others = columns[name], [*columns.values(), *SCALARS]
    for ufunc in UFUNCS:
        for other in others if ufunc.nin == 2 else [None]:
            check(ufunc, *(first, other)[: ufunc.nin])


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_conversion_leaves_nulls_out(data: st.DataObject) -> None:
    column, chain = data.draw(columns(4)), data.draw(st.lists(st.sampled_from(TARGETS), min_size=1, max_size=3))

    def converted(values: Any) -> Any:
        for target in chain:
            values = values.astype("T" if target == "T" else target)
        return values

    check(converted, column)


@settings(max_examples=100, deadline=None)
@given(columns(4, TIMES), st.sampled_from(SCALARS), st.sampled_from((np.subtract, np.add)), st.sampled_from(TARGETS))
def test_what_is_computed_of_computed_times_leaves_nulls_out(
    column: Any, scalar: Any, ufunc: np.ufunc, target: str
) -> None:
    check(lambda values: ufunc(values, scalar).astype(target), column)
    check(lambda values: ufunc(values, scalar) // np.timedelta64(7, "h"), column)
    check(lambda values: np.sign(ufunc(values, scalar)), column)


@pytest.mark.parametrize("function", [np.is_busday, lambda day: np.busday_count("2026-01-01", day)])
def test_a_function_of_dates_leaves_nulls_out(function: Any) -> None:
    days = typed([dt.date(2026, 3, 2), None, dt.date(2026, 3, 8)], "date")
    check(function, days)
    check(function, days + np.timedelta64(1, "D"))
    check(np.datetime_as_string, days)
