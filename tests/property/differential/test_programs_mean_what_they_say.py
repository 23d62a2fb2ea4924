"""At every epoch the output of a random program is what the program, evaluated from scratch, makes of its inputs."""

from __future__ import annotations

import os
from collections import Counter
from random import Random

import pytest
from hypothesis import HealthCheck, given, note, settings

from differential import Output, new_input
from differential.operators.input import InputSession
from tests.oracle.programs import Pairs, build, meaning
from tests.strategies_programs import INPUTS, Case, cases
from timely import Config, Worker
from timely.communication.simulated import SimulatedNetwork

STEPS = 200_000
SOAK = int(os.environ.get("SOAK_PROGRAMS", "0"))


def run(case: Case) -> list[Pairs]:
    """Return the output after each epoch, from several workers in one thread and a network of arbitrary delays."""
    network = SimulatedNetwork(case.workers, case.seed)
    config = Config(workers=case.workers, spill_above=100 if case.seed % 2 else None)
    workers = [Worker(allocator, config) for allocator in network.allocators]
    parts = [assemble(worker, case) for worker in workers]
    random = Random(case.seed)
    output = parts[0][1]
    states: list[Pairs] = []
    state: Pairs = Counter()
    present: Counter[tuple[int, tuple[int, int]]] = Counter()
    for first in range(0, len(case.epochs), case.together):
        last = min(first + case.together, len(case.epochs))
        for epoch in range(first, last):
            for edit in case.epochs[epoch]:
                diff = 1 if edit.insert or not present[edit.input, edit.pair] else -1
                present[edit.input, edit.pair] += diff
                parts[edit.worker][0][edit.input].update(*edit.pair, diff=diff)
            for sessions, _ in parts:
                for session in sessions:
                    session.advance_to(epoch + 1)
        drive(workers, network, random, lambda reached=last: output.less_than(reached))
        changes = output.changes()
        for epoch in range(first, last):
            for record, time, diff in changes:
                if time == (epoch,):
                    state[record] += diff
            states.append(Counter({record: count for record, count in state.items() if count}))
    for sessions, _ in parts:
        for session in sessions:
            session.close()
    drive(workers, network, random, lambda: any(worker.dataflows for worker in workers))
    return states


def assemble(worker: Worker, case: Case) -> tuple[list[InputSession], Output]:
    with worker.dataflow() as scope:
        sessions, collections = zip(*(new_input(scope) for _ in range(INPUTS)))
        output = build(case.program, collections).output()
    return list(sessions), output


def drive(workers: list[Worker], network: SimulatedNetwork, random: Random, unfinished) -> None:  # type: ignore[no-untyped-def]
    """Step workers and deliver messages in a random order as long as `unfinished()`."""
    for _ in range(STEPS):
        if not unfinished():
            return
        if network.pending and random.random() < 0.7:
            network.deliver_one()
        else:
            random.choice(workers).step()
    explanations = "\n".join(f"worker {worker.index}: {worker.explain()}" for worker in workers)
    raise AssertionError(f"not finished after {STEPS} steps\n{explanations}")


def expected(case: Case) -> list[Pairs]:
    """Return what the program makes of its inputs after each epoch."""
    inputs: list[Pairs] = [Counter() for _ in range(INPUTS)]
    states = []
    for edits in case.epochs:
        for edit in edits:
            inputs[edit.input][edit.pair] += 1 if edit.insert or not inputs[edit.input][edit.pair] else -1
        clean = [Counter({pair: count for pair, count in one.items() if count}) for one in inputs]
        states.append(meaning(case.program, clean))
    return states


def check(case: Case) -> None:
    note(str(case.program))
    assert run(case) == expected(case)


QUICK = settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@pytest.mark.timeout(300)
@given(case=cases())
@QUICK
def test_every_epoch_of_a_random_program_is_right(case: Case) -> None:
    check(case)


@pytest.mark.slow
@pytest.mark.timeout(0)
@given(case=cases(depth=6))
@settings(QUICK, max_examples=max(SOAK, 2000))
def test_every_epoch_of_many_larger_programs_is_right(case: Case) -> None:
    check(case)
