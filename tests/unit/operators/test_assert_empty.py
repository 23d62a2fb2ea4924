"""Tests of `assert_empty` and `assert_eq`."""

from __future__ import annotations

import pytest

from differential import Collection
from tests.oracle.grid import on_workers, run
from timely.errors import OperatorError

UPDATES = [((1, 5), (0,), 1), ((2, 6), (1,), 1), ((1, 5), (3,), -1)]


@on_workers
def test_what_holds_changes_nothing(workers: int) -> None:
    def program(one: Collection) -> Collection:
        one.filter(lambda key, value: value < key).assert_empty()
        return one.assert_eq(one.map(lambda key, value: (value, key)).map(lambda value, key: (key, value)))

    assert run(program, UPDATES, workers=workers) == UPDATES


@on_workers
def test_a_record_that_should_not_be_is_named_with_its_time(workers: int) -> None:
    with pytest.raises(OperatorError, match=r"'no sixes' failed at time \(1,\).*the count of \(2, 6\) changes by 1"):
        run(lambda one: one.filter(lambda _, value: value == 6).assert_empty(name="no sixes"), UPDATES, workers=workers)


@on_workers
def test_a_record_that_only_one_side_has_is_named_with_its_time(workers: int) -> None:
    with pytest.raises(OperatorError, match=r"at time \(3,\).*the count of \(1, 5\) changes by -1"):
        run(lambda one, other: one.assert_eq(other), UPDATES, UPDATES[:2], workers=workers)
