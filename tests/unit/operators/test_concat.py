"""Tests of `concat`."""

from __future__ import annotations

import pytest

from differential import Collection, example
from tests.oracle.grid import on_workers, run
from timely import Scope
from timely.errors import BuildError


@on_workers
def test_counts_are_added(workers: int) -> None:
    first = [((1, 5), (0,), 1), ((2, 5), (1,), 1)]
    second = [((1, 5), (1,), 2), ((2, 5), (1,), -1)]
    third = [((3, 5), (0,), 1)]
    changes = run(lambda one, two, three: one.concat(two, three), first, second, third, workers=workers)
    assert changes == [((1, 5), (0,), 1), ((3, 5), (0,), 1), ((1, 5), (1,), 2)]


@on_workers
def test_a_collection_with_itself_has_everything_twice(workers: int) -> None:
    changes = run(lambda one: one.concat(one), [((1, 5), (0,), 1), ((1, 5), (2,), -1)], workers=workers)
    assert changes == [((1, 5), (0,), 2), ((1, 5), (2,), -2)]


def test_a_collection_from_an_outer_scope_is_entered() -> None:
    def program(scope: Scope) -> Collection:
        numbers = Collection.of(scope, 7)
        with scope.iterative() as inner:
            return numbers.concat(numbers.enter(inner)).leave()

    assert example(program) == [((7,), 2)]


def test_collections_with_different_keys_are_refused() -> None:
    def program(scope: Scope) -> Collection:
        return Collection.of(scope, 1, 2).concat(Collection.of(scope, 1, 2, keys=2))

    with pytest.raises(BuildError, match="key"):
        example(program)
