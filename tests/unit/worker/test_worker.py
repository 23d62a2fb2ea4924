"""A worker: several dataflows, how they are dropped, activators from other threads, and waits that cannot end."""

from __future__ import annotations

import math
import time as clock
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Thread
from typing import Any

import pytest

from timely import (
    Capability,
    Config,
    Gather,
    Input,
    InputPort,
    Notificator,
    OperatorBuilder,
    OutputPort,
    Pipeline,
    Probe,
    Stream,
    Worker,
    execute,
    execute_directly,
    new_input,
    new_unordered_input,
    source,
)
from timely.capture import EventQueue
from timely.communication.message import Taken
from timely.communication.thread import ThreadAllocator
from timely.errors import BuildError, OperatorError, ShapeError, StalledError
from timely.run.failure import message

on_workers = pytest.mark.parametrize("workers", [1, 3])


@on_workers
def test_several_dataflows_run_at_once_each_with_its_own_time(workers: int) -> None:
    def program(worker: Worker) -> list[int]:
        inputs: list[Input] = []
        probes: list[Probe] = []
        sums = [0, 0]
        for number in range(2):

            def add(record: int, number: int = number) -> None:
                sums[number] += record

            with worker.dataflow(f"dataflow {number}") as scope:
                handle, stream = new_input(scope)
                inputs.append(handle)
                probes.append(stream.exchange().inspect(add).probe())
        assert len(worker.dataflows) == 2
        inputs[0].send(1)
        inputs[1].send(100)
        inputs[0].advance_to(5)
        worker.step_while(lambda: probes[0].less_than(5))
        assert probes[1].less_than(1)
        inputs[0].close()
        worker.step_while(lambda: not probes[0].done())
        inputs[1].advance_to(1)
        worker.step_while(lambda: probes[1].less_than(1))
        return sums

    results = execute(program, Config(workers=workers))
    assert [sum(column) for column in zip(*results)] == [workers, 100 * workers]


def test_a_dataflow_can_be_built_while_another_runs() -> None:
    def program(worker: Worker) -> None:
        for round in range(3):
            with worker.dataflow() as scope:
                probe = scope.to_stream(range(10)).exchange().probe()
            worker.step_while(lambda probe=probe: not probe.done())
            assert worker.built == round + 1
        while worker.step_or_park():
            pass
        assert worker.dataflows == []

    execute(program, Config(workers=2))


def test_two_dataflows_cannot_be_built_at_once() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow(), pytest.raises(BuildError, match="a dataflow is already being built"), worker.dataflow():
            pass

    execute_directly(program)


@pytest.mark.parametrize("outer", [0, -1, 1.5, "two", True])
def test_times_without_a_coordinate_are_refused(outer: Any) -> None:
    def program(worker: Worker) -> None:
        with (
            pytest.raises(
                BuildError,
                match=rf"^dataflow .*test_worker.py:\d+\): `outer` must be a whole number of at least 1, not {outer!r}",
            ),
            worker.dataflow(outer=outer),
        ):
            pass
        with worker.dataflow(outer=2):
            pass

    execute_directly(program)


