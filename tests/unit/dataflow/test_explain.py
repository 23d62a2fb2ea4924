"""Who holds a frontier back: `explain` names operator, port, time, and the capability's line or the queued messages."""

from __future__ import annotations

import re
import sys
import time as clock
from collections.abc import Callable
from threading import Event
from typing import Any

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
)
from timely.errors import StalledError


def test_an_input_left_open_is_named_with_its_time_and_the_users_line() -> None:
    def program(worker: Worker) -> str:
        with worker.dataflow() as scope:
            numbers, stream = new_input(scope, name="numbers")
            probe = stream.probe()
        numbers.advance_to(3)
        worker.step()
        assert probe.explain(2) == "nothing holds this frontier back"
        return probe.explain(3)

    line = program.__code__.co_firstlineno + 2
    assert execute_directly(program) == (
        "held back at (3,) by:\n"
        f"  a capability for (3,) on output 0 of operator 'numbers' (built at {__file__}:{line}), "
        f"made at {__file__}:{line}, waits for numbers.advance_to(4) or numbers.close(), worker 0"
    )


def leaky(capability: Capability) -> Callable[[InputPort, OutputPort], None]:
    """Retain a capability and never drop it."""
    capability.drop()
    kept = []

    def logic(input: InputPort, output: OutputPort) -> None:
        for right, _ in input:
            kept.append(right.retain())

    return logic


RETAINED = leaky.__code__.co_firstlineno + 7


def test_a_leaked_capability_is_named_with_the_line_that_made_it() -> None:
    def program(worker: Worker) -> tuple[str, str]:
        with worker.dataflow() as scope:
            probe = scope.to_stream(range(1)).unary_frontier(Pipeline(), leaky, name="leaky").probe()
        for _ in range(3):
            worker.step()
        texts = probe.explain(), worker.explain()
        worker.drop_dataflow(0)
        return texts

    for text in execute_directly(program):
        assert "a capability for (0,) on output 0 of operator 'leaky'" in text
        assert f"made at {__file__}:{RETAINED}, worker 0" in text
        assert text.count("a capability") == 1


def test_a_wait_that_cannot_end_names_the_holder_and_its_line() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            probe = scope.to_stream(range(1)).unary_frontier(Pipeline(), leaky, name="leaky").probe()
        worker.step_while(lambda: not probe.done())

    with pytest.raises(StalledError) as caught:
        execute_directly(program)
    assert "nothing is left to do" in str(caught.value)
    assert f"made at {__file__}:{RETAINED}" in str(caught.value)


def test_queued_messages_are_counted() -> None:
    def program(worker: Worker) -> str:
        with worker.dataflow() as scope:
            numbers, stream = new_input(scope)
            probe = stream.unary_frontier(Pipeline(), leaky, name="late").probe()
        worker.step()
        for _ in range(2):
            numbers.send(1)
            numbers.flush()
        numbers.close()
        worker.dataflows[0]._flush()
        text = probe.explain()
        worker.drop_dataflow(0)
        return text

    assert "2 queued messages (2 records) at (0,) on input 0 of operator 'late'" in execute_directly(program)


def between_two(ask: Callable[[Probe, Worker], str], answers: bool = True) -> str:
    """Return the result of `ask` on worker 0 while only worker 1 has an open input, and steps if it `answers`."""
    texts: list[str] = []
    settled = Event()

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = new_input(scope, name="numbers")
            probe = stream.exchange().probe()
        if worker.index == 0:
            numbers.close()
            while not settled.is_set():
                worker.step_or_park(0.01)
            try:
                texts.append(ask(probe, worker))
            finally:
                texts.append("")
        else:
            for _ in range(20):
                worker.step_or_park(0.01)
            settled.set()
            while not texts:
                if answers:
                    worker.step_or_park(0.01)
                else:
                    clock.sleep(0.01)
            numbers.close()

    execute(program, Config(workers=2))
    return texts[0]


COUNTED = "a capability or message at (0,) on other workers, output 0 of operator 'numbers'"


@pytest.mark.parametrize(
    "ask", [lambda probe, _: probe.explain(0, patience=20), lambda _, worker: worker.explain(patience=20)]
)
def test_other_workers_report_what_they_hold(ask: Callable[[Probe, Worker], str]) -> None:
    text = between_two(ask)
    assert f"a capability for (0,) on output 0 of operator 'numbers' (built at {__file__}:" in text
    assert text.endswith("worker 1")
    assert text.count("\n") == 1


