"""Tests of `sum`, `min`, `max` and `top_k`."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from differential import Collection
from tests.oracle.grid import Update, contents, on_workers, run
from timely.errors import DataError

UPDATES: list[Update] = [((1, 10), (0,), 2), ((1, 30), (1,), 1), ((2, -5), (1,), 1), ((1, 30), (3,), -1)]
TEXTS: list[Update] = [((1, "b", 2.5), (0,), 1), ((1, "b", -1.0), (1,), 1), ((1, "a", 9.0), (2,), 1)]


@on_workers
def test_values_are_added_as_often_as_they_occur(workers: int) -> None:
    assert run(lambda one: one.sum(), UPDATES, workers=workers) == [
        ((1, 20), (0,), 1),
        ((1, 20), (1,), -1),
        ((1, 50), (1,), 1),
        ((2, -5), (1,), 1),
        ((1, 20), (3,), 1),
        ((1, 50), (3,), -1),
    ]


@on_workers
def test_a_sum_of_floats_is_rounded_once(workers: int) -> None:
    updates = [((1, 0.1), (0,), 3), ((1, 1e16), (1,), 1), ((1, 1e16), (2,), -1)]
    changes = run(lambda one: one.sum(), updates, workers=workers)
    for epoch, values in enumerate(([0.1] * 3, [0.1] * 3 + [1e16], [0.1] * 3)):
        assert contents(changes, (epoch,)) == {(1, math.fsum(values)): 1}


@on_workers
def test_a_new_least_or_greatest_value_is_found_when_the_old_one_is_removed(workers: int) -> None:
    assert run(lambda one: one.max(), UPDATES, workers=workers) == [
        ((1, 10), (0,), 1),
        ((1, 10), (1,), -1),
        ((1, 30), (1,), 1),
        ((2, -5), (1,), 1),
        ((1, 10), (3,), 1),
        ((1, 30), (3,), -1),
    ]
    assert run(lambda one: one.min(), UPDATES, workers=workers) == [((1, 10), (0,), 1), ((2, -5), (1,), 1)]


@on_workers
def test_values_of_several_columns_are_compared_column_by_column(workers: int) -> None:
    assert run(lambda one: one.min(), TEXTS, workers=workers) == [
        ((1, "b", 2.5), (0,), 1),
        ((1, "b", -1.0), (1,), 1),
        ((1, "b", 2.5), (1,), -1),
        ((1, "a", 9.0), (2,), 1),
        ((1, "b", -1.0), (2,), -1),
    ]
    assert run(lambda one: one.max(), TEXTS, workers=workers) == [((1, "b", 2.5), (0,), 1)]


@on_workers
def test_a_value_that_occurs_twice_counts_as_two(workers: int) -> None:
    assert run(lambda one: one.top_k(2), UPDATES, workers=workers) == [
        ((1, 10), (0,), 2),
        ((1, 10), (1,), -1),
        ((1, 30), (1,), 1),
        ((2, -5), (1,), 1),
        ((1, 10), (3,), 1),
        ((1, 30), (3,), -1),
    ]
    smallest = run(lambda one: one.top_k(2, smallest=True), TEXTS, workers=workers)
    assert smallest[-2:] == [((1, "a", 9.0), (2,), 1), ((1, "b", 2.5), (2,), -1)]


def test_the_largest_zero_values_are_refused() -> None:
    def program(one: Collection) -> Collection:
        return one.top_k(0)

    with pytest.raises(DataError, match="at least 1, not 0"):
        run(program, UPDATES)


@on_workers
@pytest.mark.parametrize("again", [lambda one: one.max(), lambda one: one.top_k(1)])
def test_values_too_large_to_order_by_code_are_compared_in_nested_reductions_too(
    workers: int, again: Callable[[Collection], Collection]
) -> None:
    large = 1 << 44
    updates: list[Update] = [((1, 5, 0), (0,), 1), ((1, 2 * large, 0), (1,), 1), ((1, large, 0), (1,), 1)]
    changes = run(lambda one: again(one.top_k(3)), updates, workers=workers)
    assert contents(changes, (1,)) == {(1, 2 * large, 0): 1}


@on_workers
def test_a_sum_with_nan_or_with_infinities_of_both_signs_is_nan_while_they_are_there(workers: int) -> None:
    updates: list[Update] = [((1, 2.0), (0,), 1), ((7, math.inf), (0,), 1), ((7, -math.inf), (1,), 1)]
    updates += [((7, -math.inf), (2,), -1), ((1, math.nan), (1,), 1), ((1, math.nan), (2,), -1)]
    changes = run(lambda one: one.sum(), updates, workers=workers)
    assert contents(changes, (0,)) == {(1, 2.0): 1, (7, math.inf): 1}
    assert contents(changes, (1,)) == {(1, np.nan): 1, (7, np.nan): 1}
    assert contents(changes, (2,)) == {(1, 2.0): 1, (7, math.inf): 1}
