"""Tests of `assert_empty` and `assert_eq`."""

from __future__ import annotations

import pytest

from differential import Collection
from tests.oracle.grid import on_workers, run
from timely.errors import OperatorError

UPDATES = [((1, 5), (0,), 1), ((2, 6), (1,), 1), ((1, 5), (3,), -1)]


@on_workers
def test_an_assertion_that_holds_changes_nothing(workers: int) -> None:
    def program(one: Collection) -> Collection:
        one.filter(lambda key, value: value < key).assert_empty()
        return one.assert_eq(one.map(lambda key, value: (value, key)).map(lambda value, key: (key, value)))

    assert run(program, UPDATES, workers=workers) == UPDATES


@on_workers
def test_an_unexpected_record_is_named_with_its_time(workers: int) -> None:
    with pytest.raises(OperatorError, match=r"'no sixes' failed at time \(1,\).*the count of \(2, 6\) changes by 1"):
        run(lambda one: one.filter(lambda _, value: value == 6).assert_empty(name="no sixes"), UPDATES, workers=workers)


@on_workers
def test_a_record_that_only_one_side_has_is_named_with_its_time(workers: int) -> None:
    with pytest.raises(OperatorError, match=r"at time \(3,\).* equal, but only in the right: \(1, 5\) \(once\)$"):
        run(lambda one, other: one.assert_eq(other), UPDATES, UPDATES[:2], workers=workers)


@on_workers
def test_an_inequality_names_the_records_of_each_side_at_the_first_time_with_their_counts(workers: int) -> None:
    left = [((1, 5), (1,), 3), ((1, 7), (2,), 1)]
    right = [((1, 5), (1,), 1), ((1, 6), (1,), 1), ((1, 8), (2,), 1)]
    words = r"at time \(1,\).*: DataError: .* left: \(1, 5\) \(2 times\); only in the right: \(1, 6\) \(once\)$"
    with pytest.raises(OperatorError, match=words):
        run(lambda one, other: one.assert_eq(other, name="same"), left, right, workers=workers)


def test_an_inequality_names_a_few_records_and_how_many_more() -> None:
    left = [((key, 0), (0,), 1) for key in range(1010)]
    with pytest.raises(OperatorError, match=r"only in the left: \(0, 0\) \(once\), .* and 1,005 more$"):
        run(lambda one, other: one.assert_eq(other), left, [])
