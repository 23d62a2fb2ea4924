"""What the user sees when a program fails on real workers: one message with what, where and when; never a hang."""

from __future__ import annotations

import os
import signal
import time as clock
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.launcher.launching import Run

RAISES = """
import numpy as np
from differential import new_input
from timely import execute

def refuse(number):
    if (number == 13).any():
        raise ValueError("thirteen")
    return number

def program(worker):
    with worker.dataflow() as scope:
        session, numbers = new_input(scope)
        answer = numbers.consolidate().map(refuse).count().output()
    for epoch in range(100):
        if worker.index == 0:
            session.insert(epoch)
        session.advance_to(epoch + 1)
        worker.step_while(lambda: answer.less_than(epoch + 1))

execute(program)
"""

DIFFERS = """
from timely import execute

def program(worker):
    with worker.dataflow("questions") as scope:
        stream = scope.to_stream(range(10)).exchange()
        if worker.index == 0:
            stream = stream.exchange(name="again")
        stream.probe()

execute(program)
"""

BUILDS_MORE = """
from timely import execute

def program(worker):
    for _ in range(1 + worker.index):
        with worker.dataflow() as scope:
            scope.to_stream(range(10)).exchange().probe()

execute(program)
"""

COMPLEX = """
import numpy as np
from timely import Columns, execute, new_input

def program(worker):
    with worker.dataflow() as scope:
        numbers, stream = new_input(scope)
        probe = stream.exchange(name="spread").probe()
    numbers.send_batch(Columns((np.arange(10) * 1j,)))
    numbers.close()
    worker.step_while(lambda: not probe.done())

execute(program)
"""

GOES_ON = """
import os
from differential import new_input
from timely import execute

def program(worker):
    with worker.dataflow() as scope:
        session, numbers = new_input(scope)
        answer = numbers.count().output()
    while True:
        session.insert(session.epoch)
        session.advance_to(session.epoch + 1)
        worker.step_while(lambda: answer.less_than(session.time))
        if session.epoch == 100:  # by then both have had rows, and loaded what they need for them
            print("pid", os.getpid())

execute(program)
"""

REMOVES_TOO_MUCH = """
from differential import new_input
from timely import execute

def program(worker):
    with worker.dataflow() as scope:
        session, pairs = new_input(scope)
        answer = pairs.distinct().output()
    session.insert("rope", 1)
    session.advance_to(1)
    session.remove("soap", 2)
    session.close()
    worker.step_while(lambda: not answer.done())

execute(program)
"""

STALLS = """
from differential import new_input
from timely import execute

def program(worker):
    with worker.dataflow() as scope:
        session, numbers = new_input(scope)
        answer = numbers.count().output()
    session.insert(3)
    worker.step_while(lambda: answer.less_than(1))

execute(program)
"""

LEAVES_A_THREAD_BUSY = """
import time
from timely import execute

def program(worker):
    with worker.dataflow() as scope:
        scope.to_stream([1]).inspect(lambda x: time.sleep(20) if worker.index == 1 else None).exchange().probe()
    if worker.index == 0:
        time.sleep(0.5)
        raise RAISED
    while worker.step_or_park():
        pass

execute(program)
"""

SAYS_NOTHING_OF = "Traceback"


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    runs: list[Run] = []

    def begin(program: str, *options: str) -> Run:
        script = tmp_path / "program.py"
        script.write_text(program)
        runs.append(Run("run", *options, script))
        return runs[-1]

    yield begin
    for run in runs:
        run.close()


def ends(run: Run, status: int) -> None:
    assert run.end() == status, run.error
    assert SAYS_NOTHING_OF not in run.error


@pytest.mark.parametrize("options", [("-n", "2"), ("-w", "2"), ()])
def test_an_operator_that_raises_names_itself_the_time_the_worker_and_the_line(
    start: Callable[..., Run], options: tuple[str, ...]
) -> None:
    run = start(RAISES, *options)
    ends(run, 1)
    assert "operator 'map' failed at time (13,) on worker" in run.error
    assert "program.py:8" in run.error
    assert "ValueError: thirteen" in run.error
    assert run.error.count("ValueError: thirteen") == 1


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("raised", "status", "message"),
    [
        ("KeyError('the real cause')", 1, "KeyError: 'the real cause'"),
        ("SystemExit(7)", 7, "process 0 ended with status 7"),
    ],
)
def test_the_process_that_failed_reports_why_though_another_of_its_threads_is_busy(
    start: Callable[..., Run], raised: str, status: int, message: str
) -> None:
    run = start(LEAVES_A_THREAD_BUSY.replace("RAISED", raised), "-n", "2", "-w", "2")
    assert run.end() == status, run.error
    assert message in run.error
    assert ("Traceback" in run.error) == (status == 1)
    assert not any(line.startswith("timely: process 1") for line in run.errors)


@pytest.mark.parametrize("options", [("-n", "2"), ("-w", "2")])
def test_different_dataflows_name_the_operator_that_differs_on_each_worker(
    start: Callable[..., Run], options: tuple[str, ...]
) -> None:
    run = start(DIFFERS, *options)
    ends(run, 1)
    assert "worker 0 and worker 1 built different dataflows (number 0): operator 'again' (exchange)" in run.error
    assert "program.py:8 on worker 0, nothing more on worker 1" in run.error


def test_a_column_that_no_peer_would_accept_ends_the_run_and_is_named(start: Callable[..., Run]) -> None:
    run = start(COMPLEX, "-n", "2")
    ends(run, 1)
    assert "operator 'spread' failed at time (0,)" in run.error
    assert "DataError: a column of complex128 cannot be sent to another process" in run.error


@pytest.mark.parametrize("options", [("-n", "2"), ("-w", "2")])
def test_a_worker_that_builds_more_dataflows_is_named(start: Callable[..., Run], options: tuple[str, ...]) -> None:
    run = start(BUILDS_MORE, *options)
    ends(run, 1)
    assert "worker 0 ended after building 1 dataflows, but worker 1 built 2" in run.error


@pytest.mark.lengthy
def test_a_killed_process_is_named_and_ends_the_others(start: Callable[..., Run]) -> None:
    run = start(GOES_ON, "-n", "2")
    pids = run.until_started(2)
    clock.sleep(0.1)
    begun = clock.monotonic()
    pid_of_one = next(int(line.split()[-1]) for line in run.lines if line.startswith("[1] pid"))
    os.kill(pid_of_one, signal.SIGKILL)
    assert run.end() == 128 + signal.SIGKILL
    assert clock.monotonic() - begun < run.promptly
    assert pid_of_one in pids
    assert "process 1 was killed by SIGKILL" in run.error
    assert SAYS_NOTHING_OF not in run.error


def test_an_interrupt_ends_a_running_computation_silently(start: Callable[..., Run]) -> None:
    run = start(GOES_ON, "-n", "2")
    run.until_started(2)
    clock.sleep(0.1)
    run.send(signal.SIGINT)
    assert run.end() == 130
    assert run.error == ""


def test_a_record_that_occurs_a_negative_number_of_times_is_named(start: Callable[..., Run]) -> None:
    run = start(REMOVES_TOO_MUCH)
    ends(run, 1)
    assert "operator 'distinct' failed at time (1,)" in run.error
    assert "'soap'" in run.error


def test_a_wait_that_cannot_end_reports_what_holds_it_back(start: Callable[..., Run]) -> None:
    run = start(STALLS)
    ends(run, 1)
    assert "a capability for (0,) on output 0 of operator 'input'" in run.error
    assert "program.py:7" in run.error
