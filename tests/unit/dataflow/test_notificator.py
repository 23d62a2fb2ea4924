"""Tests of notifications and of the operators that receive them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from tests.unit.dataflow.running import collect, on_workers
from timely import (
    Capability,
    Exchange,
    FrontierNotificator,
    InputPort,
    Notificator,
    OutputPort,
    Pipeline,
    Probe,
    Scope,
    Stream,
    Time,
    Worker,
    execute_directly,
    new_input,
)
from timely.dataflow.input_capability import InputCapability
from timely.errors import CapabilityError, OperatorError


def counter(input: InputPort, output: OutputPort, notificator: Notificator) -> None:
    """Send the number of records of each time, from a state kept until the notification."""
    counts = states.setdefault(id(input), {})
    for capability, batch in input:
        counts[capability.time] = counts.get(capability.time, 0) + len(batch)
        notificator.notify_at(capability)
    for time, capability in notificator:
        assert capability is not None
        assert capability.time == time
        output.give(capability, [counts.pop(time)])


states: dict[int, dict[Time, int]] = {}


@on_workers
def test_a_notification_arrives_when_all_workers_are_done(workers: int) -> None:
    def program(scope: Scope) -> Stream:
        return scope.to_stream(range(100)).unary_notify(Exchange(lambda x: x * 0), counter)

    found = [record for each in collect(program, workers) for record in each]
    assert found == [((0,), 100 * workers)]


def test_the_two_times_of_a_notification_are_independent() -> None:
    notified: list[tuple[Time, Time | None, int]] = []

    def program(worker: Worker) -> list[bool]:
        def logic(input: InputPort, output: OutputPort, notificator: Notificator) -> None:
            for capability, _ in input:
                notificator.notify_at(capability, guarantee=(3,))
                notificator.notify_after((5,))
            for time, held in notificator:
                notified.append((time, None if held is None else held.time, numbers.epoch))

        with worker.dataflow() as scope:
            numbers, stream = new_input(scope)
            probe = stream.unary_notify(Pipeline(), logic).probe()
        numbers.send(1)
        held_back: list[bool] = []
        for epoch in range(1, 8):
            numbers.advance_to(epoch)
            settle(worker)
            held_back.append(probe.less_equal(0))
        return held_back

    # Until 3 is complete the capability for 0 is held; the request for 5 holds nothing back.
    assert execute_directly(program) == [True, True, True, False, False, False, False]
    assert notified == [((3,), (0,), 4), ((5,), None, 6)]


def asking(ask: Callable[[Notificator, InputCapability], None]) -> list[Time]:
    """Let an operator `ask` when the first message arrives; return the times of its notifications."""
    notified: list[Time] = []

    def logic(input: InputPort, output: OutputPort, notificator: Notificator) -> None:
        for capability, _ in input:
            ask(notificator, capability)
        notified.extend(time for time, _ in notificator)

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            scope.to_stream([1]).unary_notify(Pipeline(), logic)

    execute_directly(program)
    return notified


def test_a_guarantee_may_be_written_in_every_form_of_a_time() -> None:
    def ask(notificator: Notificator, right: InputCapability) -> None:
        notificator.notify_after(np.int64(2))
        notificator.notify_after([1])
        notificator.notify_at(right, guarantee=3)

    assert asking(ask) == [(1,), (2,), (3,)]
    requests = FrontierNotificator()
    requests.notify_after(1)
    assert requests.is_asked([1], None)
    assert [time for time, _ in requests.available([])] == [(1,)]


@pytest.mark.parametrize(
    ("moment", "message"),
    [
        (1.5, "TypeError: a time is an integer or a tuple of integers, not 1.5"),
        ((0, 1), r"CapabilityError: \(0, 1\) is not a time of this scope, whose times look like \(0,\)"),
        ((), r"CapabilityError: \(\) is not a time of this scope"),
    ],
)
def test_a_guarantee_that_is_not_a_time_of_the_scope_is_refused(moment: Any, message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        asking(lambda notificator, right: notificator.notify_after(moment))
    with pytest.raises(OperatorError, match=message):
        asking(lambda notificator, right: notificator.notify_at(right, guarantee=moment))


def test_a_request_for_a_complete_time_is_answered_even_if_nothing_moves() -> None:
    notified: list[Time] = []

    def logic(input: InputPort, output: OutputPort, notificator: Notificator) -> None:
        for _ in input:
            notificator.notify_after((0,))
        for time, _ in notificator:
            notified.append(time)
        if notified == [(0,)]:
            notificator.notify_after((0,))

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = new_input(scope)
            probe = stream.unary_notify(Pipeline(), logic).probe()
        numbers.send(1)
        numbers.advance_to(1)
        wait(worker, probe, 1)
        settle(worker)

    execute_directly(program)
    assert notified == [(0,), (0,)]


def test_notifications_requested_at_the_start_arrive_without_messages() -> None:
    def logic(input: InputPort, output: OutputPort, notificator: Notificator) -> None:
        for time, capability in notificator:
            assert capability is not None
            output.give(capability, [time[0]])

    def program(scope: Scope) -> Stream:
        return scope.to_stream([]).unary_notify(Pipeline(), logic, init=[(2,), (1,)])

    assert collect(program) == [[((1,), 1), ((2,), 2)]]


@on_workers
def test_two_inputs_are_complete_together(workers: int) -> None:
    def program(scope: Scope) -> Stream:
        seen: list[int] = []

        def logic(left: InputPort, right: InputPort, output: OutputPort, notificator: Notificator) -> None:
            for input in (left, right):
                for capability, batch in input:
                    seen.append(len(batch))
                    notificator.notify_at(capability)
            for _, capability in notificator:
                assert capability is not None
                output.give(capability, [sum(seen)])

        one = Exchange(lambda x: x * 0)
        return scope.to_stream(range(10)).binary_notify(scope.to_stream(range(5)), one, one, logic)

    found = [record for each in collect(program, workers) for record in each]
    assert found == [((0,), 15 * workers)]


def wait(worker: Worker, probe: Probe, time: int) -> None:
    """Step until `time` is the least that may still appear."""
    worker.step_while(lambda: probe.less_than(time))


def settle(worker: Worker) -> None:
    """Step until nothing is left to do."""
    worker.step()
    while not worker.is_stalled:
        worker.step()


def test_requests_refuse_what_is_no_capability() -> None:
    def ask(notificator: Notificator, right: InputCapability) -> None:
        for given in (right, right.time, None):
            with pytest.raises(CapabilityError, match=r"takes a capability that lasts, .*retain\(\)"):
                FrontierNotificator().notify_at(given)
        for other in (right.time, 7, None):
            with pytest.raises(CapabilityError, match=r"that of a message, .*notify_after\(time\) takes none"):
                notificator.notify_at(other)

    assert asking(ask) == []


def leaving(input: InputPort, output: OutputPort, notificator: Notificator) -> None:
    for time, right in notificator:
        output.give(right, [time])
        break


def drawing(input: InputPort, output: OutputPort, notificator: Notificator) -> None:
    for time, right in [next(iter(notificator), ((), None))]:
        if time:
            output.give(right, [time])


def catching(input: InputPort, output: OutputPort, notificator: Notificator) -> None:
    with suppress(ZeroDivisionError):
        for time, right in notificator:
            output.give(right, [time])
            1 / 0  # noqa: B018


@pytest.mark.parametrize("deliver", [leaving, drawing, catching])
@pytest.mark.parametrize("loop", [False, True])
def test_what_is_due_when_a_loop_is_left_comes_in_the_next_activation(deliver: Callable[..., None], loop: bool) -> None:
    def logic(input: InputPort, output: OutputPort, notificator: Notificator) -> None:
        for right, _ in input:
            for later in range(3):
                notificator.notify_at(right.delayed((right.time[0] + later, *right.time[1:])))
        deliver(input, output, notificator)

    found: list[Time] = []

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            stream = scope.to_stream([1])
            if loop:
                with scope.iterative() as inner:
                    handle, again = inner.feedback()
                    notified = stream.enter(inner).concat(again).unary_notify(Pipeline(), logic)
                    notified.filter(lambda time: False).connect_loop(handle)
                    stream = notified.leave()
            else:
                stream = stream.unary_notify(Pipeline(), logic)
            probe = stream.inspect(found.append).probe()
        worker.step_while(lambda: not probe.done())

    execute_directly(program)
    assert [time[0] for time in found] == [0, 1, 2]


def test_a_loop_over_requests_alone_can_be_left() -> None:
    requests = FrontierNotificator()

    def constructor(capability: Capability) -> Callable[[InputPort, OutputPort], None]:
        for later in range(3):
            requests.notify_at(capability.delayed(later))
        capability.drop()

        def logic(input: InputPort, output: OutputPort) -> None:
            for _ in input:
                pass
            for time, right in requests.available([input.frontier]):
                output.give(right, [time])
                break

        return logic

    found: list[Time] = []

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            stream = scope.to_stream([1]).unary_frontier(Pipeline(), constructor)
            probe = stream.inspect(found.append).probe()
        worker.step_while(lambda: not probe.done())

    execute_directly(program)
    assert found == [(0,), (1,), (2,)]


@pytest.mark.parametrize("guarantees", [(0, 0), (0, 1), (1, 0, 1), (1, 1, 0)])
def test_a_capability_may_be_given_more_than_once(guarantees: tuple[int, ...]) -> None:
    found: list[Time] = []

    def logic(input: InputPort, output: OutputPort, notificator: Notificator) -> None:
        for right, _ in input:
            held = right.retain()
            for guarantee in guarantees:
                notificator.notify_at(held, guarantee=guarantee)
        for time, capability in notificator:
            output.give(capability, [time])

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            probe = scope.to_stream([1]).unary_notify(Pipeline(), logic).inspect(found.append).probe()
        worker.step_while(lambda: not probe.done())

    execute_directly(program)
    assert found == [(guarantee,) for guarantee in sorted(set(guarantees))]


def test_a_capability_that_was_delivered_may_be_given_again() -> None:
    found: list[Time] = []

    def logic(input: InputPort, output: OutputPort, notificator: Notificator) -> None:
        for right, _ in input:
            notificator.notify_at(right)
        for time, capability in notificator:
            output.give(capability, [time])
            if time < (3,):
                notificator.notify_at(capability, guarantee=time[0] + 1)

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            probe = scope.to_stream([1]).unary_notify(Pipeline(), logic).inspect(found.append).probe()
        worker.step_while(lambda: not probe.done())

    execute_directly(program)
    assert found == [(0,), (1,), (2,), (3,)]
