from __future__ import annotations

from itertools import product

from hypothesis import given, strategies as st

from timely.order import LIMIT, less_equal
from timely.progress.summary import PathSummary


def summaries(length: int, result: int | None = None) -> st.SearchStrategy[PathSummary]:
    """Summaries from times of `length` coordinates, to times of `result` if that is given."""
    small = st.integers(0, 2)

    def build(keep: int) -> st.SearchStrategy[PathSummary]:
        appended = st.integers(0 if keep else 1, 2) if result is None else st.just(result - keep)
        suffix = appended.flatmap(lambda count: st.tuples(*[small] * count))
        return st.builds(PathSummary, st.just(keep), st.tuples(*[small] * keep), suffix)

    return st.integers(0, length if result is None else min(length, result)).flatmap(build)


def test_entering_a_loop_appends_a_counter_and_leaving_it_drops_the_counter() -> None:
    assert PathSummary.enter(1).results_in((4,)) == (4, 0)
    assert PathSummary.leave(2).results_in((4, 7)) == (4,)
    assert PathSummary.enter(1).followed_by(PathSummary.leave(2)) == PathSummary.identity(1)


def test_feedback_adds_to_the_innermost_counter() -> None:
    assert PathSummary.feedback(3).results_in((4, 7, 1)) == (4, 7, 2)
    assert PathSummary.feedback(2, step=5).results_in((4, 7)) == (4, 12)


def test_increments_are_lost_with_the_counter_they_were_added_to() -> None:
    way_out = PathSummary.feedback(2).followed_by(PathSummary.leave(2))
    assert way_out == PathSummary.leave(2)
    assert not way_out.advances


def test_a_time_past_the_limit_never_arrives() -> None:
    assert PathSummary.feedback(2).results_in((0, LIMIT - 1)) == (0, LIMIT)
    assert PathSummary.feedback(2).results_in((0, LIMIT)) is None


@given(st.data())
def test_a_composed_summary_results_in_what_the_two_do_in_turn(data: st.DataObject) -> None:
    length = data.draw(st.integers(1, 3))
    first = data.draw(summaries(length))
    second = data.draw(summaries(first.length))
    time = data.draw(st.tuples(*[st.integers(0, 5)] * length))
    middle = first.results_in(time)
    assert middle is not None
    assert first.followed_by(second).results_in(time) == second.results_in(middle)


@given(st.data())
def test_a_summary_precedes_another_if_its_result_always_does(data: st.DataObject) -> None:
    length, result = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    a, b = data.draw(summaries(length, result)), data.draw(summaries(length, result))

    def precedes(time: tuple[int, ...]) -> bool:
        first, second = a.results_in(time), b.results_in(time)
        assert first is not None
        assert second is not None
        return less_equal(first, second)

    assert a.less_equal(b) == all(map(precedes, product((0, 1, 9), repeat=length)))
