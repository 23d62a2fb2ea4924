from __future__ import annotations

import pytest

from tests.strategies_progress import check_cycles
from timely.errors import CycleError
from timely.progress.cycles import positions, strong_components
from timely.progress.graph import Edge
from timely.progress.summary import PathSummary

TWO, ROUND = PathSummary.identity(2), PathSummary.feedback(2)


def test_a_loop_through_a_feedback_is_accepted() -> None:
    check_cycles([Edge(0, 1, TWO), Edge(1, 0, ROUND)])


def test_a_cycle_without_feedback_is_refused_by_name() -> None:
    names = ["map", "filter", "concat"]
    edges = [Edge(0, 1, TWO), Edge(1, 2, TWO), Edge(2, 0, TWO), Edge(2, 0, ROUND)]
    with pytest.raises(CycleError, match=r"the cycle .* does not advance its timestamps") as raised:
        check_cycles(edges, names.__getitem__)
    assert all(name in str(raised.value) for name in names)


def test_a_feedback_in_a_loop_that_the_cycle_leaves_does_not_help() -> None:
    # Round the loop, out of it, and in again: the counter starts again at zero.
    edges = [Edge(0, 1, ROUND), Edge(1, 2, PathSummary.leave(2)), Edge(2, 0, PathSummary.enter(1))]
    with pytest.raises(CycleError):
        check_cycles(edges)


def test_an_outer_feedback_compensates_for_an_inner_counter_that_starts_again() -> None:
    enter, leave = PathSummary.enter(2), PathSummary.leave(3)
    inner = PathSummary.feedback(3)
    check_cycles([Edge(0, 1, enter), Edge(1, 1, inner), Edge(1, 2, leave), Edge(2, 0, ROUND)])
    with pytest.raises(CycleError):
        check_cycles([Edge(0, 1, enter), Edge(1, 1, inner), Edge(1, 2, leave), Edge(2, 0, TWO)])


def test_a_delay_of_an_outermost_coordinate_advances_a_cycle() -> None:
    check_cycles([Edge(0, 1, TWO), Edge(1, 0, PathSummary(2, (1, 0), ()))])


def test_many_cycles_are_checked_without_enumerating_them() -> None:
    # A ladder of 60 diamonds has 2**60 simple cycles.
    edges = [Edge(180, 0, ROUND)]
    for rung in range(60):
        top = 3 * rung
        edges += [Edge(top, top + 1, TWO), Edge(top, top + 2, TWO)]
        edges += [Edge(top + 1, top + 3, TWO), Edge(top + 2, top + 3, TWO)]
    check_cycles(edges)
    with pytest.raises(CycleError):
        check_cycles([*edges, Edge(100, 10, TWO)])


def test_positions_follow_the_edges_and_know_which_counters_separate_loops() -> None:
    found = positions(4, [Edge(3, 1, PathSummary.enter(1)), Edge(1, 2, TWO), Edge(2, 1, ROUND)])
    assert found[3].coordinates == found[0].coordinates == ()
    assert found[1].coordinates == found[2].coordinates == (1,)
    assert found[3].rank < found[1].rank < found[2].rank


def test_components_come_before_those_they_lead_to() -> None:
    edges = [Edge(a, b, TWO) for a, b in [(4, 2), (2, 3), (3, 2), (3, 0), (0, 1), (1, 0)]]
    assert [sorted(part) for part in strong_components(range(5), edges)] == [[4], [2, 3], [0, 1]]
