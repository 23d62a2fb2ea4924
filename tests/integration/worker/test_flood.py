"""A consumer much slower than its producer does not fill the memory of either, nor of a lone worker."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.launcher.launching import Run

FLOOD = Path(__file__).parent / "scripts" / "flood.py"
BOUND = 8 << 20
ALLOWED = 40
"""Megabytes by which a process may grow: twice the bound, what is being handled, and what the allocator keeps."""


@pytest.fixture
def grow() -> Iterator[Callable[..., list[int]]]:
    runs: list[Run] = []

    def measure(processes: int, mode: str, bound: int) -> list[int]:
        run = Run("run", "-n", str(processes), "--queue-bytes", str(bound), FLOOD, mode)
        runs.append(run)
        assert run.end(30) == 0, run.error
        grown = [int(figure) for figure in re.findall(r"grew (\d+) MB", run.output)]
        assert len(grown) == processes
        return grown

    yield measure
    for run in runs:
        run.close()


@pytest.mark.parametrize("mode", ["source", "input"])
@pytest.mark.parametrize("processes", [1, 2])
def test_a_slow_consumer_fills_no_memory(grow: Callable[..., list[int]], processes: int, mode: str) -> None:
    assert max(grow(processes, mode, BOUND)) < ALLOWED


def test_without_a_bound_it_would(grow: Callable[..., list[int]]) -> None:
    assert max(grow(1, "input", 1 << 30)) > 2 * ALLOWED
