"""Run a program with durable collections, and kill it."""

from __future__ import annotations

import os
import re
import signal
import time as clock
from contextlib import suppress
from pathlib import Path
from random import Random

from differential.durable import Directory, Shard
from tests.integration.launcher.launching import Run

UPGRADE = Path("examples") / "durable.py"
WINDOW = Path("tests") / "integration" / "durable" / "window.py"
BEGINS = re.compile(r"step (\d+) is the first")


def children(pid: int) -> list[int]:
    """Return the processes that a process has started, and that it has not waited for."""
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):  # each thread has those that it has started
        with suppress(FileNotFoundError):
            found += [int(each) for each in path.read_text().split()]
    return found


def run(program: Path, state: Path, processes: int, *arguments: str) -> Run:
    """Start a program on so many processes."""
    return Run("run", "-n", str(processes), "--state", state, program, *arguments)


def run_and_kill(
    program: Path, state: Path, random: Random, longest: float, *arguments: str, processes: int | None = None
) -> bool:
    """Start a program, on one to three processes by default, and kill one; return whether the program ended before.

    Of three kills, one comes while the program starts, the others within `longest` seconds after it has begun.
    """
    processes = processes or random.randrange(1, 4)
    running = run(program, state, processes, *arguments)
    try:
        if random.randrange(3):
            wait_for_beginning(running)
        clock.sleep(random.uniform(0, longest))
        pid = running.process.pid
        victims = [pid] if processes == 1 else children(pid)
        is_killed = bool(victims) and running.process.poll() is None
        if is_killed:
            os.kill(random.choice(victims), signal.SIGKILL)
        status = running.end(seconds=60 if is_killed else 600)  # one that had not begun runs to its end
        assert status in (0, 128 + signal.SIGKILL, -signal.SIGKILL), running.error
        return status == 0
    finally:
        running.close()


def wait_for_beginning(running: Run) -> None:
    """Wait until the program has printed where it begins."""
    end = clock.monotonic() + 60
    while not BEGINS.search(running.output) and running.process.poll() is None:
        assert clock.monotonic() < end, f"the program did not begin within a minute: {running.error}"
        clock.sleep(0.005)


def history(state: Path, name: str) -> tuple[int, int, list[dict[str, int]]]:
    """Return since, upper and all updates of a durable collection, in order."""
    shard = Shard(name, Directory(str(state)).store(name))
    shard.verify()
    manifest = shard.manifest()
    return manifest.since, manifest.upper, shard.updates().to_pylist()


def contents(state: Path, name: str) -> dict[tuple[int, ...], int]:
    """Return what a durable collection contains now."""
    return Shard(name, Directory(str(state)).store(name)).read()
