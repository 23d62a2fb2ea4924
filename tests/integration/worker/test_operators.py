"""Every operator gives the same answers on one worker, on several threads, and on several processes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from tests.examples_loading import module_at
from tests.integration.agreement import lines_of_processes, lines_of_threads
from timely import Stream

SCRIPT = Path(__file__).parent / "scripts" / "operators.py"


@pytest.fixture(scope="module")
def programs() -> ModuleType:
    return module_at(SCRIPT)


@pytest.fixture(scope="module")
def expected(programs: ModuleType) -> Counter[str]:
    """The lines of one worker."""
    return lines_of_threads(programs, 1)


def test_one_worker_prints_what_can_be_computed_without_a_dataflow(
    programs: ModuleType, expected: Counter[str]
) -> None:
    assert {line.split(":")[0] for line in expected} == {*programs.PROGRAMS, *programs.APART}
    for epoch in range(programs.EPOCHS):
        size = programs.SIZE + epoch
        for name in ("count", "unary_notify", "unary_frontier"):
            assert expected[f"{name}: ({epoch},) {size}"] == 1
        assert expected[f"accumulate: ({epoch},) {sum(range(size))}"] == 1
        for key in range(7):
            line = f"({epoch},) ({key}, {sum(range(key, size, 7))})"
            for name in ("aggregate", "combine", "combine_everywhere"):
                assert expected[f"{name}: {line}"] == 1
        total = [len(range(rest, size, 4)) for rest in range(4)]
        for name in ("all_reduce", "all_reduce_by_tree"):
            assert expected[f"{name}: ({epoch},) array({total})"] == 1
    assert expected["log_stream: ('numbers', 'watched')"] == 1
    assert expected["barrier: (0,) [True, True, True, True, True]"] == 1
    for time in (2, 5, 9):
        assert expected[f"unordered_input: ({time},) {10 + time}"] == 1


@pytest.mark.parametrize("workers", [2, 3])
def test_several_threads_print_the_lines_of_one_worker(
    programs: ModuleType, expected: Counter[str], workers: int
) -> None:
    assert lines_of_threads(programs, workers) == expected


@pytest.mark.parametrize(
    ("processes", "workers"),
    [(2, 1), pytest.param(2, 2, marks=pytest.mark.slow), pytest.param(3, 1, marks=pytest.mark.slow)],
)
def test_several_processes_print_the_lines_of_one_worker(expected: Counter[str], processes: int, workers: int) -> None:
    assert lines_of_processes(SCRIPT, processes, workers) == expected


def test_no_operator_of_streams_is_forgotten(programs: ModuleType) -> None:
    text = SCRIPT.read_text()
    apart = {"capture_into", "probe", "inspect", "inspect_time"}
    methods = {name for name, value in vars(Stream).items() if callable(value) and not name.startswith("_")}
    forgotten = {name for name in methods - apart if f".{name}(" not in text and name not in programs.PROGRAMS}
    assert not forgotten, f"add a program that uses each of {forgotten} to {SCRIPT}"
