"""Tests of `distinct` and `threshold`."""

from __future__ import annotations

import numpy as np
import pytest

from differential import Collection, example, new_input
from differential.data.codes import Codes
from tests.oracle.grid import Update, on_workers, run
from timely import Config, Scope, Worker, execute, execute_directly
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


def test_a_function_receives_only_the_counts_of_records_that_change() -> None:
    counts: list[int] = []

    def seen(column: Codes) -> Codes:
        counts.extend(column.tolist())
        return column

    def program(worker: Worker) -> list[Update]:
        with worker.dataflow() as scope:
            session, numbers = new_input(scope)
            with scope.iterative() as inner:
                output = numbers.enter(inner).threshold(seen).leave().output()
        session.insert(np.zeros(100, np.int64), np.arange(100))
        session.advance_to(1)
        worker.step_while(lambda: output.less_than(1))
        counts.clear()
        session.update(0, 50, diff=2)
        session.close()
        worker.step_while(lambda: not output.done())
        return output.changes()

    assert execute_directly(program)[-1] == ((0, 50), (1,), 2)
    assert sorted(counts) == [1, 3]


def test_a_threshold_in_a_loop_keeps_the_number_of_key_columns() -> None:
    def program(scope: Scope) -> Collection:
        numbers = Collection.of(scope, np.array([1, 1, 2]), np.array([5, 5, 6]), np.array([7, 7, 8]), keys=2)
        with scope.iterative() as inner:
            entered = numbers.enter(inner)
            several = entered.threshold(lambda counts: counts // 2)
            indexed = entered.arrange_by_key().as_collection().threshold(lambda counts: counts // 2)
            return several.concat(indexed).count().leave()

    assert example(program) == [((1, 5, 2), 1)]


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
