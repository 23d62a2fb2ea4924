"""Tables of times against tuples and antichains."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings, strategies as st

from differential.kernels.compile import NOTHING
from differential.kernels.times import (
    advance,
    drop_unused,
    in_advance,
    intern,
    later_times,
    minimal,
    table_of_times,
    times_inside,
    times_outside,
)
from differential.trace.batch import frontier_table
from tests.oracle.trace import representative
from tests.strategies_batches import frontiers, times
from timely.order import Time
from timely.progress.antichain import Antichain


def _table(data: Any, *, most: int = 40) -> tuple[int, list[Time]]:
    depth = data.draw(st.integers(1, 3))
    return depth, data.draw(st.lists(times(depth), min_size=1, max_size=most))


def _tuples(table: np.ndarray[Any, Any]) -> list[Time]:
    return [tuple(time) for time in table.tolist()]


@settings(deadline=None)
@given(st.data())
def test_interned_times_are_sorted_and_distinct(data: Any) -> None:
    _, given_times = _table(data)
    table, place = intern(np.array(given_times))
    assert _tuples(table) == sorted(set(given_times))
    assert [_tuples(table)[at] for at in place] == given_times


def test_many_times_are_sorted_and_distinct() -> None:
    given_times = np.random.default_rng(1).integers(0, 12, (200, 2))
    table, place = intern(given_times)
    assert _tuples(table) == sorted(set(_tuples(given_times)))
    assert np.array_equal(table[place], given_times)


@settings(deadline=None)
@given(st.data())
def test_times_advance_to_their_representatives(data: Any) -> None:
    depth, given_times = _table(data)
    since = data.draw(frontiers(depth))
    advanced = advance(np.array(given_times), frontier_table(since, depth))
    assert _tuples(advanced) == [representative(time, since) for time in given_times]


@settings(deadline=None)
@given(st.data())
def test_a_frontier_separates_times(data: Any) -> None:
    depth, given_times = _table(data)
    frontier = data.draw(frontiers(depth))
    flags = in_advance(np.array(given_times), frontier_table(frontier, depth))
    assert flags.tolist() == [int(frontier.less_equal(time)) for time in given_times]


@settings(deadline=None)
@given(st.data())
def test_minimal_times_are_an_antichain(data: Any) -> None:
    _, given_times = _table(data)
    assert tuple(_tuples(minimal(np.array(given_times)))) == Antichain(given_times).elements


@settings(deadline=None)
@given(st.data())
def test_times_without_rows_are_dropped(data: Any) -> None:
    _, given_times = _table(data)
    table, _ = intern(np.array(given_times))
    rows = data.draw(st.lists(st.integers(0, len(table) - 1), min_size=1, max_size=10))
    index, kept = drop_unused(np.array(rows), table)
    used = sorted(set(rows))
    assert _tuples(kept) == [_tuples(table)[time] for time in used]
    assert (index.tolist() or [0] * len(rows)) == [used.index(time) for time in rows]
    assert (len(index) == 0) == (len(used) == 1)


def test_rows_without_a_time_index_are_at_the_first_time() -> None:
    index, kept = drop_unused(NOTHING, np.array([[3], [5], [9]]))
    assert (index.tolist(), kept.tolist()) == ([], [[3]])


def test_a_single_time_needs_no_index() -> None:
    index, kept = drop_unused(np.array([0, 0]), np.array([[3]]))
    assert (index.tolist(), kept.tolist()) == ([], [[3]])


@settings(deadline=None)
@given(st.data())
def test_a_table_of_times_has_memory_of_its_own(data: Any) -> None:
    _, given_times = _table(data)
    given_table = np.array(given_times)
    copied = table_of_times(given_table)
    assert _tuples(copied) == _tuples(table_of_times(tuple(given_times))) == given_times
    assert not np.shares_memory(copied, given_table)


@settings(deadline=None)
@given(st.data(), st.sampled_from([0, 1, 5, 2**40]))
def test_later_times_differ_in_the_last_coordinate(data: Any, step: int) -> None:
    _, given_times = _table(data)
    table = np.array(given_times)
    assert _tuples(later_times(table, step)) == [(*time[:-1], time[-1] + step) for time in given_times]
    assert _tuples(table) == given_times


@settings(deadline=None)
@given(st.data(), st.integers(0, 3))
def test_times_enter_at_round_zero_and_leave_without_their_rounds(data: Any, more: int) -> None:
    depth, given_times = _table(data)
    inside = times_inside(np.array(given_times), more)
    assert _tuples(inside) == [(*time, *[0] * more) for time in given_times]
    assert _tuples(times_outside(inside, depth)) == given_times
    keep = data.draw(st.integers(1, depth + more))
    rounds = np.array(data.draw(st.lists(times(depth + more), min_size=1, max_size=10)))
    assert _tuples(times_outside(rounds, keep)) == [time[:keep] for time in _tuples(rounds)]


def test_there_may_be_no_times() -> None:
    none = np.empty((0, 2), np.int64)
    shapes = [made.shape for made in (later_times(none, 1), times_inside(none, 1), times_outside(none, 1))]
    assert shapes == [(0, 2), (0, 3), (0, 1)]
    assert table_of_times(none).shape == (0, 2)
