"""Tests of `source`, `sink`, `unary`, `binary` and their forms with frontiers."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.unit.dataflow.running import collect, collected, on_workers
from timely import (
    Capability,
    Exchange,
    InputPort,
    Notificator,
    OutputPort,
    Pipeline,
    Scope,
    Stream,
    Time,
    Worker,
    execute_directly,
    new_input,
    source,
)
from timely.errors import BuildError, OperatorError, TimelyError


def counted(capability: Capability) -> Callable[[InputPort, OutputPort], None]:
    """Send the number of records of each time when the time is complete."""
    capability.drop()
    held: dict[Time, list] = {}

    def logic(input: InputPort, output: OutputPort) -> None:
        for right, batch in input:
            if right.time not in held:
                held[right.time] = [right.retain(), 0]
            held[right.time][1] += len(batch)
        for time in sorted(held):
            if not input.frontier.less_equal(time):
                permitted, number = held.pop(time)
                with permitted:
                    output.give(permitted, [number])

    return logic


@on_workers
def test_a_frontier_shows_when_all_workers_are_done(workers: int) -> None:
    def program(scope: Scope) -> Stream:
        everything = Exchange(lambda x: x * 0)
        return scope.to_stream(range(100)).unary_frontier(everything, counted)

    assert collected(program, workers) == [100 * workers]


@pytest.mark.parametrize(
    "wrong",
    [np.arange(3), np.array([]), (np.arange(3), np.arange(3)), (), "abc", {1}, 3, None, deque([1]), array("q", [1])],
)
def test_the_operator_that_emits_what_is_no_batch_is_the_one_that_fails(wrong: object) -> None:
    def emits(input: InputPort, output: OutputPort) -> None:
        for capability, _ in input:
            output.give(capability, wrong)  # type: ignore[arg-type]

    def program(scope: Scope) -> Stream:
        return scope.to_stream([1]).unary(Pipeline(), emits, name="emits").unary(Pipeline(), lambda input, output: None)

    kind = type(wrong).__name__
    with pytest.raises(OperatorError, match=rf"'emits' failed at .*test_generic.py:\d+\).*a batch is .*of type {kind}"):
        collected(program, 1)


def test_logic_sees_each_iteration_complete() -> None:
    def program(scope: Scope) -> Stream:
        with scope.iterative() as inner:
            handle, again = inner.feedback()
            numbers = scope.to_stream(range(5)).enter(inner).concat(again)
            numbers.filter(lambda x: x > 0).map(lambda x: x - 1).connect_loop(handle)
            return numbers.unary_frontier(Pipeline(), counted)

    assert collect(program) == [[((0, 0), 5), ((0, 1), 4), ((0, 2), 3), ((0, 3), 2), ((0, 4), 1)]]


def test_two_inputs_keep_their_own_frontiers() -> None:
    seen = []

    def program(scope: Scope) -> Stream:
        late, stream = new_input(scope)
        scope.dataflow.when_built(lambda: late.advance_to(4))

        def build(capability: Capability) -> Callable[[InputPort, InputPort, OutputPort], None]:
            capability.drop()

            def logic(left: InputPort, right: InputPort, output: OutputPort) -> None:
                for side in (left, right):
                    for permitted, batch in side:
                        output.give(permitted, batch)
                seen.append((left.frontier.elements, right.frontier.elements))

            return logic

        return scope.to_stream(range(3)).binary_frontier(stream, Pipeline(), Pipeline(), build)

    with pytest.raises(TimelyError, match="nothing is left to do"):
        _collect_stalled(program)
    assert seen[-1] == ((), ((4,),))


def _collect_stalled(program: Callable[[Scope], Stream]) -> None:
    def run(worker: Worker) -> None:
        with worker.dataflow() as scope:
            probe = program(scope).probe()
        worker.step_while(lambda: not probe.done())

    execute_directly(run)


def test_a_binary_operator_receives_from_both_inputs() -> None:
    def program(scope: Scope) -> Stream:
        def logic(left: InputPort, right: InputPort, output: OutputPort) -> None:
            for side, factor in ((left, 1), (right, 100)):
                for permitted, batch in side:
                    output.give(permitted, [factor * record for record in batch])

        return scope.to_stream([1, 2]).binary(scope.to_stream([3]), Pipeline(), Pipeline(), logic)

    assert collected(program) == [1, 2, 300]


def test_a_source_runs_again_only_when_it_asks_to() -> None:
    runs = []

    def constructor(capability: Capability, activate: Callable[[], None]) -> Callable[[OutputPort], None]:
        def logic(output: OutputPort) -> None:
            runs.append(capability.time)
            output.give(capability, [len(runs)])
            if len(runs) < 3:
                capability.downgrade((len(runs),))
                activate()
            else:
                capability.drop()

        return logic

    assert collect(lambda scope: source(scope, constructor)) == [[((0,), 1), ((1,), 2), ((2,), 3)]]
    assert runs == [(0,), (1,), (2,)]


def test_a_sink_is_activated_by_the_end_of_its_stream() -> None:
    seen = []

    def program(scope: Scope) -> Stream:
        stream = scope.to_stream(range(3))

        def logic(input: InputPort) -> None:
            seen.extend(len(batch) for _, batch in input)
            if not input.frontier:
                seen.append("end")

        stream.sink(Pipeline(), logic)
        return stream

    collected(program)
    assert seen == [3, "end"]


def test_a_frontier_that_was_not_requested_cannot_be_read() -> None:
    def logic(input: InputPort, output: OutputPort) -> None:
        assert input.frontier

    with pytest.raises(TimelyError, match="built without interest in its frontier") as caught:
        collected(lambda scope: scope.to_stream(range(1)).unary(Pipeline(), logic))
    assert isinstance(caught.value.__cause__, BuildError)


def test_an_error_after_a_notification_names_its_time_and_not_that_of_the_last_batch() -> None:
    def logic(input: InputPort, output: OutputPort, notificator: Notificator) -> None:
        for right, _ in input:
            notificator.notify_at(right)
        for time, _ in notificator:
            if time == (2,):
                raise ValueError("two")

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = new_input(scope)
            stream.unary_notify(Pipeline(), logic).probe()
        for epoch in range(5):
            numbers.send(epoch)
            numbers.advance_to(epoch + 1)

    with pytest.raises(TimelyError, match=r"failed at time \(2,\)"):
        execute_directly(program)


@pytest.mark.parametrize(
    "build",
    [
        lambda scope, stream: source(scope, lambda capability, activate: None, name="deaf"),
        lambda scope, stream: stream.unary_frontier(Pipeline(), lambda capability: None, name="deaf"),
        lambda scope, stream: stream.binary_frontier(stream, Pipeline(), Pipeline(), lambda _: None, name="deaf"),
    ],
)
def test_a_constructor_that_returns_no_logic_is_refused(build: Callable[[Scope, Stream], object]) -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            build(scope, scope.to_stream([1]))

    with pytest.raises(BuildError, match=r"the constructor of operator 'deaf' \(built at .* returned None"):
        execute_directly(program)


def emitting(*ports: Any) -> Iterator[Any]:
    """Logic that yields what it should give to its output."""
    for _, batch in ports[0]:
        yield batch


async def waiting(*ports: Any) -> None:
    """Logic that nothing would await."""


@pytest.mark.parametrize(
    ("logic", "what"),
    [(emitting, "has a `yield`"), (waiting, "is `async`"), (partial(partial(emitting)), "has a `yield`")],
)
@pytest.mark.parametrize(
    "build",
    [
        lambda stream, logic: stream.unary(Pipeline(), logic),
        lambda stream, logic: stream.unary_frontier(Pipeline(), lambda capability: logic),
        lambda stream, logic: stream.unary_notify(Pipeline(), logic),
        lambda stream, logic: stream.binary(stream, Pipeline(), Pipeline(), logic),
        lambda stream, logic: stream.binary_frontier(stream, Pipeline(), Pipeline(), lambda capability: logic),
        lambda stream, logic: stream.binary_notify(stream, Pipeline(), Pipeline(), logic),
        lambda stream, logic: stream.sink(Pipeline(), logic),
        lambda stream, logic: source(stream.scope, lambda capability, activate: logic),
    ],
)
def test_logic_of_which_a_call_runs_nothing_is_refused(
    build: Callable[[Stream, object], object], logic: object, what: str
) -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            build(scope.to_stream([1]), logic)

    with pytest.raises(BuildError, match=rf"test_generic.py:\d+\): `logic` {what}, so a call would run nothing of it"):
        execute_directly(program)
