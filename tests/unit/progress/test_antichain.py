from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.counted import comparisons, counted
from tests.invariants import check
from timely.errors import BuildError
from timely.order import less_equal
from timely.progress.antichain import Antichain, MutableAntichain, minimal

lengths = st.integers(1, 3)


def times(length: int) -> st.SearchStrategy[tuple[int, ...]]:
    return st.tuples(*[st.integers(0, 3)] * length)


families = lengths.flatmap(lambda length: st.lists(times(length)))
pairs = lengths.flatmap(lambda length: st.tuples(st.lists(times(length)), st.lists(times(length))))


def covered(antichain: Antichain, length: int) -> set[tuple[int, ...]]:
    """The times, among a few, that an antichain stands for."""
    return {
        time
        for time in product(range(5), repeat=length)
        if any(less_equal(element, time) for element in antichain.elements)
    }


@given(families)
def test_the_minimal_elements_are_incomparable_and_cover_all(family: list[tuple[int, ...]]) -> None:
    elements = minimal(family)
    assert list(elements) == sorted(set(elements))
    assert set(elements) <= set(family)
    assert not any(less_equal(a, b) or less_equal(b, a) for a, b in combinations(elements, 2))
    assert all(any(less_equal(element, time) for element in elements) for time in family)


@given(pairs)
def test_the_lattice_of_antichains_is_that_of_the_times_they_stand_for(
    pair: tuple[list[tuple[int, ...]], list[tuple[int, ...]]],
) -> None:
    a, b = map(Antichain, pair)
    length = len((pair[0] + pair[1] or [(0,)])[0])
    assert covered(a.join(b), length) == covered(a, length) & covered(b, length)
    assert covered(a.meet(b), length) == covered(a, length) | covered(b, length)
    assert a.dominates(b) == (covered(a, length) >= covered(b, length))
    assert (a == b) == (covered(a, length) == covered(b, length))
    for time in product(range(5), repeat=length):
        assert a.less_equal(time) == (time in covered(a, length))
        assert a.less_than(time) == (time in covered(a, length) and time not in a.elements)


stairs = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=60).map(Antichain)


@given(stairs, stairs, st.booleans())
def test_wide_antichains_are_compared_by_every_pair(a: Antichain, b: Antichain, is_later: bool) -> None:
    if is_later:
        b = a.join(b)
    expected = all(any(less_equal(element, time) for element in a) for time in b)
    assert a.dominates(b) == expected


def test_comparing_wide_antichains_costs_a_pass_over_both() -> None:
    def cost(size: int) -> int:
        a = Antichain.of_minimal(tuple([counted(place, size - place) for place in range(size)]))
        b = Antichain.of_minimal(tuple([counted(place, size - place + 1) for place in range(size)]))
        return comparisons(lambda: a.dominates(b))

    assert cost(1000) <= 8 * 1000


def test_the_empty_antichain_is_last_and_permits_nothing() -> None:
    closed, start = Antichain(), Antichain([(0,)])
    assert not closed
    assert not closed.less_equal((2**60,))
    assert start.dominates(closed)
    assert not closed.dominates(start)
    assert start.join(closed) == closed
    assert start.meet(closed) == start


def test_equal_antichains_are_equal_keys() -> None:
    assert Antichain([(1, 0), (0, 1), (1, 1)]) == Antichain([(0, 1), (1, 0)])
    assert len({Antichain([(1, 0), (0, 1)]), Antichain([(0, 1), (1, 0)])}) == 1
    assert list(Antichain([(1, 0), (0, 1)])) == [(0, 1), (1, 0)]


@given(
    lengths.flatmap(
        lambda length: st.lists(st.lists(st.tuples(times(length), st.integers(-2, 2)), max_size=5), max_size=8)
    )
)
def test_the_frontier_of_counts_is_that_of_the_positive_ones(
    batches: list[list[tuple[tuple[int, ...], int]]],
) -> None:
    counts = MutableAntichain()
    expected: Counter[tuple[int, ...]] = Counter()
    for batch in batches:
        before = counts.frontier
        changed = counts.update_all(batch)
        for time, diff in batch:
            expected[time] += diff
        assert counts.frontier == Antichain(time for time, count in expected.items() if count > 0)
        assert changed == (counts.frontier != before)
        assert dict(counts.items()) == {time: count for time, count in expected.items() if count}
        check(counts)
    assert all(counts.count(time) == count for time, count in expected.items())


def test_a_time_with_a_negative_count_is_not_in_the_frontier() -> None:
    counts = MutableAntichain([((1,), -1), ((5,), 1)])
    assert counts.frontier == Antichain([(5,)])
    assert not counts.update((1,), 1)
    assert counts.update((1,), 1)
    assert counts.frontier == Antichain([(1,)])


def test_when_the_least_time_vanishes_the_minimal_remaining_times_are_the_frontier() -> None:
    counts = MutableAntichain([((0, 0), 1), ((1, 4), 1), ((3, 2), 2), ((2, 5), 1), ((0, 9), -1)])
    assert counts.update((0, 0), -1)
    assert counts.frontier == Antichain([(1, 4), (3, 2)])


def test_times_of_one_coordinate_may_be_integers() -> None:
    frontier = Antichain([5, np.int64(3), [4]])
    assert frontier == Antichain([(3,)])
    assert not frontier.less_equal(2)
    assert frontier.less_equal(3)
    assert not frontier.less_than(3)
    assert frontier.less_than(np.int64(4))
    assert not Antichain().less_equal(0)


@pytest.mark.parametrize(
    "compare",
    [
        lambda: Antichain([(1,)]).less_equal((1, 5, 7)),
        lambda: Antichain([(1, 2)]).less_equal((1,)),
        lambda: Antichain([(1, 2)]).less_equal(1),
        lambda: Antichain([(1,)]).less_than((0, 0)),
        lambda: Antichain([(1,), (1, 2)]),
        lambda: Antichain([1, (1, 2), (3, 4)]),
        lambda: Antichain([(1,)]).dominates(Antichain([(1, 5)])),
        lambda: Antichain([(1, 5)]).join(Antichain([(1,)])),
        lambda: Antichain([(1, 5)]).meet(Antichain([(1,)])),
    ],
)
def test_times_of_different_widths_are_refused(compare: Callable[[], object]) -> None:
    with pytest.raises(BuildError, match=r"cannot be compared.* coordinate"):
        compare()


def test_a_value_that_is_not_a_time_is_refused() -> None:
    with pytest.raises(TypeError, match="a time is an integer or a tuple of integers"):
        Antichain([(1,)]).less_equal("now")  # type: ignore[arg-type]
