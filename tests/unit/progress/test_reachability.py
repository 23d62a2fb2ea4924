from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from tests.invariants import check
from timely.errors import BuildError, CycleError
from timely.order import LIMIT, Time, less_equal
from timely.progress import reachability
from timely.progress.antichain import Antichain
from timely.progress.cycles import Position
from timely.progress.graph import Edge
from timely.progress.reachability import Tracker
from timely.progress.summary import PathSummary

ONE, TWO = PathSummary.identity(1), PathSummary.identity(2)


def chain(length: int) -> Tracker:
    return Tracker([1] * length, [Edge(place, place + 1, ONE) for place in range(length - 1)])


def loop() -> Tracker:
    """An input (0), a loop of three locations (1, 2, 3), and an output (4)."""
    edges = [Edge(0, 1, PathSummary.enter(1)), Edge(1, 2, TWO), Edge(2, 3, TWO)]
    edges += [Edge(3, 1, PathSummary.feedback(2)), Edge(3, 4, PathSummary.leave(2))]
    return Tracker([1, 2, 2, 2, 1], edges)


def elements(tracker: Tracker, location: int) -> list[tuple[int, ...]]:
    return list(tracker.frontier(location))


def test_updates_wait_for_propagate() -> None:
    tracker = chain(3)
    tracker.update(0, (0,), 1)
    assert tracker.is_behind
    assert elements(tracker, 2) == []
    assert tracker.propagate() == [0, 1, 2]
    assert elements(tracker, 2) == [(0,)]
    assert not tracker.is_behind


def test_an_unchanged_frontier_is_the_same_object() -> None:
    tracker = chain(2)
    tracker.update(0, (0,), 1)
    tracker.propagate()
    before = tracker.frontier(1)
    tracker.update(1, (3,), 1)
    assert tracker.propagate() == []
    assert tracker.frontier(1) is before


def test_a_frontier_that_changes_and_returns_is_not_reported() -> None:
    tracker = chain(3)
    tracker.update(0, (0,), 1)
    tracker.propagate()
    tracker.update_all([(0, (0,), -1), (1, (0,), 1)])
    assert tracker.propagate() == [0]


def test_the_frontier_in_a_loop_holds_epochs_and_iterations() -> None:
    tracker = loop()
    tracker.update_all([(2, (0, 5), 1), (0, (1000,), 1)])
    tracker.propagate()
    assert elements(tracker, 1) == [(0, 6), (1000, 0)]
    assert elements(tracker, 2) == [(0, 5), (1000, 0)]
    assert elements(tracker, 4) == [(0,)]
    check(tracker)


