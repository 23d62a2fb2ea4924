"""Activators: immediate and delayed, used by the operator itself and by other threads."""

from __future__ import annotations

import sys
import time as clock
from collections.abc import Callable
from itertools import pairwise
from threading import Thread

import pytest

from tests.unit.dataflow.running import on_workers
from timely import (
    Activator,
    Capability,
    Config,
    OperatorBuilder,
    OutputPort,
    Worker,
    execute,
    execute_directly,
    new_input,
    source,
)
from timely.errors import StalledError

Logic = Callable[[OutputPort], None]


@on_workers
def test_a_source_that_activates_itself_later_runs_then(workers: int) -> None:
    def program(worker: Worker) -> list[float]:
        ran: list[float] = []

        def constructor(capability: Capability, activate: Activator) -> Logic:
            def logic(_: OutputPort) -> None:
                ran.append(clock.monotonic())
                if len(ran) < 4:
                    activate.activate_after(0.02)
                else:
                    capability.drop()

            return logic

        with worker.dataflow() as scope:
            probe = source(scope, constructor).exchange().probe()
        worker.step_while(lambda: not probe.done())
        return ran

    for ran in execute(program, Config(workers=workers)):
        assert len(ran) == 4
        assert all(later - earlier >= 0.02 for earlier, later in pairwise(ran))


def test_a_parked_worker_sleeps_until_the_first_delayed_activation_and_no_longer() -> None:
    def program(worker: Worker) -> tuple[float, list[str]]:
        called: list[str] = []
        with worker.dataflow() as scope:
            new_input(scope)[1].probe()
        while worker.dataflows[0].step():
            pass
        begun = clock.monotonic()
        worker.call_after(0.04, lambda: called.append("second"))
        worker.call_after(0.02, lambda: called.append("first"))
        worker.call_after(60, lambda: called.append("never"))
        while len(called) < 2:
            assert worker.step_or_park(30)
        return clock.monotonic() - begun, called

    elapsed, called = execute_directly(program)
    assert called == ["first", "second"]
    assert 0.04 <= elapsed < 30


def test_a_call_requested_within_a_call_is_made_in_the_next_step() -> None:
    def program(worker: Worker) -> list[int]:
        called: list[int] = []

        def call() -> None:
            called.append(1)
            if len(called) < 100:
                worker.call(call)

        with worker.dataflow() as scope:
            new_input(scope)[1].probe()
        worker.call(call)
        made = []
        while not made or made[-1] < 3:
            worker.step_or_park(30)
            made.append(len(called))
        return made

    assert execute_directly(program) == [1, 2, 3]


def test_activations_of_one_instant_are_one_run() -> None:
    def program(worker: Worker) -> int:
        ran: list[int] = []

        def constructor(capability: Capability, activate: Activator) -> Logic:
            def logic(_: OutputPort) -> None:
                ran.append(1)
                if len(ran) == 1:
                    for _ in range(5):
                        activate.activate_after(0)
                else:
                    capability.drop()

            return logic

        with worker.dataflow() as scope:
            source(scope, constructor).probe()
        while worker.step_or_park():
            pass
        return len(ran)

    assert execute_directly(program) == 2


@on_workers
def test_a_source_fed_by_another_thread_is_woken_by_it_now_and_later(workers: int) -> None:
    def program(worker: Worker) -> list[int]:
        received: list[int] = []
        given: list[int] = []
        threads: list[Thread] = []

        def constructor(capability: Capability, activate: Activator) -> Logic:
            def outside() -> None:
                for number in (1, 2, 0):
                    clock.sleep(0.005)
                    given.append(number)
                    activate.activate_after(0.005) if number == 2 else activate()

            def logic(output: OutputPort) -> None:
                if not threads:
                    threads.append(Thread(target=outside))
                    threads[0].start()
                while given:
                    number = given.pop(0)
                    if number:
                        output.give(capability, [number])
                    else:
                        capability.drop()

            return logic

        with worker.dataflow() as scope:
            probe = source(scope, constructor).inspect(received.append).probe()
        worker.step_while(lambda: not probe.done())
        threads[0].join()
        return received

    assert execute(program, Config(workers=workers)) == [[1, 2]] * workers


