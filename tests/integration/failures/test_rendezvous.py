"""Processes that end or stop before all have met are named soon; a waiting process prints which peers it waits for."""

from __future__ import annotations

import os
import signal
import socket
import time as clock
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.integration.launcher.launching import Run
from tests.unit.communication.networks import free_ports

MEETS = """
import os, signal, sys, time

process = int(os.environ["TIMELY_PROCESS"])
print("pid", os.getpid(), flush=True)
if process == 1:
    BEFORE
from timely import execute

execute(lambda worker: None)
print("met", flush=True)
"""
Start = Callable[..., Run]
LONG_BEFORE_THE_RENDEZVOUS_ENDS = 20.0


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    runs: list[Run] = []

    def begin(before: str, *options: str, **environ: str) -> Run:
        script = tmp_path / f"program{len(runs)}" / "program.py"  # no process reads it before it is written
        script.parent.mkdir()
        script.write_text(MEETS.replace("BEFORE", before))
        runs.append(Run("run", *options, script, environ={"TIMELY_RENDEZVOUS_SECONDS": "50"} | environ))
        return runs[-1]

    yield begin
    for run in runs:
        run.close()


@pytest.fixture
def hosts(tmp_path: Path) -> str:
    path = tmp_path / "hosts"
    path.write_text("".join(f"127.0.0.1:{port}\n" for port in free_ports(3)))
    return str(path)


@pytest.mark.lengthy
@pytest.mark.parametrize("options", [("-n", "2"), ("-n", "3", "-w", "2"), ("--hostfile",)])
@pytest.mark.parametrize(
    ("before", "words"),
    [("sys.exit(0)", "has ended with status 0 before it met the others"), ("os.kill(os.getpid(), 19)", "is stopped")],
)
def test_a_process_that_does_not_arrive_is_named_once(
    start: Start, options: tuple[str, ...], before: str, words: str, hosts: str
) -> None:
    run = start(before, *(options if options[0] == "-n" else (*options, hosts)))
    run.until_started(2)  # a third one may be ended before it has begun
    begun = clock.monotonic()
    assert run.end() == 1
    assert clock.monotonic() - begun < LONG_BEFORE_THE_RENDEZVOUS_ENDS
    (line,) = [line for line in run.errors if words in line and line.startswith("[")]
    assert "timely: process 1 (worker " in line
    assert "program.py:10" in run.error


def test_a_process_that_is_stopped_for_a_moment_only_is_waited_for(start: Start) -> None:
    run = start("time.sleep(1)", "-n", "2")
    pids = run.until_started(2)
    (stopped,) = [int(line.split()[-1]) for line in run.lines if line.startswith("[1]")]
    assert stopped in pids
    os.kill(stopped, signal.SIGSTOP)
    clock.sleep(0.5)
    os.kill(stopped, signal.SIGCONT)
    assert run.end() == 0, run.error


@pytest.mark.lengthy
def test_a_run_of_which_every_process_is_stopped_ends(start: Start) -> None:
    run = start("time.sleep(60)", "-n", "2")
    for pid in run.until_started(2):
        os.kill(pid, signal.SIGSTOP)
    assert run.end() == 1
    assert "timely: every process that has not ended is stopped; process 0 is stopped (SIGSTOP or SIGTSTP)" in run.error
    assert "process 1 is stopped" in run.error


@pytest.mark.lengthy
def test_the_last_process_that_is_stopped_ends_the_run(start: Start, tmp_path: Path) -> None:
    script = tmp_path / "last.py"
    script.write_text("import os\nif os.environ['TIMELY_PROCESS'] == '1':\n    os.kill(os.getpid(), 19)\n")
    run = Run("run", "-n", "2", script)
    try:
        assert run.end() == 1
        assert "process 1 is stopped" in run.error
    finally:
        run.close()


@pytest.mark.lengthy
def test_a_waiting_process_prints_every_four_seconds_for_which_peers(start: Start, hosts: str) -> None:
    run = start("pass", "--hostfile", hosts, "--process", "0", TIMELY_RENDEZVOUS_SECONDS="7")
    assert run.end() == 1
    first, second = (line for line in run.errors if "waited" in line)
    assert first.startswith("timely: process 0 has waited 4 s for its peers; process 1 (worker 1 at tcp://127.0.0.1:")
    assert "; process 2 (worker 2 at tcp://127.0.0.1:" in first
    assert second.startswith("timely: process 0 waited 7 s for its peers; ")


@pytest.mark.lengthy
@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM])
def test_a_process_started_by_hand_that_is_lost_while_all_wait_for_another_is_named(
    start: Start, hosts: str, signum: signal.Signals
) -> None:
    waits, lost = (start("pass", "--hostfile", hosts, "--process", process) for process in ("0", "1"))
    for run in (waits, lost):
        run.until_started(1)
    waits._wait_for(lambda: "has waited 4 s" in waits.error, 40, "it does not wait")
    lost.send(signum)
    begun = clock.monotonic()
    assert waits.end() != 0
    assert clock.monotonic() - begun < LONG_BEFORE_THE_RENDEZVOUS_ENDS
    ends_in_order = signum == signal.SIGTERM
    named = "worker 1 failed: it ended with status 143" if ends_in_order else f"pid {lost.pids[0]}) is gone"
    assert named in waits.error


@pytest.mark.lengthy
def test_a_process_started_by_hand_that_is_stopped_before_it_has_met_any_other_is_named(
    start: Start, hosts: str
) -> None:
    stopped = start("pass", "--hostfile", hosts, "--process", "1")
    stopped.until_started(1)
    port = int(Path(hosts).read_text().split()[1].rpartition(":")[2])
    stopped._wait_for(partial(accepts, port), 40, "it does not listen")
    stopped.send(signal.SIGSTOP)
    waits = start("pass", "--hostfile", hosts, "--process", "0")
    waits.until_started(1)
    begun = clock.monotonic()
    assert waits.end() == 1
    assert clock.monotonic() - begun < LONG_BEFORE_THE_RENDEZVOUS_ENDS
    assert "it accepts connections but is silent: it is stopped, or another program listens there" in waits.error


def accepts(port: int) -> bool:
    """Return whether somebody listens at a port of this machine."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
