"""How a run ends in which workers call `sys.exit`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.launcher.conftest import Start

EXITS = """
import sys, time
from timely import execute, new_input

who, status, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])

def program(worker):
    with worker.dataflow() as scope:
        numbers, stream = new_input(scope)
        stream.exchange().probe()
    if who in ("all", str(worker.index)):
        if who != "all" and sys.argv[4:] != ["open"]:
            numbers.close()
        sys.exit(status)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        worker.step_or_park(0.1)

execute(program)
print("done")
"""
SHAPES = [("-w", "2"), ("-n", "2"), ("-n", "2", "-w", "2")]


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(EXITS)
    return path


@pytest.mark.lengthy
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("who", ["0", "1"])
def test_a_worker_that_exits_while_others_go_on_is_named_and_fails_the_run(
    start: Start, script: Path, shape: tuple[str, ...], who: str
) -> None:
    run = start("run", *shape, script, who, "0", "50")
    assert run.end() == 1
    assert f"timely: worker {who} called sys.exit(0) before worker" in run.error
    assert "return from the program instead" in run.error
    assert "Traceback" not in run.error


@pytest.mark.lengthy
@pytest.mark.parametrize("shape", SHAPES)
def test_a_run_in_which_all_workers_exit_ends_normally(start: Start, script: Path, shape: tuple[str, ...]) -> None:
    run = start("run", *shape, script, "all", "0", "50")
    assert (run.end(), run.error) == (0, "")


@pytest.mark.lengthy
@pytest.mark.parametrize("shape", SHAPES)
def test_a_worker_that_exits_when_the_others_are_about_to_end_is_waited_for(
    start: Start, script: Path, shape: tuple[str, ...]
) -> None:
    run = start("run", *shape, script, "0", "0", "0.2")
    assert (run.end(), run.error) == (0, "")


@pytest.mark.lengthy
@pytest.mark.parametrize("shape", SHAPES)
def test_a_worker_that_exits_without_closing_its_inputs_fails_the_run(
    start: Start, script: Path, shape: tuple[str, ...]
) -> None:
    run = start("run", *shape, script, "1", "0", "0.2", "open")
    assert run.end() == 1
    assert "timely: worker 1 called sys.exit(0) without closing its inputs, so the results lack its share" in run.error
    assert "Traceback" not in run.error


@pytest.mark.lengthy
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("who", ["1", "all"])
@pytest.mark.parametrize("status", [3, 5])
def test_the_status_with_which_a_worker_exits_is_that_of_the_run(
    start: Start, script: Path, shape: tuple[str, ...], who: str, status: int
) -> None:
    run = start("run", *shape, script, who, str(status), "50")
    assert run.end() == status
    if "-n" in shape:
        assert f"ended with status {status}" in run.error


EXITS_IN_AN_OPERATOR = """
import sys
from timely import execute, new_input

def program(worker):
    with worker.dataflow() as scope:
        numbers, stream = new_input(scope)
        stream.map(lambda number: sys.exit(0))
    if worker.index == 0:
        numbers.send(1)
    numbers.close()
    while worker.step_or_park():
        pass

execute(program)
"""


@pytest.mark.lengthy
@pytest.mark.parametrize("shape", SHAPES)
def test_an_operator_that_exits_fails_the_run_even_if_all_others_end(
    start: Start, tmp_path: Path, shape: tuple[str, ...]
) -> None:
    script = tmp_path / "program.py"
    script.write_text(EXITS_IN_AN_OPERATOR)
    run = start("run", *shape, script)
    assert run.end() == 1
    assert "timely: worker 0 called sys.exit(0) before worker" in run.error