def test_a_dataflow_whose_building_failed_leaves_nothing_behind() -> None:
    def program(worker: Worker) -> None:
        with pytest.raises(ZeroDivisionError), worker.dataflow() as scope:
            scope.to_stream(range(1 // 0))
        with worker.dataflow() as scope:
            probe = scope.to_stream(range(1)).probe()
        assert (worker.built, len(worker.dataflows)) == (1, 1)
        worker.step_while(lambda: not probe.done())

    execute_directly(program)


@on_workers
def test_a_dropped_dataflow_does_nothing_more_and_closes_what_it_holds(workers: int) -> None:
    def program(worker: Worker) -> None:
        closed: list[bool] = []
        seen: list[int] = []
        with worker.dataflow() as scope:
            numbers, stream = new_input(scope)
            stream.exchange().inspect(seen.append).probe()
            scope.dataflow.when_complete(lambda: closed.append(True))
        numbers.send(1)
        worker.drop_dataflow(scope.dataflow)
        worker.drop_dataflow(0)
        assert closed == [True]
        for _ in range(3):
            worker.step()
        assert seen == []
        with worker.dataflow() as scope:
            probe = scope.to_stream(range(10)).exchange().probe()
        worker.step_while(lambda: not probe.done())

    execute(program, Config(workers=workers))


def test_messages_for_a_dropped_dataflow_are_discarded() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = new_input(scope)
            stream.exchange().probe()
        if worker.index == 0:
            for number in range(100):
                numbers.send(number)
            numbers.advance_to(1)
            worker.step()
        worker.drop_dataflow(0)
        with worker.dataflow() as scope:
            probe = scope.to_stream(range(10)).exchange().probe()
        worker.step_while(lambda: not probe.done())

    execute(program, Config(workers=2))


def test_a_complete_dataflow_closes_what_it_holds() -> None:
    def program(worker: Worker) -> list[str]:
        closed: list[str] = []
        with worker.dataflow() as scope:
            scope.dataflow.when_complete(lambda: closed.append("closed"))
            scope.to_stream(range(3)).probe()
        assert worker.step() or closed
        while worker.step_or_park():
            pass
        return closed

    assert execute_directly(program) == ["closed"]


class Failing(EventQueue):
    """A sink that records each request to close it, and cannot be closed."""

    def __init__(self, name: str, asked: list[str]) -> None:
        super().__init__()
        self.name, self.asked = name, asked

    def close(self) -> None:
        self.asked.append(self.name)
        raise OSError(f"{self.name} is full")


def test_a_sink_that_cannot_be_closed_does_not_keep_others_open(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(ThreadAllocator, "close", lambda _: asked.append("allocator"))

    def program(worker: Worker) -> None:
        for name in ("first", "second"):
            with worker.dataflow() as scope:
                stream = new_input(scope)[1]
                stream.capture_into(Failing(f"{name} disk", asked)).capture_into(Failing(f"{name} mirror", asked))
        raise ValueError("the program's own")

    with pytest.raises(OperatorError, match=r"operator 'capture' failed on .*: OSError: first disk is full") as caught:
        execute_directly(program)
    assert asked == ["first disk", "first mirror", "second disk", "second mirror", "allocator"]
    assert message(caught.value).splitlines()[-1].startswith("  after ValueError: the program's own (")


@on_workers
def test_an_activator_wakes_a_parked_worker_from_another_thread(workers: int) -> None:
    def program(worker: Worker) -> int:
        received: list[int] = []
        given: list[int] = []
        with worker.dataflow() as scope:
            builder = OperatorBuilder(scope, "outside")
            output, stream = builder.add_output(initial=True)

            def constructor(capabilities: list[Capability]) -> Callable[[], None]:
                def logic() -> None:
                    while given:
                        number = given.pop(0)
                        if number:
                            output.give(capabilities[0], [number])
                        else:
                            capabilities[0].drop()

                return logic

            builder.build(constructor)
            probe = stream.exchange().inspect(received.append).probe()
        activate = worker.activator(builder.operator)

        def outside() -> None:
            for number in (1, 2, 3, 0):
                clock.sleep(0.01)
                given.append(number)
                activate()

        thread = Thread(target=outside)
        thread.start()
        worker.step_while(lambda: not probe.done())
        thread.join()
        return sum(received)

    assert sum(execute(program, Config(workers=workers))) == 6 * workers


def test_a_wait_without_peers_or_activators_that_cannot_end_is_an_error_with_the_users_line() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = new_input(scope, name="numbers")
            probe = stream.probe()
        numbers.send(1)
        worker.step_while(lambda: probe.less_than(1))

    with pytest.raises(StalledError) as caught:
        execute_directly(program)
    text = str(caught.value)
    assert "was an input not advanced or closed?" in text
    assert "a capability for (0,) on output 0 of operator 'numbers'" in text
    assert f"{__file__}:{program.__code__.co_firstlineno + 2}" in text


def test_waiting_ends_at_once_if_the_condition_no_longer_holds() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            probe = scope.to_stream(range(3)).probe()
        worker.step_while(lambda: not probe.done())
        worker.step_while(lambda: False)

    execute_directly(program)


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -math.inf])
def test_a_call_after_an_infinite_or_undefined_delay_is_refused(seconds: float) -> None:
    def program(worker: Worker) -> None:
        with pytest.raises(ValueError, match=f"call_after takes a finite number of seconds, not {seconds}"):
            worker.call_after(seconds, lambda: None)

    execute_directly(program)


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (
            lambda worker, probe: worker.step_while(probe.less_than(1)),
            "step_while .* `condition` must be a function, not",
        ),
        (
            lambda worker, probe: worker.call(probe.done()),
            r"call \(at .*test_worker.py:\d+\): `function` must be a funct",
        ),
        (
            lambda worker, probe: worker.call_after(1, probe.done()),
            "call_after .* `function` must be a function, not Fal",
        ),
    ],
)
def test_what_a_function_returned_is_refused_in_the_place_of_the_function(use: Any, message: str) -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = new_input(scope)
            probe = stream.probe()
        with pytest.raises(BuildError, match=message):
            use(worker, probe)
        numbers.close()

    execute_directly(program)


