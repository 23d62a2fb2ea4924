"""How many operators one change activates, how many kernels it calls, and how many arrays these return: what a change
costs, without a clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from benchmarks import bfs, degrees
from benchmarks.graphs import RandomGraph
from benchmarks.incremental import Session
from differential import Collection
from differential.graphs import cyclic_edges
from differential.kernels import compile as kernels
from timely import Worker, execute_directly
from timely.observe.events import ScheduleStopped

CHANGES = 64


def counted(definition: Callable[[Collection], Collection]) -> tuple[Counter[str], int, int]:
    """Return how often each kernel is called, how many arrays with items are returned, and how many activations there
    are, in `CHANGES` changes."""
    calls: Counter[str] = Counter()
    arrays = 0
    activations: list[ScheduleStopped] = []

    def counting(name: str, loaded: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            nonlocal arrays
            calls[name] += 1
            result = loaded(*arguments)
            results = result if isinstance(result, tuple) else (result,)
            arrays += sum(isinstance(each, np.ndarray) and each.size > 0 for each in results)
            return result

        return call

    def program(worker: Worker) -> None:
        nonlocal arrays
        session = Session(worker, definition, RandomGraph(2_000, 10_000))
        session.load()
        stop = worker.log.listen(activations.extend, ScheduleStopped)
        for _ in range(CHANGES):
            session.change(1)
        worker.log.flush()
        calls.clear()
        activations.clear()
        arrays = 0
        for _ in range(CHANGES):
            session.change(1)
        worker.log.flush()
        stop()
        session.close()

    former = [(kernel, kernel.prepare()) for kernel in kernels._KERNELS]
    for kernel, loaded in former:
        kernel.__setstate__((counting(kernel.__name__, loaded), (), {}, kernel.__dict__))  # type: ignore[attr-defined]
    try:
        execute_directly(program)
    finally:
        for kernel, loaded in former:
            kernel.__setstate__((loaded, (), {}, kernel.__dict__))  # type: ignore[attr-defined]
    return calls, arrays, len(activations)


@pytest.mark.timeout(200)
@pytest.mark.composed
@pytest.mark.parametrize(
    ("definition", "most_calls", "most_arrays", "most_activations"),
    [(degrees.distribution, 7.1, 12.7, 3.9), (bfs.definition, 12.5, 21.2, 7.1), (cyclic_edges, 87.3, 130.5, 38.7)],
)
def test_one_change_activates_few_operators_and_calls_few_kernels_which_return_few_arrays(
    definition: Callable[[Collection], Collection], most_calls: float, most_arrays: float, most_activations: float
) -> None:
    calls, arrays, activations = counted(definition)
    assert activations / CHANGES <= most_activations
    assert calls.total() / CHANGES <= most_calls, calls
    assert arrays / CHANGES <= most_arrays, calls
