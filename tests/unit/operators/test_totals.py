"""Tests of `totals`."""

from __future__ import annotations

import numpy as np
import pytest

from differential import Collection, example
from differential.trace.batch import Batch
from differential.trace.spine import Spine
from tests.oracle.grid import on_workers, run
from timely import Scope


@on_workers
def test_sums_that_are_all_0_emit_nothing_and_reappear(workers: int) -> None:
    updates = [((1, 3), (0,), 1), ((1, -3), (1,), 1), ((1, -3), (2,), -1)]
    program = lambda one: one.totals(lambda k, v: v, lambda k, v: 2 * v)  # noqa: E731
    assert run(program, updates, workers=workers) == [
        ((1, 3, 6), (0,), 1),
        ((1, 3, 6), (1,), -1),
        ((1, 3, 6), (2,), 1),
    ]


@pytest.mark.interpreted
def test_one_row_is_kept_for_each_key_and_sum_however_many_values_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[int] = []
    insert = Spine.insert

    def counted(spine: Spine, batch: Batch) -> Batch:
        kept.append(len(batch))
        return insert(spine, batch)

    monkeypatch.setattr(Spine, "insert", counted)

    def program(scope: Scope) -> Collection:
        values = np.arange(10_000)
        return Collection.of(scope, values % 3, values).totals(lambda k, v: 1, lambda k, v: v)

    assert [record[:2] for record, _ in example(program)] == [(0, 3334), (1, 3333), (2, 3333)]
    assert kept == [6, 3]