def test_parking_ends_at_its_timeout() -> None:
    def program(worker: Worker) -> float:
        with worker.dataflow() as scope:
            _, stream = new_input(scope)
            stream.probe()
        while worker.dataflows[0].step():
            pass
        begun = clock.monotonic()
        assert worker.step_or_park(0.05)
        assert worker.step_or_park(0.05)
        return clock.monotonic() - begun

    assert 0.05 <= execute_directly(program) < 30


def test_an_operator_that_keeps_itself_busy_does_not_prevent_the_end_of_a_step() -> None:
    def program(worker: Worker) -> int:
        runs = []

        def constructor(capability: Capability, activate: Callable[[], None]) -> Callable[[OutputPort], None]:
            def logic(output: OutputPort) -> None:
                assert capability.output is output
                runs.append(1)
                activate()

            return logic

        with worker.dataflow() as scope:
            source(scope, constructor).probe()
        worker.step()
        worker.drop_dataflow(0)
        return len(runs)

    assert 1 <= execute_directly(program) < 10


def test_operators_run_in_topological_order_within_a_step() -> None:
    order: list[str] = []

    def program(worker: Worker) -> None:
        def note(name: str) -> Callable[[InputPort, OutputPort], None]:
            def logic(input: InputPort, output: OutputPort) -> None:
                for right, batch in input:
                    order.append(name)
                    output.give(right, batch)

            return logic

        with worker.dataflow() as scope:
            start = scope.to_stream(range(1))
            first = start.unary(Pipeline(), note("first"))
            second = first.unary(Pipeline(), note("second"))
            start.concat(second).unary(Pipeline(), note("last")).probe()
        worker.step()
        assert order == ["first", "second", "last", "last"]

    execute_directly(program)


def test_an_error_names_the_worker_it_happened_on() -> None:
    def program(worker: Worker) -> None:
        def refuse(record: int) -> None:
            if worker.index == 2:
                raise ValueError("no")

        with worker.dataflow() as scope:
            scope.to_stream(range(3)).inspect(refuse, name="look").probe()
        while worker.step_or_park():
            pass

    with pytest.raises(OperatorError, match=r"operator 'look' failed at time \(0,\) on worker 2 of 3"):
        execute(program, Config(workers=3))


@pytest.mark.parametrize("teller", [0, 1])
def test_an_error_names_the_worker_that_the_batch_came_from_if_that_is_another(teller: int) -> None:
    def program(worker: Worker) -> None:
        def refuse(input: InputPort) -> None:
            for _ in input.drain():
                raise ValueError("no")

        with worker.dataflow() as scope:
            numbers, stream = new_input(scope)
            stream.sink(Gather(0), refuse, name="look")
        if worker.index == teller:
            numbers.send(1)
        numbers.close()
        while worker.step_or_park():
            pass

    after = ", after a batch from worker 1" if teller else ""
    with pytest.raises(OperatorError, match=rf"operator 'look' failed at time \(0,\) on worker 0 of 2{after} \(/"):
        execute(program, Config(workers=2))


def test_an_error_of_a_notification_names_no_worker_that_a_batch_came_from() -> None:
    def program(worker: Worker) -> None:
        def refuse(input: InputPort, output: OutputPort, notificator: Notificator) -> None:
            for capability, _ in input:
                notificator.notify_at(capability.retain())
            for _ in notificator:
                raise ValueError("no")

        with worker.dataflow() as scope:
            numbers, stream = new_input(scope)
            stream.unary_notify(Gather(0), refuse, name="look").probe()
        if worker.index == 1:
            numbers.send(1)
        numbers.close()
        while worker.step_or_park():
            pass

    with pytest.raises(OperatorError, match=r"operator 'look' failed at time \(0,\) on worker 0 of 2 \(/"):
        execute(program, Config(workers=2))


