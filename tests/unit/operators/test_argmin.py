"""Tests of `argmin` and `argmax`."""

from __future__ import annotations

from tests.oracle.grid import on_workers, run

ROADS = [((1, "b", 9), (0,), 1), ((1, "a", 9), (1,), 1), ((2, "c", 4), (1,), 2), ((1, "a", 9), (2,), -1)]


@on_workers
def test_the_record_that_minimizes_a_function_is_found_and_the_least_of_several(workers: int) -> None:
    assert run(lambda one: one.argmin(lambda town, other, miles: miles), ROADS, workers=workers) == [
        ((1, "b", 9), (0,), 1),
        ((1, "a", 9), (1,), 1),
        ((1, "b", 9), (1,), -1),
        ((2, "c", 4), (1,), 1),
        ((1, "a", 9), (2,), -1),
        ((1, "b", 9), (2,), 1),
    ]


@on_workers
def test_the_record_that_maximizes_a_function_is_found_and_the_greatest_of_several(workers: int) -> None:
    assert run(lambda one: one.argmax(lambda town, other, miles: -miles), ROADS, workers=workers) == [
        ((1, "b", 9), (0,), 1),
        ((2, "c", 4), (1,), 1),
    ]