def test_a_delayed_activation_of_a_dropped_dataflow_does_nothing() -> None:
    def program(worker: Worker) -> list[int]:
        ran: list[int] = []

        def constructor(capability: Capability, activate: Activator) -> Logic:
            def logic(output: OutputPort) -> None:
                assert capability.output is output
                ran.append(1)
                activate.activate_after(0)

            return logic

        with worker.dataflow() as scope:
            source(scope, constructor).probe()
        worker.step()
        worker.drop_dataflow(0)
        for _ in range(3):
            worker.step()
        return ran

    assert execute_directly(program) == [1]


def test_a_source_that_dropped_its_capability_delays_nothing() -> None:
    def program(worker: Worker) -> None:
        def constructor(capability: Capability, _: Activator) -> Logic:
            return lambda _: capability.drop()

        with worker.dataflow() as scope:
            _, numbers = new_input(scope)
            probe = source(scope, constructor).concat(numbers).probe()
        worker.step_while(lambda: not probe.done())

    with pytest.raises(StalledError):
        execute_directly(program)


def test_an_activation_before_the_dataflow_is_complete_is_not_lost() -> None:
    def program(worker: Worker) -> int:
        ran = 0

        def constructor(capabilities: list[Capability]) -> Callable[[], None]:
            def logic() -> None:
                nonlocal ran
                ran += 1
                if ran == 3:
                    capabilities[0].drop()

            return logic

        with worker.dataflow() as scope:
            scope.to_stream([1])
            builder = OperatorBuilder(scope, "bell")
            _, stream = builder.add_output(initial=True)
            builder.build(constructor)
            ring = worker.activator(builder.operator)
            ring()
            worker.step()
            probe = stream.probe()
        for _ in range(4):
            worker.step()
            ring()
        worker.step_while(lambda: not probe.done())
        return ran

    assert execute_directly(program) == 3


def idle(kept: list[Activator], ran: list[int]) -> Callable[[Capability, Activator], Logic]:
    """Return the constructor of a source that counts its runs, after the first one, and sends nothing."""

    def constructor(capability: Capability, activate: Activator) -> Logic:
        capability.drop()
        kept.append(activate)
        return lambda output: ran.append(len(ran))

    return constructor


def test_activations_between_two_steps_are_one_request() -> None:
    def program(worker: Worker) -> None:
        kept: list[Activator] = []
        ran: list[int] = []
        with worker.dataflow() as scope:
            source(scope, idle(kept, ran))
            _open, _ = new_input(scope)
        worker.step()
        ran.clear()
        for expected in ([0], [0, 1]):
            for _ in range(10):
                kept[0]()
            assert len(worker._requests.calls) == 1
            worker.step()
            worker.step()
            assert ran == expected

    execute_directly(program)


def test_no_activation_of_another_thread_is_lost() -> None:
    rounds = 2000
    asked: list[int] = [0]
    seen: list[int] = [0]
    kept: list[Activator] = []

    def constructor(capability: Capability, activate: Activator) -> Logic:
        kept.append(activate)

        def logic(_: OutputPort) -> None:
            seen[0] = asked[0]
            if seen[0] == rounds:
                capability.drop()

        return logic

    def ask() -> None:
        for number in range(1, rounds + 1):
            asked[0] = number
            kept[0]()

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            probe = source(scope, constructor).probe()
        thread = Thread(target=ask)
        thread.start()
        worker.step_while(lambda: not probe.done())
        thread.join(10)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        execute_directly(program)
    finally:
        sys.setswitchinterval(before)
    assert seen == [rounds]
