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
    """Measure both methods in turn, so that neither is the first to use its memory."""
    measured = {name: _Method(worker, method, size) for name, method in METHODS.items()}
    for turn in range(WARM_UP_ROUNDS + rounds):
        for method in measured.values():
            method.round(is_counted=turn >= WARM_UP_ROUNDS)
    figures: Figures = {}
    for name, method in measured.items():
        method.vectors.close()
        figures[f"{name} ms"] = 1e3 * float(np.median(method.seconds))
        figures[f"{name} bytes"] = method.sent / rounds
    return figures


class _Method:
    """A dataflow of one method, the seconds of its rounds, and the bytes that this worker sent in them."""

    def __init__(self, worker: Worker, method: Any, size: int) -> None:
        self._worker = worker
        self._received: list[Any] = []
        with worker.dataflow("allreduce") as scope:
            self.vectors, stream = new_input(scope)
            method(stream).inspect(self._received.append)
        self._own = np.arange(size) * (worker.index + 1.0)
        self._expected = np.arange(size) * (worker.peers * (worker.peers + 1) / 2)
        self.seconds: list[float] = []
        self.sent = 0

    def round(self, is_counted: bool) -> None:
        """Add up one vector of each worker."""
        worker = self._worker
        before, begun = worker.allocator.data_bytes, clock.perf_counter()
        self.vectors.send_batch([self._own])
        self.vectors.advance_to(self.vectors.epoch + 1)
        worker.step_while(lambda: not self._received)
        seconds = clock.perf_counter() - begun
        check(np.array_equal(self._received.pop(), self._expected), "the total is wrong")
        if is_counted:
            self.seconds.append(seconds)
            self.sent += worker.allocator.data_bytes - before
