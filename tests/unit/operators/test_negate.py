"""Tests of `negate`."""

from __future__ import annotations

from tests.oracle.grid import on_workers, run

UPDATES = [((1, 5), (0,), 2), ((2, 6), (1,), 1), ((1, 5), (2,), -1)]


@on_workers
def test_every_change_is_the_opposite(workers: int) -> None:
    changes = run(lambda one: one.negate(), UPDATES, workers=workers)
    assert changes == [(record, time, -diff) for record, time, diff in UPDATES]


@on_workers
def test_twice_is_not_at_all_and_the_difference_to_oneself_is_nothing(workers: int) -> None:
    assert run(lambda one: one.negate().negate(), UPDATES, workers=workers) == UPDATES
    assert run(lambda one: one.concat(one.negate()).distinct(), UPDATES, workers=workers) == []
