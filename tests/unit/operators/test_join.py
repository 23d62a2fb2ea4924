"""Tests of `join`, `join_map`, `semijoin` and `antijoin`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from differential import Collection, example, new_input
from tests.oracle.grid import on_workers, run
from timely import Worker, execute_directly
from timely.errors import OperatorError

LEFT = [((1, 10), (0,), 1), ((2, 20), (1,), 2), ((1, 10), (3,), -1)]
RIGHT = [((1, "a"), (2,), 1), ((2, "b"), (0,), 3), ((3, "c"), (0,), 1)]
KEYS = [((1,), (0,), 1), ((3,), (0,), 1), ((2,), (2,), 1), ((1,), (4,), -1)]


@on_workers
def test_pairs_with_equal_keys_are_found_when_both_sides_are_present(workers: int) -> None:
    expected = [((2, 20, "b"), (1,), 6), ((1, 10, "a"), (2,), 1), ((1, 10, "a"), (3,), -1)]
    assert run(lambda left, right: left.join(right), LEFT, RIGHT, workers=workers) == expected
    assert run(lambda left, right: left.arrange_by_key().join(right), LEFT, RIGHT, workers=workers) == expected


@on_workers
def test_pairs_appear_at_the_join_of_their_times(workers: int) -> None:
    left, right = [((1, 10), (0, 2), 1)], [((1, "a"), (1, 0), 1)]
    changes = run(lambda one, other: one.join(other), left, right, workers=workers, outer=2)
    assert changes == [((1, 10, "a"), (1, 2), 1)]


@on_workers
def test_equal_results_of_a_join_function_are_counted_together(workers: int) -> None:
    changes = run(
        lambda one, other: one.join_map(other, lambda key, number, letter: (letter, number // 15)),
        LEFT, RIGHT, workers=workers,
    )  # fmt: skip
    assert changes == [(("b", 1), (1,), 6), (("a", 0), (2,), 1), (("a", 0), (3,), -1)]


@on_workers
def test_a_semijoin_keeps_what_an_antijoin_does_not(workers: int) -> None:
    updates = [((1, 10), (1,), 1), ((2, 20), (1,), 1)]
    kept = [((1, 10), (1,), 1), ((2, 20), (2,), 1), ((1, 10), (4,), -1)]
    lost = [((2, 20), (1,), 1), ((2, 20), (2,), -1), ((1, 10), (4,), 1)]
    assert run(lambda one, keys: one.semijoin(keys), updates, KEYS, workers=workers) == kept
    assert run(lambda one, keys: one.antijoin(keys), updates, KEYS, workers=workers) == lost


@on_workers
def test_keys_of_several_columns_must_agree_in_all(workers: int) -> None:
    updates = [((1, "a", 0.5), (0,), 1), ((1, "b", 1.5), (0,), 1)]

    def program(one: Collection) -> Collection:
        pairs = one.map(lambda number, letter, share: (number, letter, share), keys=2)
        return pairs.join(pairs)

    assert run(program, updates, workers=workers) == [((1, "a", 0.5, 0.5), (0,), 1), ((1, "b", 1.5, 1.5), (0,), 1)]


def test_keys_of_different_kinds_are_refused() -> None:
    with pytest.raises(OperatorError, match="different kinds: integers on the left, text on the right"):
        example(lambda scope: Collection.of(scope, 1, 2).join(Collection.of(scope, np.array(["a"]), np.array([1]))))


@pytest.mark.parametrize("keep", [lambda one, keys: one.semijoin(keys), lambda one, keys: one.antijoin(keys)])
def test_keys_that_have_values_are_refused(keep: Callable[[Collection, Collection], Collection]) -> None:
    with pytest.raises(OperatorError, match="the collection of keys has values, too"):
        example(lambda scope: keep(Collection.of(scope, 1, 2), Collection.of(scope, 1, 9)))


def test_a_record_with_a_long_history_that_occurs_too_often_is_named() -> None:
    epochs = 600  # so many pairs that histories are cut

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, records = new_input(scope)
            trace = records.arrange_by_key().trace()
        for epoch in range(epochs):
            session.update_at("ann", epoch, time=epoch)
        for epoch in range(2):
            session.update_at("ann", -1, time=epoch, diff=1 << 62)
        session.close()
        worker.step_while(lambda: trace.upper)
        with worker.dataflow() as question:
            other, collection = new_input(question)
            answer = trace.import_into(question, since=300).join(collection).consolidate().output()
        for epoch in range(epochs):
            other.update_at("ann", epoch, time=epoch)
        other.close()
        worker.step_while(lambda: not answer.done())

    with pytest.raises(OperatorError, match=r"how often \('ann', -1, 0\) occurs does not fit into 64 bits"):
        execute_directly(program)
