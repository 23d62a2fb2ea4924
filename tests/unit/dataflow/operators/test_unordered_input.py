"""Tests of `new_unordered_input`."""

from __future__ import annotations

import signal
from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest

from tests.unit.dataflow.running import on_workers
from timely import Config, Time, Worker, execute, execute_directly, new_unordered_input
from timely.errors import CapabilityError, DataflowFailed

TIMES = 6


@on_workers
@pytest.mark.parametrize("seed", range(4))
def test_times_are_complete_once_their_capabilities_are_dropped_in_any_order(workers: int, seed: int) -> None:
    def program(worker: Worker) -> tuple[Counter[int], list[tuple[Time, int]]]:
        rng = Random(f"{seed} {worker.index}")
        sent: Counter[int] = Counter()
        counted: list[tuple[Time, int]] = []
        with worker.dataflow() as scope:
            numbers, stream = new_unordered_input(scope)
            counts = stream.exchange().count().inspect_time(lambda time, count: counted.append((time, count)))
            probe = counts.probe()
        held = {time: numbers.capability.delayed((time,)) for time in range(TIMES)}
        numbers.capability.drop()
        while held:
            time = rng.choice(list(held))
            if rng.random() < 0.4:
                held.pop(time).drop()
                worker.step()
            else:
                assert probe.less_equal(time)
                numbers.send(held[time], np.arange(size := rng.randrange(5)))
                numbers.send(held[time], 7)
                sent[time] += size + 1
        worker.step_while(lambda: not probe.done())
        assert len({time for time, _ in counted}) == len(counted)
        return sent, counted

    results = execute(program, Config(workers=workers))
    found: Counter[int] = Counter()
    for _, counted in results:
        for (time,), count in counted:
            found[time] += count
    assert found == sum((sent for sent, _ in results), Counter())


def test_a_value_that_is_not_a_capability_of_the_input_is_refused() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = new_unordered_input(scope)
            other, _ = new_unordered_input(scope)
            probe = stream.probe()
        with numbers, other:
            with pytest.raises(CapabilityError, match=r"is given a batch with a capability, .* not with 0"):
                numbers.send(0, 1)  # type: ignore[arg-type]
            with pytest.raises(CapabilityError, match="does not permit sending on"):
                numbers.send(other.capability, 1)
        worker.step_while(lambda: not probe.done())

    execute_directly(program)


def test_nothing_can_be_sent_before_the_dataflow_is_complete_or_after_the_capability_is_dropped() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = new_unordered_input(scope, name="late")
            probe = stream.probe()
            with pytest.raises(CapabilityError, match="once the dataflow is complete"):
                _ = numbers.capability
        with numbers:
            right = numbers.capability
            later = right.delayed((3,))
            right.downgrade((1,))
            numbers.send(right, 1)
        worker.step_while(lambda: not probe.done())
        for gone in (right, later):
            with pytest.raises(CapabilityError, match="was dropped"):
                numbers.send(gone, 1)

    execute_directly(program)


def test_open_inputs_are_closed_when_the_program_ends() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = new_unordered_input(scope)
            stream.exchange().probe()
        numbers.capability.delayed((2,))

    execute(program, Config(workers=2))


def test_many_bytes_sent_at_once_congest_the_input_until_the_worker_steps() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = new_unordered_input(scope)
            stream.probe()
        numbers.send(numbers.capability, np.arange(10_000))
        assert numbers.is_congested
        worker.step()
        assert not numbers.is_congested

    execute(program, Config(queue_bytes=1 << 16))


@pytest.mark.composed
def test_an_interrupt_inside_of_a_send_ends_the_dataflow() -> None:
    def interrupt(numbers: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return numbers

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = new_unordered_input(scope)
            stream.map(interrupt).probe()
        with pytest.raises(KeyboardInterrupt):
            numbers.send(numbers.capability, np.arange(3))
        with pytest.raises(DataflowFailed, match="has lost what it was computing when it was interrupted"):
            numbers.send(numbers.capability, 7)

    execute_directly(program)
