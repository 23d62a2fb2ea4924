"""AllReduce: add up one vector of each worker, for all workers, data-parallel and along a tree.

Each round waits for the one before. The bytes are those that the first worker sends in a round; in a tree it sends the
most.
"""

from __future__ import annotations

import time as clock
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.harness import Case, Figures, Series, check
from timely import Stream, Worker, execute, new_input

SIZE = "size"
METHODS = {"data-parallel": Stream.all_reduce, "tree": Stream.all_reduce_by_tree}
WARM_UP_ROUNDS = 3


def _case(name: str, processes: int, workers: int, size: int, rounds: int, quick: bool = False) -> Case:
    return Case(f"allreduce {name}", "allreduce", {"size": size, "rounds": rounds}, processes, workers, quick)


CASES = [
    _case("1 worker, 1 M", 1, 1, 1_000_000, 10),
    _case("2 threads, 1 M", 1, 2, 1_000_000, 10, quick=True),
    _case("4 threads, 1 M", 1, 4, 1_000_000, 10),
    _case("2 processes, 1 M", 2, 1, 1_000_000, 10, quick=True),
    _case("2 processes, 1 k", 2, 1, 1_000, 200),
]


def measure(size: int, rounds: int) -> Figures:
    """Return the figures of the first worker of this process."""
    return execute(lambda worker: _program(worker, size, rounds))[0]


def series(sizes: Sequence[int], numbers: int, most_rounds: int) -> Series:
    """Return the figures for each size, in as many rounds as add up about `numbers`, from 10 to `most_rounds`."""
    measured = {size: measure(size, min(max(numbers // size, 10), most_rounds)) for size in sizes}
    names = [f"{method} {unit}" for method in METHODS for unit in ("ms", "bytes")]
    return {SIZE: [*map(float, measured)]} | {name: [each[name] for each in measured.values()] for name in names}


def _program(worker: Worker, size: int, rounds: int) -> Figures:
    figures: Figures = {}
    for name, method in METHODS.items():
        seconds, sent = _measured(worker, method, size, rounds)
        figures[f"{name} ms"] = 1e3 * seconds
        figures[f"{name} bytes"] = sent
    return figures


def _measured(worker: Worker, method: Any, size: int, rounds: int) -> tuple[float, float]:
    """Return the median seconds of a round and the bytes sent in one."""
    received: list[Any] = []
    with worker.dataflow("allreduce") as scope:
        vectors, stream = new_input(scope)
        method(stream).inspect(received.append)
    own = np.arange(size) * (worker.index + 1.0)
    expected = np.arange(size) * (worker.peers * (worker.peers + 1) / 2)
    times: list[float] = []
    before = 0
    for turn in range(WARM_UP_ROUNDS + rounds):
        if turn == WARM_UP_ROUNDS:
            before = worker.allocator.statistics().data_bytes
        begun = clock.perf_counter()
        vectors.send_batch([own])
        vectors.advance_to(turn + 1)
        worker.step_while(lambda: not received)
        times.append(clock.perf_counter() - begun)
        check(np.array_equal(received.pop(), expected), "the total is wrong")
    sent = worker.allocator.statistics().data_bytes - before
    vectors.close()
    return float(np.median(times[WARM_UP_ROUNDS:])), sent / rounds
