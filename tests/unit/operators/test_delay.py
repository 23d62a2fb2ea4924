"""Tests of `delay`."""

from __future__ import annotations

from tests.oracle.grid import on_workers, run


@on_workers
def test_changes_are_gathered_at_the_end_of_their_interval(workers: int) -> None:
    updates = [((1, 5), (0,), 1), ((1, 5), (9,), 1), ((1, 5), (11,), -1), ((2, 5), (13,), 1), ((2, 5), (19,), -1)]
    changes = run(lambda one: one.delay(lambda time: 10 * (time[0] // 10 + 1)), updates, workers=workers)
    assert changes == [((1, 5), (10,), 2), ((1, 5), (20,), -1)]


@on_workers
def test_each_coordinate_may_be_delayed_separately(workers: int) -> None:
    updates = [((1, 5), (0, 2), 1), ((1, 5), (1, 0), -1)]
    changes = run(lambda one: one.delay(lambda time: (time[0], time[1] + 5)), updates, workers=workers, outer=2)
    assert changes == [((1, 5), (0, 7), 1), ((1, 5), (1, 5), -1)]


@on_workers
def test_a_reduction_of_delayed_changes_is_final_with_the_same_delay(workers: int) -> None:
    updates = [((1, 5), (0,), 1), ((1, 6), (1,), 1), ((1, 5), (3,), -1)]
    changes = run(lambda one: one.delay(lambda time: time[0] + 4).min(), updates, workers=workers)
    assert changes == [((1, 5), (4,), 1), ((1, 5), (7,), -1), ((1, 6), (7,), 1)]
