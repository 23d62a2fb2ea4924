"""Operators with several inputs and outputs, and summaries between them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from timely import (
    Antichain,
    Capability,
    Exchange,
    Input,
    OperatorBuilder,
    PathSummary,
    Pipeline,
    Probe,
    Scope,
    Worker,
    execute_directly,
    new_input,
    source,
)
from timely.errors import BuildError, CapabilityError, CycleError, OperatorError


def test_messages_leave_on_the_output_they_are_given_to() -> None:
    evens: list[int] = []
    odds: list[int] = []

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            builder = OperatorBuilder(scope, "sort out")
            inputs = [builder.add_input(scope.to_stream(range(start, 4)), Pipeline()) for start in (0, 2)]
            (even, even_stream), (odd, odd_stream) = builder.add_output(), builder.add_output()

            def logic() -> None:
                for input in inputs:
                    for right, batch in input:
                        numbers = batch.columns[0]  # type: ignore[union-attr]
                        even.give(right, numbers[numbers % 2 == 0].tolist())
                        odd.give(right, numbers[numbers % 2 == 1].tolist())

            builder.build(lambda _: logic)
            even_stream.inspect(evens.append)
            odd_stream.inspect(odds.append)

    execute_directly(program)
    assert (sorted(evens), sorted(odds)) == ([0, 2, 2], [1, 3, 3])


def test_an_operator_without_ports_is_refused() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            OperatorBuilder(scope, "alone").build(lambda _: lambda: None)

    with pytest.raises(
        BuildError, match=r"operator 'alone' \(built at .*test_builder.py:\d+\) has no input and no output"
    ):
        execute_directly(program)


class Delays:
    """Two inputs and two outputs: input 0 reaches output 0 five epochs later; input 1 reaches only output 1."""

    def __init__(self, scope: Scope, *, cheat: bool = False) -> None:
        self.inputs: list[Input] = []
        streams = []
        for _ in range(2):
            handle, stream = new_input(scope)
            self.inputs.append(handle)
            streams.append(stream)
        builder = OperatorBuilder(scope, "delays")
        first, second = (builder.add_input(stream, Exchange()) for stream in streams)
        (slow, slow_stream), (other, other_stream) = builder.add_output(), builder.add_output()
        later = PathSummary(1, (5,), ())
        builder.connect(first, slow, later)
        builder.connect(second, slow, None)
        builder.connect(first, other, None)

        def logic() -> None:
            for right, batch in first:
                slow.give(right, batch)
            for right, batch in second:
                (slow if cheat else other).give(right, batch)

        builder.build(lambda _: logic)
        self.times: list[tuple[int, ...]] = []
        slow_stream = slow_stream.inspect_batch(lambda time, _: self.times.append(time))
        self.probes: list[Probe] = [slow_stream.probe(), other_stream.probe()]


def test_frontiers_follow_the_summaries() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            delays = Delays(scope)
        first, second = delays.inputs
        assert [probe.frontier for probe in delays.probes] == [Antichain([(5,)]), Antichain([(0,)])]
        first.advance_to(2)
        worker.step()
        assert [probe.frontier for probe in delays.probes] == [Antichain([(7,)]), Antichain([(0,)])]
        second.advance_to(9)
        worker.step()
        assert [probe.frontier for probe in delays.probes] == [Antichain([(7,)]), Antichain([(9,)])]
        first.send(1)
        first.advance_to(4)
        worker.step_while(lambda: delays.probes[0].less_than(9))
        assert delays.times == [(7,)]
        first.close()
        worker.step()
        assert delays.probes[0].done()
        assert not delays.probes[1].done()

    execute_directly(program)


def test_an_input_gives_no_right_to_an_output_it_does_not_reach() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            delays = Delays(scope, cheat=True)
        delays.inputs[1].send(1)
        delays.inputs[1].flush()
        worker.step()

    with pytest.raises(OperatorError, match=r"input 1 of .*'delays'.* was built without a path to output 0") as caught:
        execute_directly(program)
    assert isinstance(caught.value.__cause__, CapabilityError)


def test_a_retained_right_is_for_the_time_at_that_output() -> None:
    held: list[Capability] = []

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = new_input(scope)
            builder = OperatorBuilder(scope, "keeper")
            input = builder.add_input(stream, Pipeline())
            _, here = builder.add_output()
            there_port, there = builder.add_output()
            builder.connect(input, there_port, PathSummary(1, (3,), ()))

            def logic() -> None:
                for right, _ in input:
                    held.extend(right.retain(output) for output in (0, 1))

            builder.build(lambda _: logic)
            probes = here.probe(), there.probe()
        handle.advance_to(1)
        handle.send(1)
        handle.close()
        worker.step()
        assert [capability.time for capability in held] == [(1,), (4,)]
        assert [probe.frontier.elements for probe in probes] == [((1,),), ((4,),)]
        for capability in held:
            capability.drop()
        worker.step_while(lambda: not all(probe.done() for probe in probes))

    execute_directly(program)


def test_logic_runs_once_at_the_start_and_then_only_when_there_is_something_to_do() -> None:
    runs = []

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = new_input(scope)
            builder = OperatorBuilder(scope, "counter")
            input = builder.add_input(stream, Pipeline())

            def logic() -> None:
                runs.append([len(batch) for _, batch in input])

            builder.build(lambda _: logic)
        for _ in range(3):
            worker.step()
        handle.send(1)
        handle.advance_to(1)
        for _ in range(3):
            worker.step()
        handle.advance_to(2)
        worker.step()

    execute_directly(program)
    assert runs == [[], [1]]


def test_a_cycle_that_does_not_advance_is_refused_and_names_the_operators() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            first = OperatorBuilder(scope, "hen")
            _, stream = first.add_output()
            second = OperatorBuilder(scope, "egg")
            second.add_input(stream, Pipeline())
            _, back = second.add_output()
            second.build(lambda _: lambda: None)
            first.add_input(back, Pipeline())
            first.build(lambda _: lambda: None)

    with pytest.raises(CycleError, match=r"hen.*egg|egg.*hen"):
        execute_directly(program)


@pytest.mark.parametrize(
    "summary", [PathSummary(1, (-1,), ()), PathSummary(0, (), (-1,)), PathSummary(1, (1.5,), ()), (1, (1,), ()), 3]
)
def test_a_value_that_is_not_a_summary_is_refused_when_it_is_given(summary: object) -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            builder = OperatorBuilder(scope, "mine")
            input = builder.add_input(new_input(scope)[1], Pipeline())
            output, _ = builder.add_output()
            message = r"operator 'mine' .* is not a summary of a path: take PathSummary\(keep, increments, suffix\)"
            with pytest.raises(BuildError, match=message):
                builder.connect(input, output, summary)  # type: ignore[arg-type]
            builder.build(lambda _: lambda: None)

    execute_directly(program)


def test_a_connection_that_means_nothing_is_refused() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            stream = new_input(scope)[1]
            builders = [OperatorBuilder(scope, name) for name in ("mine", "other")]
            (input, foreign_input) = [builder.add_input(stream, Pipeline()) for builder in builders]
            (output, _), (foreign_output, _) = [builder.add_output() for builder in builders]
            mine, other = builders
            wrong: list[tuple[Any, Any]] = [(output, input), (foreign_input, output), (input, foreign_output), (0, 0)]
            for first, second in wrong:
                for summary in (None, PathSummary(1, (1,), ())):
                    with pytest.raises(BuildError, match=r"operator 'mine' .* connects an input of its own with"):
                        mine.connect(first, second, summary)
            for builder, port, out in ((mine, input, output), (other, foreign_input, foreign_output)):
                builder.connect(port, out, PathSummary(1, (1,), ()) if builder is mine else None)
                for summary in (None, PathSummary(1, (2,), ())):
                    with pytest.raises(BuildError, match=r"has connected input 0 .* with output 0 .* before"):
                        builder.connect(port, out, summary)
                builder.build_from(lambda: None)

    execute_directly(program)


def test_an_operator_cannot_be_changed_once_it_is_built() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            stream = new_input(scope)[1]
            builder = OperatorBuilder(scope, "mine")
            input = builder.add_input(stream, Pipeline())
            output, _ = builder.add_output()
            builder.build(lambda _: lambda: None)
            change: list[Callable[[], object]] = [
                lambda: builder.add_input(stream, Pipeline()),
                builder.add_output,
                lambda: builder.connect(input, output, None),
                lambda: builder.build(lambda _: lambda: None),
            ]
            for attempt in change:
                with pytest.raises(BuildError, match=r"operator 'mine' .* is built: nothing can be added to it"):
                    attempt()

    execute_directly(program)


def test_nothing_can_be_added_to_a_complete_dataflow() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow("finished") as scope:
            stream = scope.to_stream(range(3))
        add: list[Callable[[], object]] = [lambda: stream.map(abs), lambda: scope.to_stream([1]), stream.probe]
        add += [stream.exchange, stream.count]
        operators = len(scope.dataflow.operators)
        for attempt in add:
            with pytest.raises(BuildError, match=r"dataflow 0 \('finished'\) is complete: nothing can be added"):
                attempt()
        assert len(scope.dataflow.operators) == operators

    execute_directly(program)


def test_an_error_between_messages_does_not_claim_the_time_of_an_earlier_one() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = new_input(scope)
            builder = OperatorBuilder(scope, "patient")
            input = builder.add_input(stream, Pipeline(), frontier=True)

            def logic() -> None:
                for _ in input:
                    pass
                if not input.frontier:
                    raise ValueError("over")

            builder.build(lambda _: logic)
        handle.advance_to(9)
        handle.send(1)
        handle.advance_to(10)
        worker.step()
        handle.close()
        worker.step()

    with pytest.raises(OperatorError, match="operator 'patient' failed on worker 0 of 1"):
        execute_directly(program)


def test_a_loop_with_an_in_line_feedback_activates_every_operator_once_at_the_start() -> None:
    runs: list[str] = []

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            handle, again = scope.feedback()
            moved = again.exchange()
            moved.connect_loop(handle)
            builder = OperatorBuilder(scope, "last")
            builder.add_input(moved, Pipeline())
            builder.build(lambda _: lambda: runs.append("last"))
        worker.step()

    execute_directly(program)
    assert runs == ["last"]


def test_a_loop_left_open_is_refused_at_the_end_of_the_dataflow() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope, scope.iterative() as inner:
            _, again = inner.feedback(name="around")
            scope.to_stream(range(3)).enter(inner).concat(again).leave().probe()

    line = program.__code__.co_firstlineno + 2
    left_open = rf"'around' \(built at {__file__}:{line}\) is not finished: its loop was left open"
    with pytest.raises(BuildError, match=left_open):
        execute_directly(program)


def test_a_constructor_that_returns_no_logic_is_refused() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            builder = OperatorBuilder(scope, "deaf")
            builder.add_input(scope.to_stream([1]), Pipeline())
            builder.build(lambda _: None)  # type: ignore[arg-type, return-value]

    with pytest.raises(BuildError, match=r"'deaf' \(built at .*test_builder.py:\d+\) must return .* returned None"):
        execute_directly(program)


def test_an_operator_without_logic_is_refused() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            OperatorBuilder(scope, "idle").add_output()

    with pytest.raises(BuildError, match=r"operator 'idle' .* is not finished"):
        execute_directly(program)


@pytest.mark.parametrize("pact", [Pipeline, "exchange", lambda x: x, None])
def test_a_value_that_is_not_a_pact_is_refused(pact: object) -> None:
    with pytest.raises(BuildError, match=r"operator 'unary' \(built at .*\) needs a pact, such as Pipeline\(\)"):
        execute_directly(lambda worker: build_with(worker, pact))


def build_with(worker: Worker, pact: object) -> None:
    with worker.dataflow() as scope:
        scope.to_stream([1]).unary(pact, lambda input, output: None)  # type: ignore[arg-type]


def test_a_stream_of_another_dataflow_of_the_same_name_is_refused_with_both_dataflows() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow("job") as scope:
            stream = scope.to_stream([1])
        with worker.dataflow("job") as scope:
            OperatorBuilder(scope, "mine").add_input(stream, Pipeline())

    with pytest.raises(BuildError, match=r"is in dataflow 1 \('job'\) but .* of dataflow 0 \('job'\)"):
        execute_directly(program)


@pytest.mark.parametrize("right", [0, (0,), None])
def test_a_time_is_not_accepted_as_a_capability(right: object) -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            builder = OperatorBuilder(scope, "mine")
            output, _ = builder.add_output()
            builder.build(lambda _: lambda: output.give(right, [1]))  # type: ignore[arg-type]

    with pytest.raises(OperatorError, match="is given a batch with a capability, such as"):
        execute_directly(program)


@pytest.mark.parametrize("kind", ["unary_frontier", "source", "builder"])
def test_an_error_in_a_constructor_names_the_operator_the_worker_and_both_lines(kind: str) -> None:
    def refuse(*_: object) -> Any:
        raise ValueError("boom")

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            if kind == "unary_frontier":
                scope.to_stream([1]).unary_frontier(Pipeline(), refuse, name="mine")
            elif kind == "source":
                source(scope, refuse, name="mine")
            else:
                builder = OperatorBuilder(scope, "mine")
                builder.add_output()
                builder.build(refuse)

    line = rf"{re.escape(__file__)}:\d+"
    message = rf"operator 'mine' failed on worker 0 of 1 \({line}, built at {line}\): ValueError: boom"
    with pytest.raises(OperatorError, match=message) as caught:
        execute_directly(program)
    assert isinstance(caught.value.__cause__, ValueError)
