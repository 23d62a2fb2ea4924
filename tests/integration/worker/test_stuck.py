"""Dataflows that do not finish, on one worker, on threads and on real processes: what is reported, and when."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time as clock
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.launcher.launching import ROOT, Run

STUCK = Path(__file__).parent / "scripts" / "stuck.py"
LINES = {line.strip(): number for number, line in enumerate(STUCK.read_text().splitlines(), start=1)}
RETAINED = LINES["kept.append(right.retain())"]
INPUT = LINES['numbers, stream = new_input(scope, name="numbers")']

Start = Callable[..., Run]
slow = pytest.mark.slow
clusters = pytest.mark.parametrize(
    ("processes", "workers"),
    [pytest.param(1, 1, marks=slow), pytest.param(1, 2, marks=slow), (2, 1)],
)


@pytest.fixture
def start() -> Iterator[Start]:
    runs: list[Run] = []

    def begin(*arguments: str | Path) -> Run:
        runs.append(Run("run", *arguments))
        return runs[-1]

    yield begin
    for run in runs:
        run.close()


def options(processes: int, workers: int) -> tuple[str, ...]:
    """Return the options of `timely run` for this many processes of this many workers."""
    return "-n", str(processes), "-w", str(workers)


def until_reported(run: Run, *parts: str, times: int = 1, seconds: float = 40.0) -> str:
    """Wait until all parts are on stderr this many times; return all of stderr."""
    end = clock.monotonic() + seconds
    while missing := [part for part in parts if run.error.count(part) < times]:
        assert clock.monotonic() < end, f"{missing} not reported in {seconds} s:\n{run.error}"
        assert run.process.poll() is None, f"ended:\n{run.error}"
        clock.sleep(0.02)
    return run.error


def interrupt(run: Run) -> None:
    """End the run as Ctrl-C does."""
    os.killpg(run.process.pid, signal.SIGINT)
    assert run.end() == 130


def place(processes: int, workers: int) -> str:
    """Return the name of the last worker, which is the holder."""
    last = processes * workers - 1
    return f"worker {last}" + (f" (process {last})" if processes > 1 else "")


@pytest.mark.lengthy
@clusters
@pytest.mark.parametrize(
    ("why", "holder"),
    [
        ("leak", f"a capability for (0,) on output 0 of operator 'leaking' (built at {STUCK}:"),
        pytest.param(
            "forgotten",
            f"a capability for (0,) on output 0 of operator 'numbers' (built at {STUCK}:{INPUT})",
            marks=slow,
        ),
        pytest.param(
            "undrained",
            f"1 queued message (1 record) at (0,) on input 0 of operator 'forgetting' (built at {STUCK}:",
            marks=slow,
        ),
    ],
)
def test_a_stall_names_its_holder_once(start: Start, why: str, holder: str, processes: int, workers: int) -> None:
    run = start(*options(processes, workers), "--stall", "0.5", STUCK, why)
    until_reported(run, "nothing has moved on worker 0 for 0.5 s", holder, place(processes, workers))
    clock.sleep(1.2)
    interrupt(run)
    (line,) = [line for line in run.error.splitlines() if holder in line and place(processes, workers) in line]
    if why == "leak":
        assert f"made at {STUCK}:{RETAINED}, " in line


@pytest.mark.lengthy
@pytest.mark.parametrize(("processes", "workers"), [(2, 1), pytest.param(1, 3, marks=slow)])
def test_a_stall_of_a_dataflow_that_the_first_worker_has_dropped_names_who_did(
    start: Start, processes: int, workers: int
) -> None:
    run = start(*options(processes, workers), "--stall", "0.5", STUCK, "dropped")
    last = processes * workers - 1
    dropped = "worker 0 (process 0) has dropped dataflow 0" if processes > 1 else "worker 0 has dropped dataflow 0"
    until_reported(run, f"nothing has moved on worker {last} for 0.5 s", dropped)
    interrupt(run)


@pytest.mark.lengthy
@clusters
def test_a_loop_that_does_not_converge_is_reported_with_its_rounds(start: Start, processes: int, workers: int) -> None:
    run = start(*options(processes, workers), "--stall", "0.5", STUCK, "endless")
    until_reported(run, "no time has become final for 0.5 s: 'stuck/loop' goes on without converging: 0.5 s ago worker")
    before, after = re.findall(r"\(0, (\d+)\)", run.error.partition("without converging")[2])[:2]
    assert int(before) < int(after)
    interrupt(run)


@pytest.mark.lengthy
@pytest.mark.parametrize("why", [pytest.param("sleeping", marks=slow), pytest.param("hashing", marks=slow)])
@clusters
def test_a_worker_inside_a_long_operator_is_named_by_a_stall(
    start: Start, why: str, processes: int, workers: int
) -> None:
    run = start(*options(processes, workers), "--stall", "0.5", STUCK, why)
    last = processes * workers - 1
    text = until_reported(run, f"nothing has moved on worker {last} for 0.5 s: worker {last} of ")
    assert re.search(rf"is in operator 'exchange' \(built at {STUCK}:\d+\), at {STUCK}:\d+, in a step that began", text)
    if last:  # worker 0 waits for a busy worker
        assert "nothing has moved on worker 0" not in run.error
    run.send(signal.SIGQUIT)  # ends the run in order, and soon: it would sleep for a minute
    run.end()


@pytest.mark.lengthy
@clusters
@pytest.mark.parametrize(
    ("why", "doing", "held"),
    [
        pytest.param(
            "leak",
            "has nothing to do and waits for messages, for",
            "on output 0 of operator 'leaking'",
            marks=slow,
        ),
        ("sleeping", f"at {STUCK}:{LINES['clock.sleep(60)']}, in a step that began", "is kept from completing by"),
        pytest.param("endless", "worker", "'stuck/loop' goes on without converging", marks=slow),
    ],
)
def test_sigusr1_prints_what_each_worker_does_and_waits_for_and_the_run_goes_on(
    start: Start, why: str, doing: str, held: str, processes: int, workers: int
) -> None:
    run = start(*options(processes, workers), STUCK, why)
    run.until_started(processes * workers)
    expected = [f"worker {worker} of {processes * workers} (process" for worker in range(processes * workers)]
    signals = 0
    while min(run.error.count(doing), run.error.count(held)) < 2:  # the first signal may arrive too early
        os.kill(run.process.pid, signal.SIGUSR1)
        signals += 1
        until_reported(run, *expected, times=signals)
        clock.sleep(0.1)
    interrupt(run)
    assert [run.error.count(part) for part in expected] == [signals] * (processes * workers)


@pytest.mark.lengthy
@slow
def test_a_run_that_advances_is_not_reported_as_stalled(start: Start) -> None:
    run = start("-n", "2", "--stall", "5", STUCK.with_name("count.py"), "5", "1000")
    assert run.end() == 0
    assert run.error == ""


@pytest.mark.lengthy
@pytest.mark.parametrize("seconds", ["-1", "nan"])
def test_a_stall_of_no_time_is_refused(start: Start, seconds: str) -> None:
    run = start("--stall", seconds, STUCK, "leak")
    assert run.end() == 2
    assert "stall_seconds must be positive" in run.error


@pytest.mark.lengthy
@pytest.mark.parametrize(("processes", "workers"), [(1, 2), (2, 1)])
@pytest.mark.parametrize("why", ["activator", "poll", "fed", "timer", "serving", "program"])
def test_a_service_that_waits_for_the_outside_is_idle_and_not_stalled(
    start: Start, why: str, processes: int, workers: int
) -> None:
    run = start(*options(processes, workers), "--stall", "0.4", STUCK.with_name("idle.py"), why)
    assert run.end() == 0
    assert run.error == ""


@pytest.mark.lengthy
@pytest.mark.parametrize(("processes", "workers"), [(1, 2), (2, 1)])
def test_a_stall_names_the_input_that_is_open_and_how_to_move_it_on(start: Start, processes: int, workers: int) -> None:
    run = start(*options(processes, workers), "--stall", "0.5", STUCK, "forgotten")
    until_reported(
        run,
        "nothing has moved on worker 0 for 0.5 s",
        "dataflow 0 ('stuck') is kept from completing by:",
        f"a capability for (0,) on output 0 of operator 'numbers' (built at {STUCK}:{INPUT}), made at {STUCK}:{INPUT}, "
        f"waits for numbers.advance_to(1) or numbers.close(), {place(processes, workers)}",
    )
    interrupt(run)


@pytest.mark.lengthy
def test_a_stall_is_reported_by_default_and_by_no_thread(tmp_path: Path, start: Start) -> None:
    script = tmp_path / "short.py"
    script.write_text(
        "import sys, threading, timely.run.execute, timely.worker.standstill\n"
        "timely.worker.standstill.SECONDS = timely.run.execute.SECONDS = 0.5\n"
        f"sys.argv[1:] = ['forgotten']\n"
        "threads = {thread.name for thread in threading.enumerate()}\n"
        "assert 'timely stall watch' not in threads, threads\n"
        f"exec(compile(open({str(STUCK)!r}).read(), {str(STUCK)!r}, 'exec'))\n"
    )
    run = start("-w", "2", script)
    until_reported(run, "nothing has moved on worker 0 for 0.5 s", "operator 'numbers'")
    interrupt(run)


@pytest.mark.lengthy
def test_no_stall_is_reported_if_reports_are_turned_off(start: Start) -> None:
    run = start("-w", "2", "--stall", "0", STUCK, "forgotten")
    clock.sleep(2.0)
    interrupt(run)
    assert "nothing has moved" not in run.error


HANGS = """
import pytest
from timely import Config, execute, new_input

@pytest.mark.lengthy
@pytest.mark.timeout(4)
def test_hangs():
    def program(worker):
        with worker.dataflow() as scope:
            numbers, stream = new_input(scope, name="numbers")
            probe = stream.exchange().probe()
        while not probe.done():
            worker.step_or_park(0.1)
    execute(program, Config(workers=2))

@pytest.mark.lengthy
def test_does_not():
    test_passes = True
"""


@pytest.mark.lengthy
def test_a_test_that_hangs_names_the_holder_of_its_dataflow(tmp_path: Path) -> None:
    (tmp_path / "test_hanging.py").write_text(HANGS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-p", "timely.testing", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    environ = os.environ | {"PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=50, check=False)
    assert "1 failed, 1 passed" in ended.stdout
    assert "this test is about to exceed its time limit" in ended.stdout
    for worker in range(2):
        assert f"worker {worker} of 2 (process 0, pid" in ended.stdout
    assert "a capability for (0,) on output 0 of operator 'numbers'" in ended.stdout
