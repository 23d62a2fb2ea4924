"""Capabilities that are neither held nor dropped: they are found, named and dropped."""

from __future__ import annotations

import gc
import inspect
import sys
import warnings
from collections.abc import Callable
from threading import Thread
from typing import Any

import numpy as np
import pytest

from timely import (
    Capability,
    Config,
    InputPort,
    OutputPort,
    Pipeline,
    Probe,
    Worker,
    execute,
    execute_directly,
    new_input,
    new_unordered_input,
)
from timely.dataflow.operators.input import Input
from timely.errors import CapabilityWarning

Logic = Callable[[InputPort, OutputPort], None]


def line_of(function: Callable[..., Any], text: str) -> int:
    """Return the number of the line of a function in which a text occurs."""
    lines, first = inspect.getsourcelines(function)
    return first + next(number for number, line in enumerate(lines) if text in line)


def retaining(capability: Capability) -> Logic:
    """Retain the right of each message, and forget it."""
    capability.drop()

    def logic(input: InputPort, output: OutputPort) -> None:
        for right, _ in input:
            right.retain()

    return logic


def circular(capability: Capability) -> Logic:
    """Retain the right of each message in a reference cycle, which only the garbage collector finds."""
    capability.drop()

    def logic(input: InputPort, output: OutputPort) -> None:
        for right, _ in input:
            cycle: list[Any] = [right.retain()]
            cycle.append(cycle)

    return logic


def undropped(capability: Capability) -> Logic:
    """Forget the initial capability."""

    def logic(input: InputPort, output: OutputPort) -> None:
        for _ in input:
            pass

    return logic


def build(worker: Worker, constructor: Callable[[Capability], Logic]) -> tuple[Input, Probe]:
    with worker.dataflow() as scope:
        numbers, stream = new_input(scope)
        probe = stream.exchange().unary_frontier(Pipeline(), constructor, name="forgetful").probe()
    return numbers, probe


@pytest.mark.parametrize("workers", [1, 2])
def test_a_capability_that_is_forgotten_is_dropped_with_a_warning_at_its_line(workers: int) -> None:
    def program(worker: Worker) -> None:
        numbers, probe = build(worker, retaining)
        numbers.send(np.arange(1 + 100 * (workers - 1)) if worker.index == 0 else np.arange(0))
        numbers.advance_to(3)
        worker.step_while(lambda: probe.less_than(3))

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        execute(program, Config(workers=workers))
    assert [(each.category, each.filename, each.lineno) for each in caught] == [
        (CapabilityWarning, __file__, line_of(retaining, "retain()"))
    ] * workers
    assert {str(each.message).partition(", made at ")[0] for each in caught} == {
        f"a capability for (0,) on output 0 of operator 'forgetful' (built at {__file__}:{line_of(build, 'probe = ')})"
    }
    for index in range(workers):
        assert sum(f"was forgotten on worker {index}, " in str(each.message) for each in caught) == 1


def test_a_capability_in_a_cycle_is_found_by_the_garbage_collector_in_any_thread() -> None:
    def program(worker: Worker) -> bool:
        gc.disable()
        try:
            numbers, probe = build(worker, circular)
            numbers.send(1)
            numbers.advance_to(3)
            worker.step()
            held = probe.less_than(3)
            thread = Thread(target=gc.collect)
            thread.start()
            thread.join()
        finally:
            gc.enable()
        with pytest.warns(CapabilityWarning, match=r"a capability for \(0,\) on output 0 of operator 'forgetful'"):
            worker.step()
        return held and not probe.less_than(3)

    assert execute_directly(program)


def test_a_first_capability_that_is_not_dropped_is_named_with_the_line_of_its_operator() -> None:
    def program(worker: Worker) -> None:
        numbers, probe = build(worker, undropped)
        numbers.close()
        worker.step_while(lambda: not probe.done())

    with pytest.warns(CapabilityWarning, match=rf"made at {__file__}:{line_of(build, 'probe = ')}, was forgotten"):
        execute_directly(program)


def test_capabilities_held_by_a_dropped_dataflow_are_not_reported_as_forgotten() -> None:
    def program(worker: Worker) -> list[Capability]:
        kept: list[Capability] = []

        def keeping(capability: Capability) -> Logic:
            kept.append(capability)
            return lambda input, output: None

        build(worker, keeping)
        worker.step()
        worker.drop_dataflow(0)
        kept.clear()
        gc.collect()
        worker.step()
        return kept

    assert execute_directly(program) == []


def test_capabilities_that_a_closing_unordered_input_drops_are_not_reported_as_forgotten() -> None:
    def program(worker: Worker) -> Any:
        with worker.dataflow() as scope:
            numbers, stream = new_unordered_input(scope)
            probe = stream.probe()
        later = numbers.capability.delayed((3,))
        numbers.close()
        dropped = later.output
        del later
        worker.step_while(lambda: not probe.done())
        return dropped

    assert execute_directly(program) is None


def test_a_capability_dropped_by_a_with_block_or_a_call_is_not_reported_as_forgotten() -> None:
    def dropping(capability: Capability) -> Logic:
        capability.drop()

        def logic(input: InputPort, output: OutputPort) -> None:
            for right, batch in input:
                with right.retain() as kept, kept.delayed((5,)) as later:
                    output.give(later, batch)
                right.retain().drop()

        return logic

    def program(worker: Worker) -> None:
        numbers, _ = build(worker, dropping)
        numbers.send(1)

    execute_directly(program)


@pytest.mark.interpreted
def test_one_that_ctrl_c_kept_from_being_made_is_forgotten_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    errors: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", errors.append)
    capability = Capability.__new__(Capability)
    assert not hasattr(capability, "_held")
    del capability
    assert errors == []
