"""Tests of `flat_map`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.oracle.grid import on_workers, run


def up_to(key: Any, value: Any) -> tuple[Any, ...]:
    """Make (key, 0), (key, 1) ... (key, value - 1) from (key, value): nothing from some records."""
    rows = np.repeat(np.arange(len(key)), value)
    first = np.cumsum(value) - value
    return rows, key[rows], np.arange(len(rows)) - first[rows]


@on_workers
def test_results_have_the_time_and_the_count_of_the_record_they_come_from(workers: int) -> None:
    updates = [((7, 2), (0,), 3), ((7, 0), (0,), 1), ((7, 3), (1,), 1), ((7, 2), (2,), -1)]
    assert run(lambda one: one.flat_map(up_to), updates, workers=workers) == [
        ((7, 0), (0,), 3),
        ((7, 1), (0,), 3),
        ((7, 0), (1,), 1),
        ((7, 1), (1,), 1),
        ((7, 2), (1,), 1),
        ((7, 0), (2,), -1),
        ((7, 1), (2,), -1),
    ]


@on_workers
def test_a_function_without_results_gives_an_empty_collection(workers: int) -> None:
    assert run(lambda one: one.flat_map(up_to).count(), [((1, 0), (0,), 1)], workers=workers) == []
