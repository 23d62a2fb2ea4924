"""Tests of `inspect` and `inspect_batch`."""

from __future__ import annotations

from typing import Any

from differential.data.updates import Updates
from tests.oracle.grid import Update, contents, on_workers, run

UPDATES = [((1, 5), (0,), 2), ((2, 6), (1,), 1), ((1, 5), (2,), -1)]


@on_workers
def test_every_update_is_seen_once_and_passed_on(workers: int) -> None:
    seen: list[Update] = []

    def look(record: tuple[Any, ...], time: tuple[int, ...], diff: int) -> None:
        seen.append((record, time, diff))

    assert run(lambda one: one.inspect(look), UPDATES, workers=workers) == UPDATES
    for time in range(3):
        assert contents(seen, (time,)) == contents(UPDATES, (time,))


@on_workers
def test_every_batch_is_seen_once_and_passed_on(workers: int) -> None:
    seen: list[Updates] = []
    assert run(lambda one: one.inspect_batch(seen.append), UPDATES, workers=workers) == UPDATES
    assert sorted(row for batch in seen for row in batch.rows()) == sorted(UPDATES)
