"""Tests of `reduce_each`."""

from __future__ import annotations

from typing import Any

from differential import Collection
from tests.oracle.grid import on_workers, run

UPDATES = [((1, "c"), (0,), 2), ((1, "a"), (0,), 1), ((2, "b"), (1,), 1), ((1, "a"), (2,), -1), ((1, "c"), (3,), -2)]


@on_workers
def test_a_function_receives_a_key_and_its_values_in_order(workers: int) -> None:
    given: list[Any] = []

    def look(key: int, values: list[tuple[str, int]]) -> list[str]:
        given.append((key, values))
        return ["".join(value * count for value, count in values)]

    assert run(lambda one: one.reduce_each(look), UPDATES, workers=workers) == [
        ((1, "acc"), (0,), 1),
        ((2, "b"), (1,), 1),
        ((1, "acc"), (2,), -1),
        ((1, "cc"), (2,), 1),
        ((1, "cc"), (3,), -1),
    ]
    assert (1, [("a", 1), ("c", 2)]) in given
    assert all(values for _, values in given)


@on_workers
def test_keys_and_values_of_several_columns_are_tuples(workers: int) -> None:
    def program(one: Collection) -> Collection:
        pairs = one.map(lambda key, value: (key, value, key + 10, value), keys=2)
        return pairs.reduce_each(lambda key, values: [(*key, *value) for value, _ in values])

    assert run(program, UPDATES[2:3], workers=workers) == [((2, "b", 2, "b", 12, "b"), (1,), 1)]


@on_workers
def test_a_key_may_have_no_results(workers: int) -> None:
    changes = run(lambda one: one.reduce_each(lambda key, values: [] if key == 1 else [key]), UPDATES, workers=workers)
    assert changes == [((2, 2), (1,), 1)]
