"""Tests of `union`, `intersect`, `except_` and `symmetric_difference`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from differential import Collection
from tests.oracle.grid import on_workers, run

LEFT = [((1, "a"), (0,), 3), ((2, "b"), (0,), 1), ((1, "a"), (2,), -1)]
RIGHT = [((1, "a"), (1,), 1), ((3, "c"), (1,), 1), ((2, "b"), (2,), 2)]

SETS: list[tuple[Callable[[Collection, Collection], Collection], list[object]]] = [
    (
        Collection.union,
        [((1, "a"), (0,), 3), ((2, "b"), (0,), 1), ((3, "c"), (1,), 1), ((1, "a"), (2,), -1), ((2, "b"), (2,), 1)],
    ),
    (Collection.intersect, [((1, "a"), (1,), 1), ((2, "b"), (2,), 1)]),
    (
        Collection.except_,
        [((1, "a"), (0,), 3), ((2, "b"), (0,), 1), ((1, "a"), (1,), -1), ((1, "a"), (2,), -1), ((2, "b"), (2,), -1)],
    ),
    (
        Collection.symmetric_difference,
        [((1, "a"), (0,), 3), ((2, "b"), (0,), 1), ((1, "a"), (1,), -1), ((3, "c"), (1,), 1), ((1, "a"), (2,), -1)],
    ),
]


@on_workers
@pytest.mark.parametrize(("operator", "expected"), SETS)
def test_counts_are_compared_record_by_record(
    operator: Callable[[Collection, Collection], Collection], expected: list[object], workers: int
) -> None:
    assert run(operator, LEFT, RIGHT, workers=workers) == expected


@on_workers
def test_a_set_operation_of_a_collection_with_itself_is_the_collection_or_empty(workers: int) -> None:
    for operator in (Collection.union, Collection.intersect):
        assert run(lambda one, operator=operator: operator(one, one), LEFT, workers=workers) == LEFT
    for operator in (Collection.except_, Collection.symmetric_difference):
        assert run(lambda one, operator=operator: operator(one, one), LEFT, workers=workers) == []
