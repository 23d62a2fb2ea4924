"""A consumer much slower than its producer does not fill the memory of either, nor of a lone worker."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.launcher.launching import Run

FLOOD = Path(__file__).parent / "scripts" / "flood.py"
BOUND = 8 << 20
ALLOWED = 24
"""Megabytes by which a process may grow: the bound, as much again on its way, and what is being handled."""
SMALL_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=0"}
"""With pages of 2 MB a process may hold tens of megabytes of empty memory, which would hide its growth."""


@pytest.fixture
def grow() -> Iterator[Callable[..., list[int]]]:
    runs: list[Run] = []

    def measure(processes: int, sender: str, shape: str, bound: int) -> list[int]:
        run = Run("run", "-n", str(processes), "--queue-bytes", str(bound), FLOOD, sender, shape, environ=SMALL_PAGES)
        runs.append(run)
        assert run.end() == 0, run.error
        grown = [int(figure) for figure in re.findall(r"grew (\d+) MB", run.output)]
        assert len(grown) == processes
        assert run.output.count("took all") == 1
        return grown

    yield measure
    for run in runs:
        run.close()


@pytest.mark.lengthy
@pytest.mark.parametrize("sender", ["source", "input"])
@pytest.mark.parametrize("processes", [1, 2])
def test_a_slow_consumer_fills_no_memory(grow: Callable[..., list[int]], processes: int, sender: str) -> None:
    assert max(grow(processes, sender, "direct", BOUND)) < ALLOWED


@pytest.mark.lengthy
def test_a_slow_consumer_behind_an_operator_that_makes_many_records_of_one_fills_no_memory(
    grow: Callable[..., list[int]],
) -> None:
    assert max(grow(2, "input", "multiply", BOUND)) < ALLOWED


@pytest.mark.slow
@pytest.mark.parametrize("sender", ["source", "input"])
@pytest.mark.parametrize("shape", ["chain", "multiply", "loop"])
@pytest.mark.parametrize("processes", [1, 2, 3])
def test_a_slow_consumer_behind_exchanges_a_multiplying_operator_or_a_loop_fills_no_memory(
    grow: Callable[..., list[int]], processes: int, shape: str, sender: str
) -> None:
    assert max(grow(processes, sender, shape, BOUND)) < ALLOWED


@pytest.mark.parametrize("shape", ["direct", pytest.param("chain", marks=pytest.mark.slow)])
def test_without_a_bound_a_slow_consumer_fills_the_memory(grow: Callable[..., list[int]], shape: str) -> None:
    assert max(grow(1, "input", shape, 1 << 30)) > 2 * ALLOWED
