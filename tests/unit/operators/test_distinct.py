"""Tests of `distinct` and `threshold`."""

from __future__ import annotations

import numpy as np
import pytest

from differential import Collection, example
from tests.oracle.grid import Update, on_workers, run
from timely.errors import OperatorError

UPDATES: list[Update] = [
    ((1, 5), (0,), 2),
    ((1, 5), (1,), -1),
    ((2, 5), (1,), 1),
    ((1, 5), (2,), -1),
    ((1, 5), (3,), 3),
]


def in_a_loop(one: Collection, twice: bool) -> Collection:
    with one.scope.iterative() as inner:
        entered = one.enter(inner)
        return (entered.threshold(lambda counts: counts // 2) if twice else entered.distinct()).leave()


@on_workers
def test_a_record_occurs_once_as_long_as_it_occurs_at_all(workers: int) -> None:
    expected = [((1, 5), (0,), 1), ((2, 5), (1,), 1), ((1, 5), (2,), -1), ((1, 5), (3,), 1)]
    assert run(lambda one: one.distinct(), UPDATES, workers=workers) == expected
    assert run(lambda one: in_a_loop(one, twice=False), UPDATES, workers=workers) == expected


@on_workers
def test_how_often_a_record_occurs_is_a_function_of_how_often_it_did(workers: int) -> None:
    expected = [((1, 5), (0,), 1), ((1, 5), (1,), -1), ((1, 5), (3,), 1)]
    assert run(lambda one: one.threshold(lambda counts: counts // 2), UPDATES, workers=workers) == expected
    assert run(lambda one: in_a_loop(one, twice=True), UPDATES, workers=workers) == expected


@on_workers
def test_records_that_are_all_key_are_told_apart(workers: int) -> None:
    updates = [((1,), (0,), 2), ((2,), (0,), 1), ((1,), (1,), -2)]
    expected = [((1,), (0,), 1), ((2,), (0,), 1), ((1,), (1,), -1)]
    assert run(lambda one: one.distinct(), updates, workers=workers) == expected


def test_a_function_must_return_one_integer_for_each_count() -> None:
    with pytest.raises(OperatorError, match="one integer for each count"):
        example(lambda scope: Collection.of(scope, np.array([1, 2])).threshold(lambda counts: counts / 2))
