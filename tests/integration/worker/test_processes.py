"""Dataflows on real processes, started as a user starts them."""

from __future__ import annotations

import os
import re
import signal
import time as clock
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.launcher.launching import Run
from timely.run.failure import PEER_FAILED

SCRIPTS = Path(__file__).parent / "scripts"
COUNT, LOOP = SCRIPTS / "count.py", SCRIPTS / "loop.py"

Start = Callable[..., Run]
clusters = pytest.mark.parametrize(("processes", "workers"), [(1, 1), (2, 1), (2, 2)])


@pytest.fixture
def start() -> Iterator[Start]:
    runs: list[Run] = []

    def begin(
        *arguments: str | Path, mode: str = "demand", accumulation: str = "process", frame_bytes: str = ""
    ) -> Run:
        environ = {"TIMELY_PROGRESS": mode, "TIMELY_ACCUMULATION": accumulation, "TIMELY_FRAME_BYTES": frame_bytes}
        runs.append(Run("run", *arguments, environ=environ))
        return runs[-1]

    yield begin
    for run in runs:
        run.close()


@pytest.mark.lengthy
@pytest.mark.parametrize("mode", ["demand", "eager"])
@clusters
def test_what_all_workers_send_is_counted_once(start: Start, processes: int, workers: int, mode: str) -> None:
    epochs, size, peers = 5, 10_000, processes * workers
    run = start("-n", str(processes), "-w", str(workers), COUNT, str(epochs), str(size), mode=mode)
    assert run.end() == 0, run.error
    counted = [(int(number), int(total)) for number, total in re.findall(r"counted (\d+) (\d+)", run.output)]
    assert len(counted) == epochs * peers
    sent = size * peers
    assert sum(number for number, _ in counted) == epochs * sent
    assert sum(total for _, total in counted) == epochs * sent * (sent - 1) // 2
    assert run.error == ""


@pytest.mark.lengthy
@clusters
def test_a_loop_over_processes_ends(start: Start, processes: int, workers: int) -> None:
    run = start("-n", str(processes), "-w", str(workers), LOOP)
    assert run.end() == 0, run.error
    halved = [int(number) for number in re.findall(r"halved (\d+)", run.output)]
    assert len(halved) == processes * workers
    assert sum(halved) == 1000
    assert run.error == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("processes", "workers", "accumulation"), [(2, 2, "worker"), (2, 2, "cluster"), (3, 1, "cluster")]
)
def test_a_loop_ends_whichever_workers_add_up_progress(
    start: Start, processes: int, workers: int, accumulation: str
) -> None:
    run = start("-n", str(processes), "-w", str(workers), LOOP, accumulation=accumulation)
    assert run.end() == 0, run.error
    assert sum(int(number) for number in re.findall(r"halved (\d+)", run.output)) == 1000
    assert run.error == ""


@pytest.mark.lengthy
def test_a_process_killed_in_a_loop_is_named_and_the_other_ends_in_silence(start: Start) -> None:
    run = start("-n", "2", LOOP, "forever")
    run.until_started(2)
    clock.sleep(0.5)
    killed = next(int(line.split()[-1]) for line in run.lines if line.startswith("[1] pid"))
    begun = clock.monotonic()
    os.kill(killed, signal.SIGKILL)
    assert run.end() == 128 + signal.SIGKILL
    assert clock.monotonic() - begun < run.promptly
    assert run.error == "timely: process 1 was killed by SIGKILL\n"


@pytest.mark.lengthy
def test_a_stopped_process_is_named_in_time_and_ended(start: Start) -> None:
    run = start("-n", "2", "--peer-timeout", "2", LOOP, "forever")
    run.until_started(2)
    clock.sleep(0.5)
    stopped = next(int(line.split()[-1]) for line in run.lines if line.startswith("[1] pid"))
    begun = clock.monotonic()
    os.kill(stopped, signal.SIGSTOP)
    assert run.end() == PEER_FAILED
    assert clock.monotonic() - begun < 2 + run.promptly
    assert re.fullmatch(r"timely: process 0: process 1 .* is gone .*; process 1 is stopped \(.*\)\n", run.error)


SENT_AGAIN = """
import numpy as np
from timely import TimelyError, execute, new_input

def program(worker):
    found = []
    with worker.dataflow() as scope:
        numbers, stream = new_input(scope)
        probe = stream.exchange().inspect_batch(lambda _, batch: found.append(len(batch))).probe()
    batch = np.arange(100_000 * (worker.index == 0))
    try:
        numbers.send(batch)
    except TimelyError as error:
        print("refused")
        for part in np.array_split(batch, 100):
            numbers.send(part)
    numbers.close()
    worker.step_while(lambda: not probe.done())
    print("received", sum(found))

execute(program)
"""


@pytest.mark.lengthy
def test_a_batch_that_was_refused_may_be_sent_in_pieces(start: Start, tmp_path: Path) -> None:
    (tmp_path / "again.py").write_text(SENT_AGAIN)
    run = start("-n", "2", tmp_path / "again.py", frame_bytes="100000")
    assert run.end() == 0, run.error
    *received, refused = sorted(run.lines, key=lambda line: "refused" in line)
    assert refused == "[0] refused\n"
    assert sum(int(line.split()[-1]) for line in received) == 100_000  # each record once


@pytest.mark.lengthy
@pytest.mark.parametrize("options", [("-n", "2"), ("-n", "2", "-w", "2"), ()])
def test_an_interrupt_ends_a_loop_at_once_and_silently(start: Start, options: tuple[str, ...]) -> None:
    run = start(*options, LOOP, "forever")
    run.until_started({(): 1, ("-n", "2"): 2}.get(options, 4))
    clock.sleep(0.3)
    begun = clock.monotonic()
    os.killpg(run.process.pid, signal.SIGINT)
    assert run.end() == 130
    assert clock.monotonic() - begun < run.promptly
    assert run.error == ""


@pytest.mark.lengthy
@clusters
def test_a_profile_shows_the_cost_of_the_operators_of_each_process(start: Start, processes: int, workers: int) -> None:
    run = start("-n", str(processes), "-w", str(workers), "--profile", COUNT, "3", "1000")
    assert run.end() == 0, run.error
    for process in range(processes):
        assert f"timely: process {process}: {workers} worker" in run.error
    rows = [line.partition(")")[2].split() for line in run.error.splitlines() if "count/unary_frontier (0.1)" in line]
    assert len(rows) == processes
    assert sum(int(row[2].replace(",", "")) for row in rows) == 3 * 1000 * processes * workers
