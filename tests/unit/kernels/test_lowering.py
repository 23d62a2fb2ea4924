"""What kernels make of items, ranges and variables: the same as Python."""

from __future__ import annotations

from itertools import islice
from types import FunctionType
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from differential.kernels.compile import Ints, Kernel, Table, bare, inner, kernel

pytestmark = pytest.mark.lengthy


@kernel
def items_of(items: Ints, table: Table, first: int, second: int) -> Ints:
    """Read and write items whose numbers are constants and variables, and count from either end."""
    found = np.zeros(12, np.int64)
    found[0], found[1], found[-1], found[-2] = items[first], items[0], items[-1], items[np.uint64(1)]
    found[2], found[3], found[4] = table[first, second], table[1, -1], table[-2, second]
    found[5], found[6], found[7] = table[first][second], table[1:, 0][first % 2], len(table) * 100 + len(items)
    items[first] += 1000
    items[second] = found[0] * 2
    table[first, second] = items[first] - items[second]
    table[-1, 0] = 5
    table[second, :] = table[first]
    found[8] = table[first, second]
    return found


@kernel
def numbers_of(start: int, stop: int, step: int) -> Ints:
    """Count with ranges of one to three arguments, whose bounds change while they are counted."""
    found = np.full(8, -1, np.int64)
    for number in range(stop):
        found[0] = (found[0] * 7 + number) % 1_000_003
        stop -= 1
        number += 3
    for number in range(start, stop):
        start = number - 100
        found[1] = (found[1] * 7 + number) % 1_000_003
    for number in range(start, stop, step):
        if number % 3 == 2:
            continue
        found[2] = (found[2] * 7 + number) % 1_000_003
    for number in range(stop, start, -2):
        if number < -2:
            break
        for inside in range(number, 4, 3):
            found[3] = (found[3] * 7 + inside) % 1_000_003
    found[4], found[5], found[6] = start, stop, len(range(start, stop, step))
    return found


@kernel
def first_numbers(start: int, stop: int, step: int) -> Ints:
    """Return the first three numbers of a range, of which there may be a great many."""
    found = np.zeros(4, np.int64)
    for number in range(start, stop, step):
        found[0] += 1
        found[found[0]] = number
        if found[0] == 3:
            break
    return found


@bare
def last_of(items: Ints) -> int:
    return int(np.asarray(items)[-1])


@kernel
def kept(size: int) -> Ints:
    """Keep an array for which a function that counts no references called the same function of NumPy's before."""
    items = np.arange(size)
    last = last_of(items)
    same = np.asarray(items)
    items = np.zeros(2, np.int64)
    other = np.full(size, last, np.int64)
    return same if len(items) < len(other) else other


@inner
def extended(items: Ints, item: int) -> Ints:
    longer = np.empty(len(items) + 1, np.int64)
    longer[: len(items)] = items
    longer[-1] = item
    return longer


@kernel
def rows_of(items: Ints, rounds: int) -> tuple[Ints, Ints]:
    """Keep arrays in variables that change hands, in tuples, and after the loop in which they are made."""
    both = (items, items[1:])
    before = items
    last = items[:1]
    for number in range(rounds):
        longer = extended(both[0] if number % 2 else both[1], number)
        if number == 2:
            before = both[0]
        elif number > 2:
            last = longer[number:]
        both = (longer, before)
    return both[0], last


def in_python(compiled: Any) -> Any:
    """Return the function of a kernel as Python runs it, with those that it calls."""
    source = cast(Kernel, compiled).source
    return FunctionType(source.__code__, {name: getattr(each, "source", each) for name, each in globals().items()})


places = st.integers(-3, 2)


@settings(max_examples=200)
@given(st.lists(st.integers(-9, 9), min_size=3, max_size=5), places, places)
def test_items_are_those_of_python(values: list[int], first: int, second: int) -> None:
    made = []
    for function in (items_of, in_python(items_of)):
        items, table = np.array(values), np.arange(9).reshape(3, 3)
        made.append([*map(np.ndarray.tolist, (function(items, table, first, second), items, table))])
    assert made[0] == made[1]


bounds = st.integers(-12, 12)


@settings(max_examples=300)
@given(bounds, bounds, bounds.filter(bool))
def test_ranges_count_as_those_of_python(start: int, stop: int, step: int) -> None:
    assert numbers_of(start, stop, step).tolist() == in_python(numbers_of)(start, stop, step).tolist()


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=4), st.integers(0, 7))
def test_arrays_live_as_long_as_variables_hold_them(values: list[int], rounds: int) -> None:
    made = [function(np.array(values), rounds) for function in (rows_of, in_python(rows_of))]
    assert [each.tolist() for each in made[0]] == [each.tolist() for each in made[1]]


far = st.sampled_from([-(2**63) + 1, -(2**62), -7, -1, 0, 1, 5, 2**62, 2**63 - 2, 2**63 - 1])


@given(far, far, far.filter(bool))
def test_ranges_of_any_length_begin_as_those_of_python(start: int, stop: int, step: int) -> None:
    assume(abs(stop - start) < 2**63)
    expected = list(islice(range(start, stop, step), 3))
    found = first_numbers(start, stop, step).tolist()
    assert found[1 : 1 + found[0]] == expected


def test_a_step_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match=r"range\(\) arg 3 must not be zero"):
        first_numbers(0, 10, 0)


def test_functions_of_numpy_count_references_as_their_callers_do() -> None:
    for _ in range(3):
        assert kept(50).tolist() == list(range(50))
