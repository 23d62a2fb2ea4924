"""Tests of `feedback`: loops of in-line operators, of scheduled ones, and nested."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.unit.dataflow.running import collect, collected, on_workers
from timely import InputPort, OutputPort, Pipeline, Scope, Stream, Worker, execute_directly, new_input
from timely.errors import BuildError, CycleError, DataflowFailed, OperatorError
from timely.order import LIMIT, Time


def test_a_loop_of_in_line_operators_ends_and_leaves_at_its_times() -> None:
    def program(scope: Scope) -> Stream:
        with scope.iterative() as inner:
            handle, again = inner.feedback()
            doubled = scope.to_stream(range(1, 4)).enter(inner).concat(again).map(lambda x: 2 * x)
            doubled.filter(lambda x: x < 100).connect_loop(handle)
            return doubled.filter(lambda x: x >= 100)

    assert collect(program) == [[((0, 5), 128), ((0, 5), 192), ((0, 6), 128)]]


def test_a_long_loop_of_in_line_operators_needs_no_deep_stack() -> None:
    def program(scope: Scope) -> Stream:
        with scope.iterative() as inner:
            handle, again = inner.feedback()
            counted = scope.to_stream(range(1)).enter(inner).concat(again).map(lambda x: x + 1)
            counted.filter(lambda x: x < 5000).connect_loop(handle)
            return counted.filter(lambda x: x == 5000).leave()

    assert collected(program) == [5000]


@on_workers
def test_a_loop_through_an_exchange_ends(workers: int) -> None:
    def program(scope: Scope) -> Stream:
        with scope.iterative() as inner:
            handle, again = inner.feedback()
            counted = scope.to_stream(range(10)).enter(inner).concat(again).map(lambda x: x + 7).exchange()
            counted.filter(lambda x: x < 50).connect_loop(handle)
            return counted.filter(lambda x: x >= 50).leave()

    def through(x: int) -> int:
        while x < 50:
            x += 7
        return x

    assert collected(program, workers) == sorted([through(x) for x in range(10)] * workers)


@pytest.mark.parametrize("step", [3, np.int8(3), np.uint64(3)])
def test_a_step_of_more_than_one_advances_the_counter_by_it(step: Any) -> None:
    def program(scope: Scope) -> Stream:
        with scope.iterative() as inner:
            handle, again = inner.feedback(step)
            counted = scope.to_stream(range(1)).enter(inner).concat(again).map(lambda x: x + 1)
            counted.filter(lambda x: x < 3).connect_loop(handle)
            return counted

    assert collect(program) == [[((0, 0), 1), ((0, 3), 2), ((0, 6), 3)]]


@on_workers
def test_loops_nest_and_the_inner_counter_starts_again_at_zero(workers: int) -> None:
    def program(scope: Scope) -> Stream:
        with scope.iterative("outer") as outer:
            outer_handle, outer_again = outer.feedback()
            start = scope.to_stream(range(1)).enter(outer).concat(outer_again)
            with outer.iterative("inner") as inner:
                inner_handle, inner_again = inner.feedback()
                counted = start.enter(inner).concat(inner_again).map(lambda x: x + 1).exchange()
                counted.filter(lambda x: x % 10 != 0).connect_loop(inner_handle)
                tens = counted.filter(lambda x: x % 10 == 0)
            left = tens.leave()
            left.filter(lambda x: x < 30).connect_loop(outer_handle)
            return left

    found = sorted(record for share in collect(program, workers) for record in share)
    assert found == sorted([((0, 0), 10), ((0, 1), 20), ((0, 2), 30)] * workers)


def test_a_loop_in_the_outermost_scope_advances_the_epoch() -> None:
    def program(scope: Scope) -> Stream:
        handle, again = scope.feedback()
        counted = scope.to_stream(range(1)).concat(again).map(lambda x: x + 1)
        counted.filter(lambda x: x < 3).connect_loop(handle)
        return counted

    assert collect(program) == [[((0,), 1), ((1,), 2), ((2,), 3)]]


def test_a_feedback_that_does_not_advance_is_refused() -> None:
    with pytest.raises(BuildError, match="`step` must be a whole number of at least 1, not 0"):
        collect(lambda scope: scope.feedback(0)[1])


def test_a_loop_can_be_closed_only_once() -> None:
    def program(scope: Scope) -> Stream:
        handle, again = scope.feedback()
        again.connect_loop(handle)
        again.connect_loop(handle)
        return again

    with pytest.raises(BuildError, match="this loop is already closed"):
        collect(program)


def test_leaving_with_a_time_and_feeding_it_back_inside_is_refused_and_names_the_operators() -> None:
    def program(scope: Scope) -> Stream:
        handle, again = scope.feedback()
        with scope.iterative() as inner:
            inside, inner_again = inner.feedback()
            inner_again.leave().enter(inner).connect_loop(inside)
        again.connect_loop(handle)
        return again

    with pytest.raises(CycleError, match="'feedback'"):
        collect(program)


def test_a_loop_that_never_ends_returns_to_its_worker_after_each_round() -> None:
    def program(worker: Worker) -> list[int]:
        rounds = [0]

        def count(_: object, batch: Any) -> None:
            rounds[0] += 1
            assert rounds[0] < 1_000_000, "the operator never returns"

        with worker.dataflow() as scope, scope.iterative() as inner:
            handle, again = inner.feedback()
            around = scope.to_stream(range(1)).enter(inner).concat(again)
            around.unary(Pipeline(), passing_on).inspect_batch(count).connect_loop(handle)
        seen = []
        for _ in range(3):
            worker.step()
            seen.append(rounds[0])
        worker.drop_dataflow(0)
        return seen

    seen = execute_directly(program)
    assert 0 < seen[0] < seen[1] < seen[2] < 1000


def passing_on(input: InputPort, output: OutputPort) -> None:
    for capability, batch in input:
        output.give(capability, batch)


def rounds_from(start: int, step: int, at_most: int) -> tuple[list[Time], str]:
    """Return the times at which a number goes round a loop without a condition, and the error that ends it."""
    seen: list[Time] = []

    def note(time: Time, _: Any) -> None:
        seen.append(time)
        assert len(seen) <= at_most, f"messages at {seen}"

    def program(worker: Worker) -> str:
        with worker.dataflow() as scope:
            numbers, stream = new_input(scope)
            handle, again = scope.feedback(step, name="loop")
            stream.concat(again).inspect_time(note).connect_loop(handle)
        numbers.advance_to(start)
        numbers.send(1)

        def finish() -> None:
            numbers.close()
            worker.complete()

        with pytest.raises(OperatorError) as refused:
            finish()
        with pytest.raises(DataflowFailed):
            worker.step_while(lambda: True)
        return str(refused.value)

    return seen, execute_directly(program)


@pytest.mark.parametrize(("start", "step", "last"), [(LIMIT - 2, 1, LIMIT), (0, LIMIT // 2, LIMIT), (3, LIMIT + 1, 3)])
def test_no_message_goes_round_a_loop_past_the_limit_of_times(start: int, step: int, last: int) -> None:
    seen, error = rounds_from(start, step, at_most=3)
    assert seen == [(time,) for time in range(start, last + 1, step)]
    assert error.startswith(f"operator 'loop' failed at time ({last},) on worker 0 of 1 (built at ")
    assert error.endswith(
        f"CapabilityError: ({last + step},) is too late for the next round: no coordinate of a time may be larger than "
        "2 ** 62"
    )


def test_the_step_of_a_loop_and_the_width_of_times_may_be_integers_of_numpy() -> None:
    def program(worker: Worker) -> list[Time]:
        found: list[Time] = []
        with worker.dataflow(outer=np.int64(2)) as scope, scope.iterative() as inner:
            handle, again = inner.feedback(np.int8(2))
            numbers = scope.to_stream([3]).enter(inner).concat(again).inspect_time(lambda time, _: found.append(time))
            numbers.map(lambda x: x - 1).filter(lambda x: x > 1).connect_loop(handle)
        worker.complete()
        return found

    assert str(execute_directly(program)) == "[(0, 0, 0), (0, 0, 2)]"
