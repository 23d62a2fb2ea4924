"""What cannot occur a negative number of times says which record does, when, and in which operator of whose line."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from differential import Collection
from tests.oracle.grid import Update, contents, on_workers, run
from timely.errors import OperatorError

Operator = Callable[[Collection, Collection], Collection]

OPERATORS: dict[str, Operator] = {
    "distinct": lambda one, _: one.distinct(),
    "threshold": lambda one, _: one.threshold(lambda counts: counts),
    "min": lambda one, _: one.min(),
    "max": lambda one, _: one.max(),
    "top_k": lambda one, _: one.top_k(2),
    "reduce": lambda one, _: one.reduce(lambda groups: (np.arange(len(groups)), np.diff(groups.offsets))),
    "reduce_each": lambda one, _: one.reduce_each(lambda key, values: [len(values)]),
    "cogroup": lambda one, other: other.cogroup(one, lambda groups: (np.arange(len(groups)), np.arange(len(groups)))),
    "union": lambda one, other: one.union(other),
    "intersect": lambda one, other: other.intersect(one),
    "except": lambda one, other: one.except_(other),
    "symmetric_difference": lambda one, other: one.symmetric_difference(other),
    "identifiers": lambda one, _: one.identifiers(),
}

FIRST: list[Update] = [((7, "a"), (0,), 1), ((7, "c"), (0,), 1), ((8, "b"), (1,), 2), ((7, "b"), (3,), -2)]
SECOND: list[Update] = [((7, "b"), (4,), 1)]
TIMES = {"outermost": "(3,)", "in a loop": "(3, 0)"}


def in_a_loop(operator: Operator) -> Operator:
    def within(one: Collection, other: Collection) -> Collection:
        with one.scope.iterative() as inner:
            return operator(one.enter(inner), other.enter(inner)).leave()

    return within


@on_workers
@pytest.mark.parametrize("place", TIMES)
@pytest.mark.parametrize("name", OPERATORS)
def test_a_record_removed_that_was_not_there_is_named(name: str, place: str, workers: int) -> None:
    operator = OPERATORS[name] if place == "outermost" else in_a_loop(OPERATORS[name])
    with pytest.raises(OperatorError) as error:
        run(operator, FIRST, SECOND, workers=workers)
    message = str(error.value)
    assert f"operator '{name}' failed at time {TIMES[place]} on worker" in message
    assert "test_negative_counts.py:" in message
    assert "the record (7, 'b') occurs a negative number of times, -2:" in message


def test_a_record_of_one_column_is_named_by_it() -> None:
    with pytest.raises(OperatorError, match="the record 'a' occurs a negative number of times, -2:"):
        run(lambda one: one.distinct(), [(("a",), (0,), -2)])


@on_workers
def test_sums_and_counts_may_pass_below_nothing(workers: int) -> None:
    numbers = [((7, 5), (0,), 1), ((7, 6), (3,), -2)]

    def program(one: Collection) -> Collection:
        sums = one.sum().concat(one.totals(lambda key, value: value))
        return one.count().concat(sums).concat(one.join_map(one, lambda key, ours, theirs: (key, ours * theirs)))

    assert contents(run(program, numbers, workers=workers), (3,)) == {
        (7, -1): 1,
        (7, -7): 2,
        (7, 25): 1,
        (7, 30): -4,
        (7, 36): 4,
    }
