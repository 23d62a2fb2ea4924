"""How many kernels one change calls, and how many arrays these return: what a change costs, without a clock."""

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

CHANGES = 64


def counted(definition: Callable[[Collection], Collection]) -> tuple[Counter[str], int]:
    """Return how often each kernel is called, and how many arrays with items are returned, in `CHANGES` changes."""
    calls: Counter[str] = Counter()
    arrays = 0

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
        for _ in range(CHANGES):
            session.change(1)
        calls.clear()
        arrays = 0
        for _ in range(CHANGES):
            session.change(1)
        session.close()

    former = [(kernel, kernel.prepare()) for kernel in kernels._KERNELS]
    for kernel, loaded in former:
        kernel.__setstate__((counting(kernel.__name__, loaded), (), {}, kernel.__dict__))  # type: ignore[attr-defined]
    try:
        execute_directly(program)
    finally:
        for kernel, loaded in former:
            kernel.__setstate__((loaded, (), {}, kernel.__dict__))  # type: ignore[attr-defined]
    return calls, arrays


@pytest.mark.timeout(200)
@pytest.mark.composed
@pytest.mark.parametrize(
    ("definition", "most_calls", "most_arrays"),
    [(degrees.distribution, 7.1, 12.7), (bfs.definition, 12.5, 21.2), (cyclic_edges, 87.3, 130.5)],
)
def test_one_change_calls_few_kernels_which_return_few_arrays(
    definition: Callable[[Collection], Collection], most_calls: float, most_arrays: float
) -> None:
    calls, arrays = counted(definition)
    assert calls.total() / CHANGES <= most_calls, calls
    assert arrays / CHANGES <= most_arrays, calls
