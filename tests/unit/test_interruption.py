"""An interrupt inside compiled code is distinguished from an error of that code; and no interrupt is lost."""

from __future__ import annotations

import signal
import sys
import time as clock
import weakref
from collections.abc import Callable
from typing import NoReturn

import numpy as np
import pytest

from timely import Exchange, InputPort, OutputPort, Pipeline, Stream, Worker, execute_directly
from timely.communication.message import Failure, Message
from timely.communication.thread import thread_allocators
from timely.config import Config
from timely.errors import OperatorError
from timely.interruption import interruption
from timely.run.execute import run

SECONDS = 20.0


class Item:
    """An object to which a weak reference can refer."""


def returned_with(stop: BaseException) -> NoReturn:
    """Raise what Python raises for a compiled function that returns while `stop` is pending, inside another one."""
    try:
        try:
            raise stop
        except BaseException as pending:
            raise SystemError("kernel returned a result with an exception set") from pending
    except SystemError as error:
        raise SystemError("partial returned a result with an exception set") from error


def in_an_operator(stream: Stream, stop: BaseException) -> Stream:
    def logic(input: InputPort, output: OutputPort) -> None:
        for _ in input:
            returned_with(stop)

    return stream.unary(Pipeline(), logic)


def in_line(stream: Stream, stop: BaseException) -> Stream:
    return stream.map(lambda x: returned_with(stop))


def in_one_of_several_outputs(stream: Stream, stop: BaseException) -> Stream:
    return stream.partition(2, lambda x: returned_with(stop))[0]


def at_the_end(stream: Stream, stop: BaseException) -> Stream:
    return stream.inspect(lambda x: returned_with(stop))


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), SystemExit(143)])
@pytest.mark.parametrize("place", [in_an_operator, in_line, in_one_of_several_outputs, at_the_end])
def test_an_interrupt_in_compiled_code_of_an_operator_is_raised_as_an_interrupt(
    place: Callable[[Stream, BaseException], Stream], stop: BaseException
) -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            place(scope.to_stream(range(3)), stop)

    with pytest.raises(type(stop)) as caught:
        execute_directly(program)
    assert caught.value is stop


def test_an_interrupt_while_records_are_spread_over_workers_is_raised_as_an_interrupt() -> None:
    first, second = thread_allocators(2)

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            spread = scope.to_stream(range(3)).unary(
                Exchange(lambda x: returned_with(KeyboardInterrupt())), lambda input, output: None
            )
            spread.probe()

    with pytest.raises(KeyboardInterrupt):
        run(first, program, Config(workers=2))
    sent: list[Message] = [message for _, message, _ in second._own.items]
    assert sent[-1] == Failure(0, "interrupted")


def test_an_interrupt_in_compiled_code_that_the_program_calls_is_raised_as_an_interrupt() -> None:
    first, second = thread_allocators(2)
    with pytest.raises(KeyboardInterrupt):
        run(first, lambda worker: returned_with(KeyboardInterrupt()), Config(workers=2))
    assert [message for _, message, _ in second._own.items] == [Failure(0, "interrupted")]


def test_an_error_of_compiled_code_stays_an_error() -> None:
    assert interruption(ValueError("plain")) is None
    assert interruption(KeyboardInterrupt()) is None

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            in_line(scope.to_stream(np.arange(3)), ValueError("no interrupt"))

    with pytest.raises(OperatorError, match="SystemError: partial returned"):
        execute_directly(program)


def test_an_interrupt_in_the_callback_of_a_weak_reference_still_ends_the_run() -> None:
    hook = sys.unraisablehook
    lived: list[weakref.ref[Item]] = []

    def program(worker: Worker) -> None:
        item = Item()
        reference = weakref.ref(item, lambda _: signal.raise_signal(signal.SIGINT))
        del item
        lived.append(reference)
        end = clock.monotonic() + SECONDS
        while clock.monotonic() < end:
            clock.sleep(0.01)
            worker.step()

    with pytest.raises(KeyboardInterrupt):
        execute_directly(program)
    assert len(lived) == 1
    assert sys.unraisablehook is hook


def test_other_exceptions_that_are_ignored_in_a_run_are_reported(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "unraisablehook", sys.__unraisablehook__)

    class Broken:
        def __del__(self) -> None:
            raise ValueError("broken")

    execute_directly(lambda worker: Broken() and None)
    assert "ValueError: broken" in capsys.readouterr().err
