"""Times that count different units are compared as whole numbers would be, or refused."""

from __future__ import annotations

import operator
from collections.abc import Callable
from contextlib import suppress
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tests.thorough import examples
from timely.data.typed import typed
from timely.data.units import applied
from timely.errors import DataError

NANOS = {"D": 86_400 * 10**9, "s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
COMPARISONS: dict[np.ufunc, Callable[[int, int], bool]] = {
    np.less: operator.lt,
    np.less_equal: operator.le,
    np.greater: operator.gt,
    np.greater_equal: operator.ge,
    np.equal: operator.eq,
    np.not_equal: operator.ne,
}
NAT = -(1 << 63)
COUNTS = st.lists(st.one_of(st.integers(NAT, -NAT - 1), st.integers(-3, 3), st.just(-NAT - 1)), min_size=3, max_size=3)
UNITS = st.sampled_from(sorted(NANOS))


@settings(max_examples=examples(300))
@given(st.sampled_from("mM"), UNITS, UNITS, COUNTS, COUNTS, st.booleans())
def test_comparisons_are_those_of_whole_numbers(
    kind: str, first: str, second: str, one: list[int], other: list[int], is_near: bool
) -> None:
    if is_near:  # what is equal, or differs by one of the finer unit
        other = [
            max(NAT, min(-NAT - 1, count * NANOS[first] // NANOS[second] + place)) for place, count in enumerate(one)
        ]
    columns = [np.array(one, np.int64).view(f"{kind}8[{first}]"), np.array(other, np.int64).view(f"{kind}8[{second}]")]
    for ufunc, meaning in COMPARISONS.items():
        expected = [
            ufunc is np.not_equal if NAT in (a, b) else meaning(a * NANOS[first], b * NANOS[second])
            for a, b in zip(one, other)
        ]
        assert applied(ufunc, list(columns)).tolist() == expected


@settings(max_examples=examples(100))
@given(UNITS, UNITS, COUNTS, COUNTS)
def test_what_has_no_exact_difference_in_the_finest_unit_is_refused(
    first: str, second: str, one: list[int], other: list[int]
) -> None:
    columns = [np.array(one, np.int64).view(f"M8[{first}]"), np.array(other, np.int64).view(f"M8[{second}]")]
    finest = min(first, second, key=NANOS.__getitem__)
    pairs = zip((first, second), (one, other))
    fits = all(
        abs(count) * NANOS[unit] // NANOS[finest] < 1 << 63 for unit, each in pairs for count in each if count != NAT
    )
    exact = [a * NANOS[first] // NANOS[finest] - b * NANOS[second] // NANOS[finest] for a, b in zip(one, other)]
    if fits and max(map(abs, exact), default=0) >= 1 << 63:
        with suppress(DataError):  # before NumPy 2.5 the result is another duration
            applied(np.subtract, list(columns))
    elif fits:
        assert applied(np.subtract, list(columns)).dtype == f"m8[{finest}]"
    else:
        with pytest.raises(DataError, match=f"does not fit into 64 bits in {finest}, the finest unit"):
            applied(np.subtract, list(columns))


@pytest.mark.parametrize(
    "far", [datetime(9999, 12, 31), date(9999, 12, 31), np.datetime64("9999"), np.datetime64("9999-12"), "column"]
)
def test_a_column_of_nanoseconds_is_compared_with_a_time_that_has_none(far: Any) -> None:
    column = typed([np.datetime64("2000-01-01", "ns"), None, np.datetime64("2200-01-01", "ns")], "timestamp[ns]")
    if far == "column":
        far = typed([datetime(9999, 12, 31)] * 3, "timestamp[us]")
    assert (column < far).tolist() == (far > column).tolist() == [True, False, True]
    assert (column >= far).tolist() == [False] * 3
    assert (column != far).tolist() == [True] * 3


def test_a_duration_is_compared_with_the_longest_one_and_its_difference_is_refused() -> None:
    column = typed([timedelta(hours=1), None], "duration[us]")
    assert (column < timedelta.max).tolist() == (column > timedelta.min).tolist() == [True, False]
    with pytest.raises(DataError, match="does not fit into 64 bits in us"):
        timedelta.max - column


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
@pytest.mark.parametrize("value", [timedelta.max, timedelta.min, timedelta(days=200_000_000)])
def test_a_duration_that_numpy_cannot_count_in_microseconds_is_refused_by_its_value(unit: str, value: Any) -> None:
    with pytest.raises(DataError, match=rf"{value!r} at row 1 is too large".replace("(", r"\(").replace(")", r"\)")):
        typed([timedelta(1), value], f"duration[{unit}]")
