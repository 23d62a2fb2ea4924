"""A dataflow that is dropped from within."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.unit.dataflow.running import on_workers
from timely import (
    Activator,
    Barrier,
    Capability,
    Columns,
    Config,
    Exchange,
    InputPort,
    OutputPort,
    Pipeline,
    Worker,
    execute,
    execute_directly,
    new_input,
    source,
)
from timely.dataflow.pact import Pact
from timely.errors import CapabilityError, OperatorError


def same(input: InputPort, output: OutputPort) -> None:
    for right, batch in input:
        output.give(right, batch)


@on_workers
@pytest.mark.parametrize("pact", [Pipeline(), Exchange(lambda x: x)])
def test_an_operator_may_drop_its_own_dataflow_which_ends_when_it_returns(pact: Pact, workers: int) -> None:
    def program(worker: Worker) -> tuple[int, int, list[str]]:
        before, after, closed = [], [], []

        def dropping(input: InputPort, output: OutputPort) -> None:
            for right, batch in input:
                before.append(len(batch))
                worker.drop_dataflow(scope.dataflow)
                output.give(right, batch)
                assert closed == []

        barrier = Barrier(worker)
        with worker.dataflow() as scope:
            numbers, stream = new_input(scope)
            stream.unary(pact, dropping).unary(pact, same).inspect_batch(lambda _, batch: after.append(len(batch)))
            scope.dataflow.when_complete(lambda: closed.append("closed"))
        for _ in range(5):
            numbers.send_batch(Columns((np.arange(100),)))
        worker.step_while(lambda: scope.dataflow in worker.dataflows)
        barrier.wait()
        return sum(before), sum(after), closed

    for taken, passed, closed in execute(program, Config(workers=workers)):
        assert taken >= 1
        assert passed == 0
        assert closed == ["closed"]


@on_workers
def test_a_function_in_line_may_drop_the_dataflow_sent_to_and_nothing_stays_owed(
    workers: int,
) -> None:
    def program(worker: Worker) -> list[int]:
        found: list[int] = []

        def drop(numbers: np.ndarray) -> np.ndarray:
            worker.drop_dataflow(scope.dataflow)
            return numbers

        with worker.dataflow() as scope:
            numbers, stream = new_input(scope)
            stream.map(drop).unary(Exchange(), same).inspect(found.append)
        numbers.send(np.arange(100_000))
        worker.step()  # in a plain dataflow, the function runs in this
        assert numbers.is_closed
        assert not worker.outstanding.over
        with worker.dataflow() as another:  # a source, which waits while the worker is congested
            another.to_stream([7]).inspect(found.append)
        worker.complete()
        return found

    assert execute(program, Config(workers=workers, queue_bytes=1 << 16)) == [[7]] * workers


def test_a_capability_that_the_program_kept_permits_nothing_when_the_dataflow_was_dropped() -> None:
    def program(worker: Worker) -> None:
        outputs: list[OutputPort] = []

        def constructor(capability: Capability, _: Activator) -> Callable[[OutputPort], None]:
            kept.append(capability)
            return outputs.append

        kept: list[Capability] = []
        with worker.dataflow() as scope:
            source(scope, constructor).unary(Pipeline(), same)
        worker.step()
        worker.drop_dataflow(scope.dataflow)
        with pytest.raises(CapabilityError, match=r"output 0 of operator 'source' .* takes no more data"):
            outputs[0].give(kept[0], Columns((np.arange(100_000),)))
        assert not worker.is_congested

    execute(program, Config(queue_bytes=1 << 16))


def test_a_dataflow_whose_operator_drops_it_and_fails_is_closed() -> None:
    closed: list[str] = []

    def program(worker: Worker) -> None:
        def failing(input: InputPort, output: OutputPort) -> None:
            worker.drop_dataflow(scope.dataflow)
            raise ZeroDivisionError

        with worker.dataflow() as scope:
            scope.to_stream([1]).unary(Pipeline(), failing)
            scope.dataflow.when_complete(lambda: closed.append("closed"))
        worker.step_while(lambda: True)

    with pytest.raises(OperatorError, match="ZeroDivisionError"):
        execute_directly(program)
    assert closed == ["closed"]