def test_workers_with_different_dataflows_name_what_differs() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            stream = scope.to_stream(range(3)).exchange()
            if worker.index:
                stream.broadcast().probe()
            else:
                stream.exchange().probe()
        while worker.step_or_park():
            pass

    with pytest.raises(ShapeError) as caught:
        execute(program, Config(workers=2))
    first = program.__code__.co_firstlineno
    assert f"operator 'exchange' (exchange) in dataflow built at {__file__}:{first + 6} on worker 0" in str(
        caught.value
    )
    assert f"operator 'broadcast' (broadcast) in dataflow built at {__file__}:{first + 4} on worker 1" in str(
        caught.value
    )


def test_the_same_operators_in_another_wiring_differ() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            first, second = scope.to_stream(range(3)), scope.to_stream(range(3))
            (first if worker.index else second).exchange().probe()
        while worker.step_or_park():
            pass

    with pytest.raises(ShapeError, match="the same operators, connected in another way"):
        execute(program, Config(workers=2))


def test_a_dataflow_may_be_dropped_by_an_operator_in_it_or_in_another() -> None:
    def program(worker: Worker) -> list[int]:
        seen: list[int] = []
        with worker.dataflow() as scope:
            scope.to_stream(range(1)).inspect(lambda _: [worker.drop_dataflow(0), worker.drop_dataflow(1)]).probe()
        with worker.dataflow() as scope:
            scope.to_stream(range(1)).inspect(seen.append).probe()
        while worker.step_or_park():
            pass
        return seen

    assert execute_directly(program) == []


def test_closing_inputs_may_drop_another_dataflow() -> None:
    def program(worker: Worker) -> Input:
        with worker.dataflow() as first:
            numbers, stream = new_input(first)
            stream.inspect(lambda _: worker.drop_dataflow(second.dataflow))
        with worker.dataflow() as second:
            others, _ = new_input(second)
        numbers.send(1)
        return others

    assert execute_directly(program).is_closed


def test_a_requested_call_may_step_the_worker() -> None:
    called: list[str] = []

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = new_input(scope)
            probe = stream.probe()

        def advance() -> None:
            numbers.advance_to(1)
            worker.step_while(lambda: probe.less_than(1))
            called.append("first")

        worker.call(advance)
        worker.call(lambda: called.append("second"))
        worker.step()

    execute_directly(program)
    assert called == ["second", "first"]


@pytest.mark.parametrize("wrong", ["no channel", "a channel not counted", "too many", "no dataflow"])
def test_a_report_of_messages_a_peer_cannot_have_taken_is_refused_and_changes_nothing_else(wrong: str) -> None:
    def program(worker: Worker) -> tuple[list[int], int]:
        found: list[int] = []
        with worker.dataflow() as scope:
            numbers, stream = new_input(scope)
            probe = stream.exchange().inspect(found.append).probe()
            builder = OperatorBuilder(scope, "drain")
            drained = builder.add_input(stream, Pipeline(), drains=True)
            builder.build(lambda capabilities: lambda: deque(drained.drain(), 0).clear())
        channels = scope.dataflow.channels
        counted = next(port.channel for port in channels if port.ledger is not None)
        if worker.index == 1:
            taken = {
                "no channel": (0, len(channels), 1),
                "a channel not counted": (0, drained.channel, 1),
                "too many": (0, counted, 1000),
                "no dataflow": (1, counted, 1),
            }[wrong]
            worker.allocator.send(0, Taken((taken,)))
        numbers.send_batch(list(range(10)))
        numbers.close()
        worker.step_while(lambda: not probe.done())
        return found, worker.allocator.refused

    (first, refused), (second, none) = execute(program, Config(workers=2))
    assert sorted(first + second) == sorted(2 * list(range(10)))
    assert (refused, none) == (1, 0)


def test_a_report_of_messages_taken_for_a_dropped_dataflow_is_accepted() -> None:
    def program(worker: Worker) -> int:
        with worker.dataflow() as scope:
            new_input(scope)
        worker.drop_dataflow(scope.dataflow)
        worker.allocator.send(1 - worker.index, Taken(((0, 0, 1),)))
        worker.step_while(lambda: worker.allocator.messages_received < 2)
        return worker.allocator.refused

    assert execute(program, Config(workers=2)) == [0, 0]


@pytest.mark.parametrize("workers", [1, 2])
def test_an_operator_that_steps_its_own_dataflow_is_refused(workers: int) -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers = scope.to_stream([1, 2]).exchange()
            numbers.inspect(lambda _: worker.step()).exchange().inspect(lambda _: None)

    with pytest.raises(OperatorError, match="steps the worker while it runs"):
        execute(program, Config(workers=workers))


