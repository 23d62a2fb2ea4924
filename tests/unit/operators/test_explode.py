"""Tests of `explode`."""

from __future__ import annotations

from tests.oracle.grid import on_workers, run


@on_workers
def test_a_quantity_becomes_a_count(workers: int) -> None:
    updates = [((1, 5), (0,), 2), ((2, -3), (0,), 1), ((3, 0), (0,), 1), ((1, 4), (1,), 1), ((1, 5), (2,), -2)]
    changes = run(lambda one: one.explode(lambda key, amount: (key, amount)), updates, workers=workers)
    assert changes == [((1,), (0,), 10), ((2,), (0,), -3), ((1,), (1,), 4), ((1,), (2,), -10)]


@on_workers
def test_amounts_that_add_up_to_nothing_leave_nothing(workers: int) -> None:
    updates = [((1, 5), (0,), 1), ((1, -5), (0,), 1)]
    assert run(lambda one: one.explode(lambda key, amount: (key, amount)).count(), updates, workers=workers) == []


@on_workers
def test_one_number_for_all_rows_multiplies_every_count(workers: int) -> None:
    updates = [((1, 5), (0,), 1), ((2, 6), (1,), 2)]
    changes = run(lambda one: one.explode(lambda key, value: ((key, value), 3)), updates, workers=workers)
    assert changes == [((1, 5), (0,), 3), ((2, 6), (1,), 6)]
