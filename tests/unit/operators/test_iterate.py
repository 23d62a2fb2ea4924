"""Loops: what they settle to, how many rounds they may take, and how those that do not settle are reported."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable

import numpy as np
import pytest

from differential import Collection, Variable, example, new_input
from differential.delta import Prefixes
from differential.graphs import transitive_closure
from differential.operators.hold import hold
from differential.operators.rounds import Rounds
from tests.oracle.grid import contents, on_workers, run
from timely import Config, Scope, Worker, execute
from timely.errors import BuildError, OperatorError, UnsettledWarning

PATH = [((node, node + 1), (0,), 1) for node in range(6)]


def distances(edges: Collection, limit: int | None = None) -> Collection:
    """Distances from node 0: on a path, one more in each round."""
    start = Collection.of(edges.scope, 0, 0)
    return start.iterate(
        lambda inner: (
            inner.join_map(edges, lambda node, distance, neighbour: (neighbour, distance + 1)).concat(start).min()
        ),
        limit=limit,
    )


def counting(scope: Scope, limit: int, *, late: bool = False) -> Collection:
    """0 to 4, one found in each round; numbers above 100 go round too, and cancel."""
    start = Collection.of(scope, 0)
    with scope.iterative() as inner:
        entered = start.enter(inner)
        value = Variable(inner, entered if late else start, limit=limit)
        found = value.collection.distinct()
        more = found.map(lambda number: number + 100)
        following = found.map(lambda number: number + 1).filter(lambda number: number < 5)
        result = entered.concat(following).concat(more).concat(more.negate())
        value.set(result)
        return result.leave()


def mutual(scope: Scope, limit: int) -> Collection:
    """Two variables that take turns up to 4; each changes in every other round."""
    start = Collection.of(scope, 0)
    with scope.iterative() as inner:
        even, odd = Variable(inner, start, limit=limit), Variable(inner, limit=limit)
        following = odd.collection.map(lambda number: number + 1).filter(lambda number: number < 5)
        evens = following.concat(start.enter(inner)).distinct()
        odds = even.collection.map(lambda number: number + 1).filter(lambda number: number < 5).distinct()
        even.set(evens)
        odd.set(odds)
        return evens.concat(odds).leave()


def by_half_join(inner: Collection) -> Collection:
    outside = inner.scope.parent
    assert outside is not None
    same = Collection.of(outside, np.arange(3), np.arange(3)).arrange_by_key().enter(inner.scope)
    return Prefixes.of(inner).half_join(same, lambda _, number: number).results()


@pytest.mark.parametrize("body", [lambda inner: inner, lambda inner: inner.negate().negate(), hold, by_half_join])
@on_workers
def test_a_loop_that_changes_nothing_settles(workers: int, body: Callable[[Collection], Collection]) -> None:
    updates = [((0,), (0,), 2), ((1,), (0,), 1), ((0,), (1,), -2), ((1,), (1,), -1)]

    assert run(lambda numbers: numbers.iterate(body), updates, workers=workers) == updates


@pytest.mark.parametrize(
    "body", [lambda inner: inner.distinct().map(lambda x: x), lambda inner: inner.map(lambda x: x)]
)
def test_a_loop_variable_is_arranged_once(body: Callable[[Collection], Collection]) -> None:
    def program(worker: Worker) -> int:
        with worker.dataflow() as scope:
            Collection.of(scope, 1).iterate(body)
        return [operator.name for operator in scope.dataflow.operators].count("arrange")

    assert execute(program) == [1]


@on_workers
def test_a_loop_works_at_the_greatest_times_as_at_the_first(workers: int) -> None:
    updates = [((0, 1), (0,), 1), ((1, 2), (2,), 1), ((2, 0), (2,), 1), ((0, 1), (4,), -1), ((0, 2), (5,), 1)]
    later = 2**62 - 5
    shifted = [(edge, (epoch + later,), diff) for edge, (epoch,), diff in updates]
    expected = [(pair, (epoch + later,), diff) for pair, (epoch,), diff in run(transitive_closure, updates)]
    assert run(transitive_closure, shifted, workers=workers) == expected


@on_workers
def test_a_limit_does_not_change_a_loop_that_settles_within_it(workers: int) -> None:
    expected = {(node, node): 1 for node in range(7)}
    assert contents(run(lambda edges: distances(edges, limit=6), PATH, workers=workers), (0,)) == expected
    assert contents(run(distances, PATH, workers=workers), (0,)) == expected


@on_workers
def test_a_loop_beyond_its_limit_is_an_error_that_names_the_round_and_the_changes(workers: int) -> None:
    with pytest.raises(OperatorError) as error:
        run(lambda edges: distances(edges, limit=5), PATH, workers=workers)
    assert "operator 'iterate' failed" in str(error.value)
    assert "test_iterate.py:" in str(error.value)
    assert "settle within 5 rounds, but in round 6 at (0,) 1 record changes, (6, 6) by +1" in str(error.value)


@pytest.mark.parametrize("late", [False, True])
def test_changes_that_cancel_count_as_none(late: bool) -> None:
    expected = [((number,), 1) for number in range(5)]
    assert example(lambda scope: counting(scope, limit=4, late=late)) == expected
    with pytest.raises(OperatorError, match=r"in round 4 at \(0,\) 1 record changes, \(4,\) by \+1"):
        example(lambda scope: counting(scope, limit=3, late=late))


def test_each_of_several_variables_has_its_limit() -> None:
    assert example(lambda scope: mutual(scope, limit=4)) == [((number,), 1) for number in range(5)]
    with pytest.raises(OperatorError, match=r"in round 4 at \(0,\) 1 record changes, \(4,\) by \+1"):
        example(lambda scope: mutual(scope, limit=3))


def test_rounds_are_counted_from_zero_in_each_epoch_and_in_each_round_of_the_outer_loop() -> None:
    later = [((node, node + 1), (epoch,), 1) for epoch in range(3) for node in range(2 * epoch, 2 * epoch + 2)]

    def twice(edges: Collection) -> Collection:
        start = Collection.of(edges.scope, 0, 0)
        return start.iterate(lambda outer: distances(edges, limit=6).concat(outer).min(), limit=3)

    assert contents(run(twice, later), (2,)) == {(node, node): 1 for node in range(7)}
    with pytest.raises(OperatorError, match=r"in round 5 at \(2,\)"):
        run(lambda edges: distances(edges, limit=4), later)


def test_a_limit_of_less_than_a_round_is_refused() -> None:
    with pytest.raises(BuildError, match="limit cannot be 0"):
        example(lambda scope: Collection.of(scope, 1).iterate(lambda inner: inner, limit=0))

    def program(scope: Scope, limit: int) -> Collection:
        with scope.iterative() as inner:
            value = Variable(inner, Collection.of(scope, 1), step=2, limit=limit)
            value.set(value.collection.distinct())
            return value.collection.leave()

    assert example(lambda scope: program(scope, limit=2)) == [((1,), 1)]
    with pytest.raises(BuildError, match="limit cannot be 1"):
        example(lambda scope: program(scope, limit=1))


def growing(limit: int | None) -> Callable[[Worker], None]:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, numbers = new_input(scope)
            grown = numbers.iterate(lambda inner: inner.map(lambda number: number + 1), limit=limit)
            grown.probe()
        if worker.index == 0:
            session.insert(np.arange(5))
        session.close()
        worker.step_while(lambda: True)

    return program


def test_a_loop_that_does_not_settle_is_reported_at_its_line_at_growing_intervals() -> None:
    with (
        warnings.catch_warnings(record=True, action="always") as caught,
        pytest.raises(OperatorError, match="settle within 100"),
    ):
        execute(growing(100), config=Config(report_rounds=20))
    assert [one.category for one in caught] == [UnsettledWarning] * 3
    assert {one.filename for one in caught} == {__file__}
    for one, round in zip(caught, (20, 40, 80)):
        assert f"in round {round} at (0,) 2 records change, ({round - 1},) by -1" in str(one.message)


def test_a_warning_turned_into_an_error_ends_the_loop() -> None:
    with pytest.raises(OperatorError, match=r"UnsettledWarning: operator 'iterate' on worker 0 of 1 goes on"):
        execute(growing(None), config=Config(report_rounds=20))


def test_a_loop_without_a_limit_is_not_checked_before_its_first_report(monkeypatch: pytest.MonkeyPatch) -> None:
    def look(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(Rounds, "look", look)
    assert len(run(distances, PATH)) == 7


@pytest.mark.parametrize("limit", [0, 1.5])
def test_a_limit_that_is_not_a_number_of_rounds_is_refused(limit: object) -> None:
    with pytest.raises(BuildError, match="takes whole rounds"):
        example(lambda scope: counting(scope, limit=limit))  # type: ignore[arg-type]


def test_what_a_variable_becomes_enters_its_loop() -> None:
    def program(scope: Scope) -> Collection:
        known = Collection.of(scope, np.array([1, 2]))
        with scope.iterative() as outer:
            value = Variable(outer)
            value.set(known)
            with outer.iterative() as inner:
                again = Variable(inner)
                again.set(known)
                return again.collection.concat(value.collection).leave().leave()

    assert example(program) == [((1,), 2), ((2,), 2)]


def test_a_loop_in_a_loop_may_become_what_is_outside_of_both() -> None:
    def program(scope: Scope) -> Collection:
        one, many = Collection.of(scope, 1), Collection.of(scope, np.arange(3))
        return one.iterate(lambda outer: outer.iterate(lambda inner: many))

    assert example(program) == [((0,), 1), ((1,), 1), ((2,), 1)]


def test_a_variable_cannot_become_what_an_inner_loop_has_not_left() -> None:
    def program(scope: Scope) -> Collection:
        with scope.iterative() as loop:
            value = Variable(loop, Collection.of(scope, 1), name="value")
            with loop.iterative("deeper") as deeper:
                inside = value.collection.enter(deeper)
            value.set(inside)
            return value.collection.leave()

    problem = r"value \(at .*test_iterate.py:\d+\): a variable of scope 'example/iterative' cannot become"
    remedy = problem + r" a collection of scope '.*deeper': leave\(\)"
    with pytest.raises(BuildError, match=remedy):
        example(program)


@pytest.mark.parametrize("use", [lambda one, other: one.join(other), lambda one, other: one.concat(other)])
def test_a_loop_that_starts_outside_of_the_loop_around_it_is_refused_with_both_lines(
    use: Callable[[Collection, Collection], Collection],
) -> None:
    def program(scope: Scope) -> Collection:
        start = Collection.of(scope, 1, 2)

        def body(outer: Collection) -> Collection:
            return start.iterate(lambda inner: use(inner, outer))

        return start.iterate(body)

    apart = r"'example/iterate', opened at .*py:(\d+), .*'example/iterate', opened at .*py:(\d+).*innermost\(\)"
    with pytest.raises(BuildError, match=apart) as refused:
        example(program)
    assert len({*re.search(apart, str(refused.value)).groups()}) == 2  # type: ignore[union-attr]


@pytest.mark.parametrize("wrong", [3, Collection])
def test_a_variable_becomes_a_collection(wrong: object) -> None:
    def program(scope: Scope) -> Collection:
        with scope.iterative() as loop:
            value = Variable(loop, name="value")
            value.set(wrong)  # type: ignore[arg-type]
            return value.collection.leave()

    with pytest.raises(BuildError, match=r"value \(at .*: `result` must be a collection"):
        example(program)
