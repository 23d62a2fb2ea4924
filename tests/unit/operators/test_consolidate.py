"""Tests of `consolidate`."""

from __future__ import annotations

from differential import Collection
from differential.data.updates import Updates
from tests.oracle.grid import on_workers, run


@on_workers
def test_at_most_one_update_is_left_of_each_record_and_time(workers: int) -> None:
    seen: list[Updates] = []

    def program(one: Collection) -> Collection:
        halves = one.map(lambda key, value: (key, value // 2))
        thirds = one.map(lambda key, value: (key, value // 3))
        return halves.concat(thirds.negate()).consolidate().inspect_batch(seen.append)

    changes = run(program, [((1, value), (value % 2,), 1) for value in range(6)], workers=workers)
    assert changes == [((1, 0), (0,), -1), ((1, 2), (0,), 1), ((1, 1), (1,), -1), ((1, 2), (1,), 1)]
    assert sorted(row for batch in seen for row in batch.rows()) == sorted(changes)


@on_workers
def test_updates_that_cancel_are_not_sent(workers: int) -> None:
    seen: list[Updates] = []

    def program(one: Collection) -> Collection:
        return one.concat(one.negate()).consolidate().inspect_batch(seen.append)

    assert run(program, [((1, 2), (0,), 1)], workers=workers) == []
    assert seen == []
