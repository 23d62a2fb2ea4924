"""Sums and products of integers, against Python's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import partial, reduce
from operator import add, mul

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from timely.data.exact import may_wrap, total, total_of_totals, wrapped
from timely.dataflow.operators.all_reduce import Pairwise
from timely.errors import DataError
from timely.graphlinq.grouping import group_nodes, grouped, totalled
from timely.graphlinq.run import fits

LEAST, LARGEST = -(1 << 63), (1 << 63) - 1
signed = st.sampled_from([0, 1, -1, 2, -3, 1 << 31, -(1 << 32), 1 << 40, 1 << 62, -(1 << 62), LARGEST, LEAST])
unsigned = st.sampled_from([0, 1, 3, 1 << 32, 1 << 40, 1 << 62, 1 << 63, (1 << 64) - 1])
ufuncs = pytest.mark.parametrize(("ufunc", "function"), [(np.add, add), (np.multiply, mul)])


@ufuncs
@settings(deadline=None)
@given(data=st.data())
def test_results_that_do_not_fit_are_refused_and_others_are_exact(
    ufunc: np.ufunc, function: Callable[[int, int], int], data: st.DataObject
) -> None:
    kind, numbers = data.draw(st.sampled_from([(np.int64, signed), (np.uint64, unsigned)]))
    rows = data.draw(st.lists(st.tuples(st.integers(0, 3), numbers), min_size=1, max_size=7))
    slots, values = np.array([slot for slot, _ in rows]), np.array([value for _, value in rows], kind)
    by_slot = defaultdict(list)
    for slot, value in rows:
        by_slot[slot].append(value)
    expected = {slot: reduce(function, group) for slot, group in sorted(by_slot.items())}
    limits = np.iinfo(kind)
    large = [slot for slot, result in expected.items() if not limits.min <= result <= limits.max]
    assert wrapped(ufunc, slots, values, 4).tolist() == large
    assert may_wrap(ufunc, values) or not large
    for size, offset in ((4, 0), (1000, 0), (0, -2), (0, 1 << 40)):
        combine = partial(grouped, size=size) if size else group_nodes
        if large:
            with pytest.raises(DataError, match=rf"node {large[0] + offset} .* does not fit into 64 bits"):
                combine(ufunc, slots + offset, [values])
        else:
            groups, (totals,) = combine(ufunc, slots + offset, [values])
            assert dict(zip((groups - offset).tolist(), totals.tolist())) == expected
    if large:
        with pytest.raises(DataError, match=rf"node {large[0] + 70} .* does not fit into 64 bits"):
            totalled(ufunc, slots, [values], 4, np.arange(70, 74))
    everything = reduce(function, (value for _, value in rows))
    found = total(ufunc, values, ufunc.identity)
    assert found == everything or not (fits(everything) or fits(found))


@ufuncs
@given(numbers=st.lists(signed | unsigned, min_size=1, max_size=5))
def test_totals_of_totals_are_exact(ufunc: np.ufunc, function: Callable[[int, int], int], numbers: list[int]) -> None:
    expected, found = reduce(function, numbers), total_of_totals(ufunc, numbers)
    assert found == expected or not (fits(expected) or fits(found))


@ufuncs
@given(rows=st.lists(st.tuples(signed, signed), min_size=1, max_size=4), kind=st.sampled_from([np.int64, np.uint64]))
def test_vectors_are_combined_right_or_refused(
    ufunc: np.ufunc, function: Callable[[int, int], int], rows: list[tuple[int, int]], kind: type
) -> None:
    limits = np.iinfo(kind)
    rows = [
        (abs(one) % (1 << 63), abs(other) % (1 << 63)) if kind is np.uint64 else (one, other) for one, other in rows
    ]
    combination = Pairwise(ufunc)
    try:
        for row in rows:
            combination.include(np.array(row, kind))
        found = combination.result().tolist()
    except DataError:
        assert any(not limits.min <= number <= limits.max for number in _partial(function, rows))
    else:
        assert found == [reduce(function, column) for column in zip(*rows)]


def _partial(function: Callable[[int, int], int], rows: list[tuple[int, int]]) -> list[int]:
    """Return the combinations of all runs of rows."""
    return [
        reduce(function, column)
        for first in range(len(rows))
        for last in range(first + 1, len(rows) + 1)
        for column in zip(*rows[first:last])
    ]