@pytest.mark.composed
@pytest.mark.parametrize("attach", [Stream.map, Stream.inspect, lambda stream, look: stream.filter(look).exchange()])
def test_a_function_that_steps_the_worker_while_the_program_sends_is_refused(attach: Callable[..., Stream]) -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            first, numbers = new_input(scope)
            attach(numbers, lambda _: worker.step()).probe()
        with worker.dataflow() as scope:
            second, others = new_unordered_input(scope)
            attach(others, lambda _: worker.step()).probe()
        for send in (lambda: first.send_batch([1]), lambda: second.send_batch(second.capability, [1])):
            with pytest.raises(OperatorError, match="steps the worker while it runs"):
                send()
        worker.step()

    execute(program)


@pytest.mark.composed
def test_a_function_may_send_to_an_input_and_drop_its_dataflow_while_the_program_sends() -> None:
    found: list[int] = []

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            first, numbers = new_input(scope)
            second, others = new_input(scope)
            numbers.inspect(lambda number: second.send_batch([number + 1]))
            others.inspect(found.append).inspect(lambda _: worker.drop_dataflow(scope.dataflow))
        first.send_batch([1])
        assert worker.dataflows == []
        worker.step()

    execute(program)
    assert found == [2]


def test_a_step_in_another_thread_than_the_workers_is_refused() -> None:
    def program(worker: Worker) -> None:
        with ThreadPoolExecutor(1) as other:
            for step in (worker.step, worker.step_or_park, lambda: worker.step_while(lambda: True)):
                with pytest.raises(BuildError, match="worker 0 of 1 is stepped in another thread than its own"):
                    other.submit(step).result(10)

    execute_directly(program)


def test_a_dataflow_is_built_and_dropped_by_the_thread_of_its_worker_alone() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow("numbers") as scope:
            numbers, _ = new_input(scope)
        with ThreadPoolExecutor(1) as other:
            with pytest.raises(BuildError, match=r"builds dataflow 'more' in another thread .*worker.call\(function\)"):
                other.submit(worker.dataflow("more").__enter__).result(10)
            with pytest.raises(BuildError, match="drops a dataflow in another thread"):
                other.submit(worker.drop_dataflow, scope.dataflow).result(10)
        assert worker.dataflows == [scope.dataflow]
        assert not numbers.is_closed

    execute_directly(program)


def test_a_step_visits_only_the_dataflows_in_which_something_is_due() -> None:
    def program(worker: Worker) -> None:
        inputs, probes = [], []
        for _ in range(3):
            with worker.dataflow() as scope:
                numbers, stream = new_input(scope)
                inputs.append(numbers)
                probes.append(stream.exchange().probe())
        worker.step_while(lambda: worker.agenda.numbers() != [])
        for epoch in range(1, 4):
            inputs[1].send(epoch)
            inputs[1].flush()
            assert worker.agenda.numbers() == [1]
            inputs[1].advance_to(epoch)
            worker.step_while(lambda epoch=epoch: probes[1].less_than(epoch))  # type: ignore[misc]
            assert worker.agenda.numbers() == []
        assert [probe.less_than(1) for probe in probes] == [True, False, True]
        worker.drop_dataflow(1)
        for numbers in inputs:
            numbers.close()
        worker.step_while(lambda: not probes[2].done())
        assert (worker.agenda.numbers(), worker.dataflows) == ([], [])

    execute_directly(program)


def test_a_step_sends_what_the_program_did_before_it_receives(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    send, receive = ThreadAllocator.send, ThreadAllocator.receive

    def sending(allocator: ThreadAllocator, peer: int, message: Any) -> None:
        if allocator.index == 0:
            called.append(type(message).__name__)
        send(allocator, peer, message)

    def receiving(allocator: ThreadAllocator) -> list[tuple[int, Any]]:
        if allocator.index == 0:
            called.append("receive")
        return receive(allocator)

    monkeypatch.setattr(ThreadAllocator, "send", sending)
    monkeypatch.setattr(ThreadAllocator, "receive", receiving)

    def program(worker: Worker) -> list[str]:
        with worker.dataflow() as scope:
            numbers, stream = new_input(scope)
            probe = stream.exchange().probe()
        numbers.advance_to(1)
        worker.step_while(lambda: probe.less_than(1))
        called.clear()
        numbers.advance_to(2)
        worker.step()
        first = called[:2]
        worker.step_while(lambda: probe.less_than(2))
        numbers.close()
        return first

    assert execute(program, Config(workers=2))[0] == ["ProgressUpdate", "receive"]
