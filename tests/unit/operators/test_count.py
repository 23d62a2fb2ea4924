"""Tests of `count`."""

from __future__ import annotations

import numpy as np
import pytest

from differential import new_input
from tests.invariants import check
from tests.oracle.grid import Update, on_workers, run
from timely import Worker, execute_directly


@on_workers
def test_a_key_without_records_is_not_counted(workers: int) -> None:
    updates = [((7, 1), (0,), 1), ((7, 2), (0,), 1), ((7, 1), (1,), -1), ((7, 2), (2,), -1)]
    assert run(lambda one: one.count(), updates, workers=workers) == [
        ((7, 2), (0,), 1),
        ((7, 1), (1,), 1),
        ((7, 2), (1,), -1),
        ((7, 1), (2,), -1),
    ]


@on_workers
def test_counts_of_a_difference_may_be_negative(workers: int) -> None:
    changes = run(lambda one: one.negate().count(signed=True), [((7, 1), (0,), 1)], workers=workers)
    assert changes == [((7, -1), (0,), 1)]


@pytest.mark.parametrize("epochs", [2, 3])
def test_epochs_that_are_sealed_together_are_counted_one_by_one(epochs: int) -> None:
    def program(worker: Worker) -> list[Update]:
        with worker.dataflow() as scope:
            session, numbers = new_input(scope)
            counts = numbers.count()
            spine = counts.arrange_by_key()._trace.spine
            output = counts.output()
        session.insert(7, np.arange(4))
        for epoch in range(1, epochs):
            session.advance_to(epoch)
            session.remove(7, epoch)
        session.advance_to(epochs)
        worker.step_while(lambda: spine.upper.less_equal((epochs - 1,)))
        assert [len(batch.times) for batch in spine.batches()] == [epochs]
        check(spine)
        session.close()
        while worker.step():
            pass
        return output.changes()

    changes = [
        ((7, 4), (0,), 1),
        ((7, 3), (1,), 1),
        ((7, 4), (1,), -1),
        ((7, 2), (2,), 1),
        ((7, 3), (2,), -1),
    ]
    assert execute_directly(program) == changes[: 2 * epochs - 1]


def test_records_that_no_other_operator_needs_by_key_are_not_kept() -> None:
    def program(worker: Worker) -> list[int]:
        with worker.dataflow() as scope:
            session, numbers = new_input(scope)
            counts = numbers.count()
            probe = counts.probe()
            reader = numbers.arrange_by_key().reader()
            spine = reader.spine
            reader.drop()
        kept = []
        for epoch in range(5):
            session.insert(np.arange(100), np.full(100, epoch))
            session.advance_to(epoch + 1)
            worker.step_while(lambda: probe.less_than(session.epoch))
            kept.append(sum(map(len, spine.batches())))
        return kept

    assert execute_directly(program) == [0] * 5
