from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest

from timely.order import as_time, join, less_equal, less_than, meet


@pytest.mark.parametrize("length", [1, 2, 3])
def test_the_product_order_compares_every_coordinate(length: int) -> None:
    times = list(product(range(3), repeat=length))
    for a, b in product(times, times):
        assert less_equal(a, b) == all(x <= y for x, y in zip(a, b))
        assert less_than(a, b) == (less_equal(a, b) and a != b)


@pytest.mark.parametrize("length", [1, 2, 3])
def test_join_and_meet_are_the_least_and_greatest_bounds(length: int) -> None:
    times = list(product(range(3), repeat=length))
    for a, b in product(times, times):
        for bound in times:
            assert less_equal(join(a, b), bound) == (less_equal(a, bound) and less_equal(b, bound))
            assert less_equal(bound, meet(a, b)) == (less_equal(bound, a) and less_equal(bound, b))


def test_a_time_is_given_as_an_integer_or_several_of_any_kind() -> None:
    for moment in (True, (True,), [True]):
        assert as_time(moment) == (1,)
        assert type(as_time(moment)[0]) is int
    for moment in (3, np.int64(3), [3], np.array([3])):
        assert as_time(moment) == (3,)
    assert [type(coordinate) for coordinate in as_time(np.array([2, 5]))] == [int, int]
    for none in ([2.5], 2.5, "1", None):
        with pytest.raises(TypeError, match=f"an integer or a tuple of integers, not {re.escape(repr(none))}"):
            as_time(none)  # type: ignore[arg-type]


def test_lexicographic_order_extends_the_product_order() -> None:
    times = list(product(range(3), repeat=3))
    assert all(a <= b for a, b in product(times, times) if less_equal(a, b))