def test_a_worker_that_is_not_asked_is_counted() -> None:
    assert COUNTED in between_two(lambda probe, _: probe.explain(0, patience=0))
    assert COUNTED in between_two(lambda _, worker: worker.explain(patience=0))


def test_a_worker_that_does_not_answer_is_counted_and_named() -> None:
    text = between_two(lambda probe, _: probe.explain(patience=0.1), answers=False)
    assert text.startswith("held back by:")
    assert COUNTED in text
    assert "worker 1 did not answer within 0.1 s: it is inside a long operator, or its program does something" in text


def test_two_workers_that_ask_each_other_both_receive_an_answer() -> None:
    texts: list[str] = []

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = new_input(scope, name="numbers")
            probe = stream.exchange().probe()
        texts.append(probe.explain(0, patience=20))
        while len(texts) < 2:
            worker.step_or_park(0.01)
        numbers.close()

    execute(program, Config(workers=2))
    for text in texts:
        assert text.count(", worker 0") == text.count(", worker 1") == 1


def test_a_worker_that_has_not_built_the_dataflow_reports_it() -> None:
    texts: list[str] = []

    def program(worker: Worker) -> None:
        if worker.index == 1:
            while not texts:
                worker.step()
                worker.allocator.park(0.01)
        with worker.dataflow() as scope:
            probe = scope.to_stream(range(1)).exchange().probe()
        if worker.index == 0:
            texts.append(probe.explain(patience=20))

    execute(program, Config(workers=2))
    assert "worker 1 has not built dataflow 0 yet" in texts[0]


def test_a_worker_that_has_dropped_the_dataflow_reports_it() -> None:
    texts: list[str] = []

    def program(worker: Worker) -> None:
        with worker.dataflow("numbers") as scope:
            probe = new_input(scope)[1].exchange().probe()
        if worker.index == 1:
            worker.drop_dataflow(0)
            while not texts:
                worker.step()
                worker.allocator.park(0.01)
        else:
            worker.step()
            texts.append(probe.explain(0, patience=20))
            worker.drop_dataflow(0)
            assert probe.explain(0) == "dataflow 0 ('numbers') was dropped: this frontier no longer moves"

    execute(program, Config(workers=2))
    assert "worker 1 has dropped dataflow 0" in texts[0]


def test_equal_capabilities_are_counted_and_long_lists_are_truncated() -> None:
    def program(worker: Worker) -> str:
        with worker.dataflow() as scope:
            numbers, stream = new_input(scope, name="numbers")
            probe = stream.unary_frontier(Pipeline(), leaky, name="leaky").probe()
        for epoch in range(30):
            for _ in range(2):
                numbers.send(epoch)
                numbers.flush()
            numbers.advance_to(epoch + 1)
        worker.step()
        numbers.close()
        text = probe.explain()
        worker.drop_dataflow(0)
        return text

    lines = execute_directly(program).splitlines()
    assert lines[1].startswith("  2 capabilities for (0,) on output 0 of operator 'leaky'")
    assert len(lines) == 22
    assert lines[-1] == "  and 10 more"


def test_a_complete_worker_reports_that_it_is_complete() -> None:
    def program(worker: Worker) -> str:
        with worker.dataflow() as scope:
            scope.to_stream(range(1)).probe()
        while worker.step_or_park():
            pass
        return worker.explain()

    assert execute_directly(program) == "all dataflows are complete"


def test_an_explanation_survives_a_loop() -> None:
    def program(worker: Worker) -> str:
        with worker.dataflow() as scope, scope.iterative("loop") as inner:
            _, stream = new_input(scope, name="numbers")
            handle, again = inner.feedback()
            rest: Any = stream.enter(inner).concat(again)
            rest.filter(lambda x: x < 0).connect_loop(handle)
            probe = rest.leave().probe()
        worker.step()
        return probe.explain(sys.maxsize)

    assert "a capability for (0,) on output 0 of operator 'numbers'" in execute_directly(program)


def test_what_is_not_counted_yet_on_a_single_worker_is_named() -> None:
    texts: list[str] = []

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = new_input(scope)
            probe = stream.exchange().inspect(lambda number: texts.append(probe.explain(0))).probe()
        numbers.send(1)
        numbers.advance_to(1)
        worker.step_while(lambda: probe.less_than(1))
        numbers.advance_to(2)
        texts.append(probe.explain(1))
        worker.step()
        texts.append(probe.explain(1))

    execute_directly(program)
    inside, before, after = texts
    assert re.search(r"what operator '.*' \(built at .*\) has taken and does now, which counts when it has", inside)
    assert "changes that are not counted yet; step the worker" in before
    assert after == "nothing holds this frontier back"
