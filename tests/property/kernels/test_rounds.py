"""Rows enter a loop at their rounds: the times of the rows, and where each row finds its own, against tuples."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings, strategies as st

from differential.kernels.compile import NOTHING
from differential.kernels.times import times_at_rounds
from tests.strategies_batches import times
from timely.order import Time

MOST = 1 << 40


@st.composite
def entering(draw: st.DrawFn, least: int, most: int) -> tuple[list[Time], list[int], list[int]]:
    """Draw a table of times, the place of each row in it, and the round of each row."""
    table = draw(st.lists(times(draw(st.integers(1, 2))), min_size=1, max_size=4))
    place, number = st.integers(0, len(table) - 1), st.integers(0, 3) | st.integers(least, most)
    rows = draw(st.lists(st.tuples(place, number), max_size=60))
    rows = [row for row in rows for _ in range(draw(st.integers(1, 2)))]  # a row often has the time of the one before
    return table, [place for place, _ in rows], [number for _, number in rows]


@settings(deadline=None)
@given(entering(0, MOST))
def test_each_row_finds_its_time_and_round_among_distinct_ones(drawn: tuple[list[Time], list[int], list[int]]) -> None:
    table, places, rounds = drawn
    index = np.array(places, np.int64) if len(table) > 1 else NOTHING
    found, place = times_at_rounds(np.array(table), index, np.array(rounds, np.int64), MOST)
    spelled = [tuple(time) for time in found.tolist()]
    expected = [(*table[at], number) for at, number in zip(places, rounds)]
    assert sorted(spelled) == sorted(set(expected))
    assert [spelled[at] for at in (place.tolist() or [0] * len(rounds))] == expected
    assert (len(place) == 0) == (len(spelled) <= 1)


@settings(deadline=None)
@given(entering(-1, 5), st.integers(0, 4))
def test_a_round_out_of_bounds_leaves_no_times(drawn: tuple[list[Time], list[int], list[int]], most: int) -> None:
    table, places, rounds = drawn
    found, place = times_at_rounds(np.array(table), np.array(places, np.int64), np.array(rounds, np.int64), most)
    is_refused = any(not 0 <= number <= most for number in rounds)
    assert (len(found) == 0) == (is_refused or not rounds)
    assert found.shape[1] == len(table[0]) + 1
    assert not is_refused or len(place) == 0


def test_many_rounds_are_distinct_times() -> None:
    rounds = np.random.default_rng(1).permutation(3000) // 2
    found, place = times_at_rounds(np.array([[7]]), NOTHING, rounds, 3000)
    assert found[place].tolist() == [[7, number] for number in rounds.tolist()]
    assert len(found) == 1500