def settlements(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Collect what a tracker settles from now on: an item for each location and key."""
    settled: list[object] = []
    settle = reachability._settle

    def counted(*arguments: Any) -> tuple[tuple[int, ...], ...]:
        settled.append(arguments)
        return settle(*arguments)

    monkeypatch.setattr(reachability, "_settle", counted)
    return settled


@pytest.mark.interpreted
def test_the_last_pointstamp_leaves_a_loop_without_an_echo(monkeypatch: pytest.MonkeyPatch) -> None:
    tracker = loop()
    tracker.update(1, (0, 0), 1)
    tracker.propagate()
    settled = settlements(monkeypatch)
    tracker.update(1, (0, 0), -1)
    assert tracker.propagate() == [1, 2, 3, 4]
    assert len(settled) <= 10
    assert tracker.is_idle
    check(tracker)


@pytest.mark.interpreted
def test_a_step_of_an_epoch_visits_each_location_outside_loops_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tracker = chain(20)
    tracker.update(0, (0,), 1)
    tracker.propagate()
    settled = settlements(monkeypatch)
    tracker.update_all([(0, (0,), -1), (0, (1,), 1)])
    assert tracker.propagate() == list(range(20))
    assert len(settled) == 20


@pytest.mark.interpreted
def test_all_epochs_of_an_iteration_advance_together(monkeypatch: pytest.MonkeyPatch) -> None:
    tracker = loop()
    tracker.update_all([(1, (epoch, 4), 1) for epoch in range(1000)])
    tracker.propagate()
    settled = settlements(monkeypatch)
    tracker.update_all([(1, (epoch, 4), -1) for epoch in range(1000)])
    tracker.update_all([(1, (epoch, 5), 1) for epoch in range(1000)])
    assert sorted(tracker.propagate()) == [1, 2, 3]
    assert len(settled) <= 12
    assert elements(tracker, 3) == [(0, 5)]


def test_a_consumption_counted_before_its_production_hides_nothing_upstream() -> None:
    tracker = chain(2)
    tracker.update_all([(0, (0,), 1), (1, (0,), -1)])
    tracker.propagate()
    assert elements(tracker, 1) == [(0,)]
    tracker.update_all([(0, (0,), -1), (1, (0,), 1)])
    tracker.propagate()
    assert elements(tracker, 1) == []
    assert tracker.is_idle


def test_negative_counts_alone_make_no_frontier_and_do_not_mean_the_end() -> None:
    tracker = chain(2)
    tracker.update(1, (0,), -1)
    tracker.propagate()
    assert elements(tracker, 1) == []
    assert not tracker.is_idle
    assert list(tracker.pointstamps()) == [(1, (0,), -1)]


def test_a_loop_cannot_go_round_past_the_limit() -> None:
    tracker = loop()
    tracker.update(1, (0, LIMIT), 1)
    tracker.propagate()
    assert elements(tracker, 3) == [(0, LIMIT)]
    tracker.update(1, (0, LIMIT), -1)
    tracker.propagate()
    assert elements(tracker, 3) == []
    check(tracker)


@pytest.mark.parametrize("length", [1, 2, 3])
def test_a_time_goes_up_to_the_limit(length: int) -> None:
    on, outer = PathSummary.feedback(length), (0,) * (length - 1)
    tracker = Tracker([length] * 3, [Edge(0, 1, on), Edge(1, 2, on)])
    tracker.update(0, (*outer, LIMIT - 1), 1)
    tracker.propagate()
    assert [elements(tracker, place) for place in range(3)] == [[(*outer, LIMIT - 1)], [(*outer, LIMIT)], []]


def test_of_two_times_one_may_be_past_the_limit() -> None:
    tracker = Tracker([2, 2], [Edge(0, 1, PathSummary.feedback(2))])
    tracker.update_all([(0, (0, LIMIT), 1), (0, (1, 3), 1)])
    tracker.propagate()
    assert elements(tracker, 1) == [(1, 4)]
    tracker.update_all([(0, (0, LIMIT), -1), (0, (1, 3), -1)])
    tracker.propagate()
    assert elements(tracker, 1) == []


@pytest.mark.interpreted
def test_a_change_that_moves_no_frontier_is_settled_at_its_location(monkeypatch: pytest.MonkeyPatch) -> None:
    tracker = loop()
    tracker.update_all([(1, (0, 5), 1), (0, (7,), 1)])
    tracker.propagate()
    settled = settlements(monkeypatch)
    tracker.update_all([(1, (0, 6), 1), (0, (8,), 1)])
    assert tracker.propagate() == []
    assert len(settled) == 2


@pytest.mark.interpreted
def test_an_element_that_stays_is_not_passed_on_again(monkeypatch: pytest.MonkeyPatch) -> None:
    tracker = loop()
    tracker.update_all([(1, (0, 5), 1), (1, (1, 4), 1)])
    tracker.propagate()
    settled = settlements(monkeypatch)
    tracker.update(1, (2, 3), 1)
    assert tracker.propagate() == [1, 2, 3]
    # Each location of the loop, the output, and the next round's first.
    assert len(settled) == 5
    for time in ((2, 3), (1, 4)):
        settled.clear()
        tracker.update(1, time, -1)
        assert tracker.propagate() == [1, 2, 3]
        assert len(settled) == 5
    settled.clear()
    tracker.update(1, (1, 4), 1)
    assert tracker.propagate() == [1, 2, 3]
    assert len(settled) == 5


@pytest.mark.parametrize("depth", range(5))
def test_keys_interleave_components_and_the_coordinates_between_them(depth: int) -> None:
    key = reachability._key(Position(tuple(range(10, 11 + depth)), tuple(range(depth))))
    interleaved = [item for level in range(depth) for item in (10 + level, 70 + level)]
    assert (key and key(tuple(range(70, 80)))) == ((*interleaved, 10 + depth) if depth else None)


def test_the_sole_holder_is_the_one_whose_end_would_move_the_frontier() -> None:
    tracker = chain(2)
    tracker.update_all([(0, (0,), 1), (1, (0,), 1), (1, (4,), 1)])
    tracker.propagate()
    assert tracker.is_sole_holder(0, (0,))
    assert not tracker.is_sole_holder(1, (0,))
    assert not tracker.is_sole_holder(1, (4,))
    assert not tracker.is_sole_holder(1, (9,))


def test_the_holders_of_a_time_come_with_their_counts() -> None:
    tracker = loop()
    tracker.update_all([(0, (3,), 1), (2, (1, 7), 2), (4, (9,), 1), (3, (0, 0), -1)])
    tracker.propagate()
    assert sorted(tracker.holders(4, (2,))) == [(2, (1, 7), 2)]
    assert sorted(tracker.holders(4, (9,))) == [(0, (3,), 1), (2, (1, 7), 2), (4, (9,), 1)]
    assert tracker.holders(4, (0,)) == []


def test_could_result_in_follows_paths_and_times() -> None:
    tracker = loop()
    assert tracker.holding(1, (0, 4))(2, (0, 3))
    assert not tracker.holding(1, (0, 3))(2, (0, 3))
    assert tracker.holding(4, (0,))(2, (0, 3))
    assert not tracker.holding(2, (0, 3))(4, (0,))


def test_a_summary_that_does_not_fit_its_locations_is_refused() -> None:
    with pytest.raises(BuildError, match="from the 1 time coordinates of input to the 2 of loop"):
        Tracker([1, 2], [Edge(0, 1, ONE)], ["input", "loop"].__getitem__)


def test_a_cycle_that_does_not_advance_is_refused() -> None:
    with pytest.raises(CycleError):
        Tracker([1, 1], [Edge(0, 1, ONE), Edge(1, 0, ONE)])


def test_validate_names_the_invariant_that_is_broken() -> None:
    tracker = chain(2)
    tracker.update(0, (0,), 1)
    tracker.propagate()
    check(tracker)
    tracker._support[1][(0,)] = 2
    with pytest.raises(AssertionError, match="supports at 1 are not what its sources give"):
        check(tracker)


def test_a_closed_location_has_the_empty_frontier() -> None:
    assert chain(1).frontier(0) == Antichain()


TRIPLES = [(a, b, c) for a in range(5) for b in range(5) for c in range(5)]


@given(st.lists(st.lists(st.sampled_from(TRIPLES), min_size=1, max_size=8), min_size=1, max_size=20), st.booleans())
def test_a_wide_frontier_is_that_of_all_times_that_are_left(changes: list[list[Time]], is_wide: bool) -> None:
    """Each change adds the times that are not there, and removes the others."""
    tracker = Tracker([3, 3], [Edge(0, 1, PathSummary.identity(3))])
    there: set[Time] = set()
    widest = [time for time in TRIPLES if sum(time) == 6]  # 19 times of which none is at or before another
    for times in [widest, *changes] if is_wide else changes:
        for time in set(times):
            tracker.update(0, time, -1 if time in there else 1)
        there ^= set(times)
        tracker.propagate()
        least = {time for time in there if not any(other != time and less_equal(other, time) for other in there)}
        for location in (0, 1):
            assert tracker.frontier(location).elements == tuple(sorted(least))
