"""Barrier: an empty loop of notifications, in which only progress is sent.

Each worker moves to the next time only when no worker can return to the current one. The figure is the time from one
notification to the next.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness import Case, Figures, Series, check
from timely import Capability, InputPort, OutputPort, Pipeline, Worker, execute

MEDIAN, P95, P99 = "median us", "p95 us", "p99 us"
EACH = "us"
WARM_UP_ROUNDS = 200


def _case(name: str, processes: int, workers: int, rounds: int, limit: float) -> Case:
    return Case(
        f"barrier {name}",
        "barrier",
        {"rounds": rounds},
        processes,
        workers,
        limits={MEDIAN: limit},
    )


CASES = [
    _case("1 worker", 1, 1, 20_000, 25),
    _case("2 threads", 1, 2, 5_000, 150),
    _case("2 processes", 2, 1, 5_000, 150),
]


def measure(rounds: int) -> Figures:
    """Return the figures of the first worker of this process, over that many rounds."""
    median, p95, p99 = map(float, np.percentile(series(rounds)[EACH], (50, 95, 99)))
    return {MEDIAN: median, P95: p95, P99: p99}


def series(rounds: int) -> Series:
    """Return the microseconds of each of that many rounds on the first worker of this process."""
    turns = WARM_UP_ROUNDS + rounds + 1
    marks, *_ = execute(lambda worker: _program(worker, turns))
    check(len(marks) == turns, f"{len(marks)} notifications")
    return {EACH: (np.diff(marks)[WARM_UP_ROUNDS:] / 1000).tolist()}


def _program(worker: Worker, rounds: int) -> list[int]:
    """Return the time of each notification."""
    marks = build(worker, rounds)
    while worker.step_or_park():
        pass
    return marks


def build(worker: Worker, rounds: int) -> list[int]:
    """Build the loop; return the list to which each notification will append its time."""
    marks: list[int] = []

    def barrier(capability: Capability) -> Callable[[InputPort, OutputPort], None]:
        def logic(input: InputPort, _: Any) -> None:
            if len(marks) < rounds and not input.frontier.less_equal(capability.time):
                marks.append(clock.perf_counter_ns())
                if len(marks) < rounds:
                    capability.downgrade((len(marks),))
                else:
                    capability.drop()

        return logic

    with worker.dataflow("barrier") as scope:
        handle, again = scope.feedback()
        again.unary_frontier(Pipeline(), barrier, name="barrier").connect_loop(handle)
    return marks
