"""Tests of `negate`."""

from __future__ import annotations

from tests.oracle.grid import on_workers, run

UPDATES = [((1, 5), (0,), 2), ((2, 6), (1,), 1), ((1, 5), (2,), -1)]


@on_workers
def test_every_diff_changes_its_sign(workers: int) -> None:
    changes = run(lambda one: one.negate(), UPDATES, workers=workers)
    assert changes == [(record, time, -diff) for record, time, diff in UPDATES]


@on_workers
def test_a_double_negation_is_the_collection_and_its_sum_with_the_negation_is_empty(workers: int) -> None:
    assert run(lambda one: one.negate().negate(), UPDATES, workers=workers) == UPDATES
    assert run(lambda one: one.concat(one.negate()).distinct(), UPDATES, workers=workers) == []
