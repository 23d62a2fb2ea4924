"""Many times of one coordinate: the least is found without a pass over the others."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, strategies as st

from tests.counted import comparisons, counted
from tests.invariants import check
from timely.order import Time
from timely.progress.antichain import Antichain, MutableAntichain
from timely.progress.earliest import FEW, appear, earliest
from timely.progress.graph import Edge
from timely.progress.reachability import Tracker
from timely.progress.summary import PathSummary

CHANGES = st.lists(st.tuples(st.tuples(st.integers(0, 30)), st.integers(-2, 3)), max_size=20)
HISTORIES = st.lists(CHANGES, max_size=12)
MANY = 1000


@given(st.lists(st.tuples(st.tuples(st.integers(0, 30)), st.integers(-2, 3), st.booleans())))
def test_the_earliest_time_is_the_least_with_a_positive_count(changes: list[tuple[Time, int, bool]]) -> None:
    heap: list[Time] = []
    counts: dict[Time, int] = {}
    for time, diff, is_asked in changes:
        before = counts.get(time, 0)
        counts[time] = before + diff
        if not counts[time]:
            del counts[time]
        if heap and before <= 0 < before + diff:
            appear(heap, time, counts)
        if is_asked:
            least = min((time for time, count in counts.items() if count > 0), default=None)
            assert earliest(heap, counts) == (() if least is None else (least,))


def test_a_time_that_comes_and_goes_does_not_make_the_heap_grow() -> None:
    heap: list[Time] = []
    counts = {(time,): 1 for time in range(MANY)}
    earliest(heap, counts)
    for _ in range(10 * MANY):
        counts[(MANY,)] = 1
        appear(heap, (MANY,), counts)
        del counts[(MANY,)]
        assert len(heap) <= 2 * MANY + FEW + 2


@given(st.booleans(), HISTORIES)
def test_the_frontier_of_many_counts_is_the_least_positive_one(
    is_many: bool, history: list[list[tuple[Time, int]]]
) -> None:
    counts, expected = MutableAntichain(), Counter[Time]()
    for changes in [[((time,), 1) for time in range(0, 30, 2)], *history] if is_many else history:
        counts.update_all(changes)
        for time, diff in changes:
            expected[time] += diff
        assert counts.frontier == Antichain(time for time, count in expected.items() if count > 0)
        check(counts)


@given(st.booleans(), HISTORIES)
def test_the_frontier_of_many_pointstamps_is_the_least_live_one(
    is_many: bool, history: list[list[tuple[Time, int]]]
) -> None:
    tracker, expected = Tracker([1, 1], [Edge(0, 1, PathSummary.identity(1))]), Counter[Time]()
    for changes in [[((time,), 1) for time in range(0, 30, 2)], *history] if is_many else history:
        for time, diff in changes:
            tracker.update(time[0] % 2, time, diff)
            expected[time] += diff
        tracker.propagate()
        live = [time for time, count in expected.items() if count > 0]
        assert tracker.frontier(1) == Antichain(live)
        assert tracker.frontier(0) == Antichain(time for time in live if time[0] % 2 == 0)
        check(tracker)


def test_an_epoch_costs_few_comparisons_however_many_times_are_counted() -> None:
    counts = MutableAntichain([(counted(time), 1) for time in range(MANY)])
    counts.update(counted(0), -1)

    def go_on() -> None:
        for time in range(1, 101):
            assert counts.update_all([(counted(time), -1), (counted(MANY + time), 1)])

    assert comparisons(go_on) <= 100 * 100


def test_an_epoch_costs_few_comparisons_however_many_pointstamps_are_live() -> None:
    tracker = Tracker([1, 1], [Edge(0, 1, PathSummary.identity(1))])
    tracker.update_all([(location, counted(time), 1) for time in range(MANY) for location in (0, 1)])
    tracker.propagate()
    tracker.update_all([(0, counted(0), -1), (1, counted(0), -1)])
    tracker.propagate()

    def go_on() -> None:
        for time in range(1, 101):
            tracker.update_all([(location, counted(time), -1) for location in (0, 1)])
            tracker.update_all([(location, counted(MANY + time), 1) for location in (0, 1)])
            assert tracker.propagate() == [0, 1]

    assert comparisons(go_on) <= 100 * 200
