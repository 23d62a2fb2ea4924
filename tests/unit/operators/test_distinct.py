"""Tests of `distinct` and `threshold`."""

from __future__ import annotations

import numpy as np
import pytest

from differential import Collection, example, new_input
from tests.oracle.grid import Update, on_workers, run
from timely import Config, Worker, execute
from timely.dataflow import dataflow
from timely.errors import OperatorError

UPDATES: list[Update] = [
    ((1, 5), (0,), 2),
    ((1, 5), (1,), -1),
    ((2, 5), (1,), 1),
    ((1, 5), (2,), -1),
    ((1, 5), (3,), 3),
]


def in_a_loop(one: Collection, twice: bool) -> Collection:
    with one.scope.iterative() as inner:
        entered = one.enter(inner)
        return (entered.threshold(lambda counts: counts // 2) if twice else entered.distinct()).leave()


@on_workers
def test_a_record_occurs_once_as_long_as_it_is_present(workers: int) -> None:
    expected = [((1, 5), (0,), 1), ((2, 5), (1,), 1), ((1, 5), (2,), -1), ((1, 5), (3,), 1)]
    assert run(lambda one: one.distinct(), UPDATES, workers=workers) == expected
    assert run(lambda one: in_a_loop(one, twice=False), UPDATES, workers=workers) == expected


@on_workers
def test_a_threshold_maps_the_count_of_each_record(workers: int) -> None:
    expected = [((1, 5), (0,), 1), ((1, 5), (1,), -1), ((1, 5), (3,), 1)]
    assert run(lambda one: one.threshold(lambda counts: counts // 2), UPDATES, workers=workers) == expected
    assert run(lambda one: in_a_loop(one, twice=True), UPDATES, workers=workers) == expected


@on_workers
def test_records_without_values_are_distinguished(workers: int) -> None:
    updates = [((1,), (0,), 2), ((2,), (0,), 1), ((1,), (1,), -2)]
    expected = [((1,), (0,), 1), ((2,), (0,), 1), ((1,), (1,), -1)]
    assert run(lambda one: one.distinct(), updates, workers=workers) == expected


def test_a_function_must_return_one_integer_for_each_count() -> None:
    with pytest.raises(OperatorError, match="one integer for each count"):
        example(lambda scope: Collection.of(scope, np.array([1, 2])).threshold(lambda counts: counts / 2))


@pytest.mark.composed
@pytest.mark.interpreted
@pytest.mark.parametrize("epochs", [2, 3])
def test_waiting_epochs_are_handled_together(epochs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Each step runs one of the four operators, so epochs arrive faster than they are handled.
    monkeypatch.setattr(dataflow, "RUNS_PER_STEP", 1 / 4)

    def program(worker: Worker) -> list[Update]:
        with worker.dataflow() as scope:
            session, numbers = new_input(scope)
            distinct = numbers.distinct()
            reader = distinct.arrange_by_key().reader()
            output = distinct.output()
        for epoch in range(epochs):
            session.insert(np.array([epoch, 5]), 0)
            session.advance_to(epoch + 1)
            worker.step()
        assert not reader.batches()
        session.close()
        while worker.step():
            pass
        assert [len(batch) for batch in reader.batches()] == [epochs + 1]
        return output.changes()

    changes = [((0, 0), (0,), 1), ((5, 0), (0,), 1), ((1, 0), (1,), 1), ((2, 0), (2,), 1)]
    assert execute(program, Config(general=True))[0] == changes[: epochs + 1]


def test_a_count_beyond_64_bits_is_refused() -> None:
    with pytest.raises(OperatorError, match="too large for a 64-bit integer"):
        example(lambda scope: Collection.of(scope, 1).threshold(lambda n: np.full(len(n), 2**63, np.uint64)))
