"""Tests of `map`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from differential import Collection, example
from tests.oracle.grid import on_workers, run
from timely import Scope
from timely.errors import BuildError


@on_workers
def test_records_that_become_equal_are_counted_together(workers: int) -> None:
    updates = [((1, 5), (0,), 1), ((3, 5), (0,), 1), ((2, 5), (1,), 1), ((3, 5), (2,), -1)]
    changes = run(lambda one: one.map(lambda key, value: (key % 2, value)), updates, workers=workers)
    assert changes == [((1, 5), (0,), 2), ((0, 5), (1,), 1), ((1, 5), (2,), -1)]


@on_workers
def test_a_record_gets_another_key_and_other_columns(workers: int) -> None:
    def program(one: Collection) -> Collection:
        parts = one.map(lambda key, value: (value, np.char.mod("%d", key), 0.5), keys=2)
        assert parts.keys == 2
        return parts.count()

    updates = [((1, 5), (0,), 1), ((11, 5), (0,), 1), ((1, 5), (1,), 1)]
    assert run(program, updates, workers=workers) == [
        ((5, "1", 1), (0,), 1),
        ((5, "11", 1), (0,), 1),
        ((5, "1", 1), (1,), -1),
        ((5, "1", 2), (1,), 1),
    ]


@pytest.mark.parametrize("keys", [1.0, "a", True, 0])
@pytest.mark.parametrize("operator", ["map", "explode", "flat_map", "attempt", "join_map"])
def test_a_number_of_key_columns_is_a_whole_number(operator: str, keys: Any) -> None:
    def program(scope: Scope) -> Collection:
        numbers = Collection.of(scope, [1, 2])
        others = [numbers] if operator == "join_map" else []
        made = getattr(numbers, operator)(*others, lambda x: x, keys=keys)
        return made.results if operator == "attempt" else made  # type: ignore[no-any-return]

    with pytest.raises(BuildError, match=f"a key is of at least one column, so `keys` cannot be {keys!r}"):
        example(program)


def test_a_function_is_called_once_with_whole_columns() -> None:
    sizes: list[int] = []

    def noted(key: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
        sizes.append(len(key))
        return key

    assert len(example(lambda scope: Collection.of(scope, np.arange(100)).map(noted))) == 100
    assert sizes == [100]
