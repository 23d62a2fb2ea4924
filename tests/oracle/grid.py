"""Run a program over collections at arbitrary times, on workers joined by a simulated network, and look at every time.

Updates are inserted in the order of their times, in pieces. In between, the sessions advance as far as the updates to
come permit, and the workers step. The output is compared with the meaning of the program at every time of the smallest
grid that contains all times of the updates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import product
from random import Random
from typing import Any

import pytest

from benchmarks.simulated import SimulatedNetwork
from differential import Collection, new_input
from timely import Config, Worker
from timely.order import Time, less_equal, meet

Record = tuple[Any, ...]
Update = tuple[Record, Time, int]
Multiset = Counter[Record]
Program = Callable[..., Collection]

STEPS = 100_000

on_workers = pytest.mark.parametrize("workers", [1, 3])
"""The same test with one worker and with three."""


def run(program: Program, *inputs: Sequence[Update], workers: int = 1, outer: int = 1, seed: int = 0) -> list[Update]:
    """Return the changes of `program(*collections)`, where collection i has the updates `inputs[i]`."""
    network = SimulatedNetwork(workers, seed)
    everybody = [Worker(allocator, Config(workers=workers)) for allocator in network.allocators]
    parts = []
    for worker in everybody:
        with worker.dataflow(outer=outer) as scope:
            sessions, collections = zip(*(new_input(scope) for _ in inputs))
            parts.append((sessions, program(*collections).output(signed=True)))
    random = Random(seed)

    def step() -> None:
        if network.pending and random.random() < 0.6:
            network.deliver_one()
        else:
            random.choice(everybody).step()

    updates = sorted(((time, number, record, diff) for number, one in enumerate(inputs) for record, time, diff in one))
    for position, (time, number, record, diff) in enumerate(updates):
        least = reduce(meet, (update[0] for update in updates[position:]))
        for sessions, _ in parts:
            for session in sessions:
                session.advance_to(least)
        random.choice(parts)[0][number].update_at(*record, time=time, diff=diff)
        for _ in range(random.choice((0, 0, 3, 30))):
            step()
    for sessions, _ in parts:
        for session in sessions:
            session.close()
    for _ in range(STEPS):
        if not any(worker.dataflows for worker in everybody):
            return parts[0][1].changes()
        step()
    raise AssertionError("\n".join(worker.explain() for worker in everybody))


def contents(updates: Sequence[Update], time: Time) -> Multiset:
    """Return the accumulation of updates at a time."""
    total: Multiset = Counter()
    for record, when, diff in updates:
        if less_equal(when, time):
            total[record] += diff
    return Counter({record: count for record, count in total.items() if count})


def grid(*inputs: Sequence[Update]) -> list[Time]:
    """Return the times of the smallest grid that contains the times of all updates."""
    times = [time for one in inputs for _, time, _ in one]
    return list(product(*(sorted(set(coordinate)) for coordinate in zip(*times)))) if times else []


def check(
    program: Program,
    meaning: Callable[..., Any],
    *inputs: Sequence[Update],
    workers: int = 1,
    outer: int = 1,
    seed: int = 0,
) -> None:
    """Assert that at every time the program's output is the `meaning` of the contents of its inputs."""
    changes = run(program, *inputs, workers=workers, outer=outer, seed=seed)
    for time in grid(*inputs):
        expected = Counter(meaning(*(contents(one, time) for one in inputs)))
        assert contents(changes, time) == Counter({record: n for record, n in expected.items() if n}), time
