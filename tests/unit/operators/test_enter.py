"""Tests of `enter`, `enter_at` and `leave`."""

from __future__ import annotations

from typing import Any

import pytest

from differential import Collection, example
from tests.oracle.grid import Update, on_workers, run
from timely import Scope
from timely.errors import BuildError, TimelyError

UPDATES = [((1, 5), (0,), 2), ((2, 6), (1,), 1), ((1, 5), (2,), -1)]


def looked_at(seen: list[Update], rounds: Any = None) -> Any:
    def program(one: Collection) -> Collection:
        with one.scope.iterative() as inner:
            entered = one.enter(inner) if rounds is None else one.enter_at(inner, rounds)
            return entered.inspect(lambda *update: seen.append(update)).leave()

    return program


@on_workers
def test_an_entered_collection_is_present_from_the_first_round_and_leaves_unchanged(workers: int) -> None:
    seen: list[Update] = []
    assert run(looked_at(seen), UPDATES, workers=workers) == UPDATES
    assert sorted(seen) == sorted((record, (*time, 0), diff) for record, time, diff in UPDATES)


@on_workers
def test_each_record_enters_at_its_round(workers: int) -> None:
    seen: list[Update] = []
    program = looked_at(seen, lambda key, value: value - key)
    assert run(program, UPDATES, workers=workers) == UPDATES
    assert sorted(seen) == sorted((record, (*time, record[1] - record[0]), diff) for record, time, diff in UPDATES)


@on_workers
def test_updates_that_later_rounds_retract_are_not_seen_outside(workers: int) -> None:
    def program(one: Collection) -> Collection:
        with one.scope.iterative() as inner:
            later = one.enter_at(inner, lambda key, value: value)
            return one.enter(inner).concat(later.negate()).leave().consolidate()

    assert run(program, UPDATES, workers=workers) == []


@on_workers
def test_a_collection_enters_and_leaves_several_loops_at_once(workers: int) -> None:
    def program(one: Collection) -> Collection:
        with one.scope.iterative() as outer, outer.iterative() as inner:
            deep = one.enter(inner)
            assert deep.scope is inner
            assert deep.enter(inner) is deep
            return deep.count().leave(one.scope)

    assert run(program, UPDATES, workers=workers) == run(lambda one: one.count(), UPDATES)


def test_a_round_before_the_first_is_refused() -> None:
    with pytest.raises(TimelyError, match="enter_at"):
        run(looked_at([], lambda key, value: key - value), UPDATES)


def test_a_collection_cannot_enter_a_sibling_loop() -> None:
    def program(scope: Scope) -> Collection:
        with scope.iterative("one") as one, scope.iterative("other") as other:
            return Collection.of(scope, 1).enter(one).enter(other).leave()

    with pytest.raises(BuildError, match=r"'other' is opened at .*py:\d+, 'one' at .*py:\d+\): leave\(\)"):
        example(program)
