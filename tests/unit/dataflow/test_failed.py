"""A dataflow that an error or an interrupt has ended gives no answers that lack what was lost."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from differential import new_input
from timely import Config, Pipeline, Worker, execute, execute_directly, new_input as new_stream
from timely.errors import DataflowFailed, OperatorError

LOST = r"dataflow 0 \('q'\) has lost what it was computing when "


def refuse(numbers: Any) -> Any:
    """Return numbers, unless one of them is 3."""
    if (numbers == 3).any():
        raise ValueError("three")
    return numbers


def in_line(rows: Any) -> Any:
    return rows.map(refuse).count()


def in_a_reduction(rows: Any) -> Any:
    return rows.map(lambda x: (x, x)).reduce(lambda group: (refuse(group.values[0]),))


def beyond_an_arrangement(rows: Any) -> Any:
    return rows.arrange_by_key().as_collection().map(refuse).count()


@pytest.mark.parametrize("definition", [in_line, in_a_reduction, beyond_an_arrangement])
def test_a_program_that_catches_the_error_gets_no_answer(definition: Callable[[Any], Any]) -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow("q") as scope:
            numbers, rows = new_input(scope)
            answer = definition(rows).output()
        numbers.insert(np.array([1, 2, 3]))
        with pytest.raises(OperatorError, match="three"):  # noqa: PT012  which of them raises it is no matter
            numbers.advance_to(1)
            worker.step_while(lambda: answer.less_than(1))
        with pytest.raises(
            DataflowFailed, match=LOST + r"operator '\w+' failed at time \(0,\) on worker 0 of 1 .*three"
        ):
            worker.step_while(lambda: answer.less_than(1))
        numbers.insert(4)
        with pytest.raises(DataflowFailed, match=LOST):
            numbers.advance_to(2)
        assert answer.contents() == {}

    execute_directly(program)


def test_an_interrupt_inside_of_a_step_is_no_less_than_an_error() -> None:
    def interrupt(numbers: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return numbers

    def program(worker: Worker) -> None:
        with worker.dataflow("q") as scope:
            numbers, rows = new_input(scope)
            answer = rows.arrange_by_key().as_collection().map(interrupt).count().output()
        numbers.insert(np.array([1, 2, 3]))
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012
            numbers.advance_to(1)
            worker.step_while(lambda: answer.less_than(1))
        with pytest.raises(
            DataflowFailed, match=LOST + "it was interrupted, so its answers would lack a part: drop it"
        ):
            worker.step_while(lambda: answer.less_than(1))

    execute_directly(program)


def test_other_dataflows_of_a_single_worker_go_on() -> None:
    def take(input: Any, output: Any) -> None:
        for _, batch in input:
            refuse(np.array(list(batch.rows())))

    def program(worker: Worker) -> dict[Any, int]:
        with worker.dataflow("q") as scope:
            bad, rows = new_stream(scope)
            bad_probe = rows.unary(Pipeline(), take, name="take").probe()
        with worker.dataflow("other") as scope:
            good, more = new_input(scope)
            answer = more.count().output()
        bad.send(3)
        bad.advance_to(1)
        with pytest.raises(OperatorError):
            worker.step_while(lambda: bad_probe.less_than(1))
        for epoch in 1, 2:
            good.insert(7)
            good.advance_to(epoch)
            worker.step_while(lambda: answer.less_than(good.epoch))
        worker.drop_dataflow(worker.dataflows[0])
        assert bad.is_closed
        with worker.dataflow("again") as scope:
            again, rows = new_input(scope)
            second = rows.count().output()
        again.insert(5)
        again.close()
        worker.step_while(lambda: not second.done())
        assert second.contents() == {(5, 1): 1}
        return answer.contents()

    assert execute_directly(program) == {(7, 2): 1}


def test_what_waits_in_a_dataflow_that_failed_keeps_no_other_waiting() -> None:
    def fail(input: Any, output: Any) -> None:
        for _ in input:
            raise ValueError("three")

    def program(worker: Worker) -> list[int]:
        with worker.dataflow("q") as scope:
            bad, rows = new_stream(scope)
            rows.unary(Pipeline(), fail)
        for _ in range(2):
            bad.send(np.arange(100_000))
        with pytest.raises(OperatorError):
            worker.step()
        found: list[int] = []
        with worker.dataflow("other") as scope:
            scope.to_stream([7]).inspect(found.append)
        for _ in range(5):
            worker.step()
        assert not worker.is_congested
        return found

    assert execute(program, Config(queue_bytes=1 << 16)) == [[7]]


def test_a_worker_that_goes_on_after_an_error_ends_the_run() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow("q") as scope:
            numbers, rows = new_input(scope)
            answer = beyond_an_arrangement(rows).output()
        for epoch in range(5):
            if worker.index == 0:
                numbers.insert(np.arange(2 * epoch, 2 * epoch + 2))
            try:
                numbers.advance_to(epoch + 1)
                worker.step_while(lambda: answer.less_than(numbers.epoch))
            except OperatorError:
                pass
        numbers.close()
        worker.step_while(lambda: not answer.done())

    with pytest.raises(DataflowFailed, match=LOST):
        execute(program, Config(workers=2))
