"""Run a program with durable collections, kill it again and again, and compare its state with an undisturbed run's.

    python -m tests.integration.durable.killing --kills 300 --seed 1 --jobs upgrade window

Each job runs on one to three processes, chosen anew at each start. One process is killed by SIGKILL: of three kills one
comes while the program starts, and the others after it has begun. The next start goes on from the state that the killed
one has left. When a run ends, its state is compared with that of a run on one process that nobody disturbed: the
answers update by update, with each epoch there once, and what the inputs contain. The next kill begins a new state. A
killed command must end within `ENDS_WITHIN` seconds: one that has not is asked what its workers wait for, and fails.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import tempfile
import time as clock
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

from differential.durable import Directory, Shard
from tests.integration.launcher.launching import Run

UPGRADE = Path("examples") / "durable.py"
WINDOW = Path("tests") / "integration" / "durable" / "window.py"
JOBS = {"upgrade": (UPGRADE, 4000), "window": (WINDOW, 3000)}
"""The program of each job, and how many steps it makes."""
ANSWERS = {UPGRADE: ("cycles", "dependants"), WINDOW: ("components",)}
ENDS_WITHIN = 300.0
"""Seconds within which a command ends of which a process was killed. It takes two or three on an idle machine."""
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
) -> Killed:
    """Start a program, on one to three processes by default, and kill one.

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
        killed_at = clock.monotonic()
        try:
            status = running.end(seconds=ENDS_WITHIN if is_killed else 600)  # one that had not begun runs to its end
        except AssertionError as error:
            error.add_note(waiting_for(running))
            raise
        assert status in (0, 128 + signal.SIGKILL, -signal.SIGKILL), running.error
        return Killed(status == 0, clock.monotonic() - killed_at if is_killed else 0.0)
    finally:
        running.close()


@dataclass(frozen=True)
class Killed:
    """How a run ended: whether it had reached its end before the kill, and how many seconds it took after it."""

    is_done: bool
    seconds: float


def waiting_for(running: Run) -> str:
    """Return what the workers of a command do and wait for, and the state of its processes."""
    before = len(running.error)
    with suppress(ProcessLookupError):
        running.process.send_signal(signal.SIGUSR1)
    clock.sleep(5)
    states = []
    for pid in [running.process.pid, *children(running.process.pid)]:
        with suppress(OSError):
            states.append(f"{pid}: {Path(f'/proc/{pid}/stat').read_text()} {Path(f'/proc/{pid}/wchan').read_text()}")
    return "\n".join([running.error[before:], *states])


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


def finish(program: Path, state: Path, processes: int, *arguments: str) -> int:
    """Run a program to its end; return the step that it began with."""
    running = run(program, state, processes, *arguments)
    try:
        assert running.end(seconds=1200) == 0, running.error
        found = BEGINS.search(running.output)
        assert found is not None
        return int(found[1])
    finally:
        running.close()


def check(program: Path, state: Path, undisturbed: Path, steps: int) -> None:
    """Compare a state with that of the run that nobody disturbed: contents, and each epoch of the answers."""
    for name in ANSWERS[program]:
        since, upper, updates = history(state, name)
        assert (since, upper) == (0, steps + 1)
        assert updates == history(undisturbed, name)[2]
    assert contents(state, "edges") == contents(undisturbed, "edges")
    assert history(state, "edges")[1] == steps + 1


def kill_again_and_again(job: str, directory: Path, kills: int, seed: int, longest: float = 6.0) -> None:
    """Kill a job so often, in as many runs to its end as it takes; print the progress."""
    program, steps = JOBS[job]
    arguments = "--steps", str(steps)
    finish(program, directory / "undisturbed", 1, *arguments)
    random = Random(seed)
    ended, made, slowest = 0, 0, 0.0
    while made < kills:
        state = directory / f"state-{ended}"
        killed = run_and_kill(program, state, random, longest, *arguments)
        made += not killed.is_done
        slowest = max(slowest, killed.seconds)
        if killed.is_done or made == kills:
            finish(program, state, random.randrange(1, 4), *arguments)
            check(program, state, directory / "undisturbed", steps)
            ended += 1
        print(
            f"{job}: {made} kills, {ended} run(s) to the end, slowest end {slowest:.1f} s after its kill",
            flush=True,
        )


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=300, help="how often to kill each job (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="decides when and which process (default: %(default)s)")
    parser.add_argument("--jobs", nargs="+", choices=sorted(JOBS), default=sorted(JOBS), help="default: all")
    parser.add_argument("--longest", type=float, default=6.0, help="seconds before a kill (default: %(default)s)")
    options = parser.parse_args()
    for job in options.jobs:
        with tempfile.TemporaryDirectory() as directory:
            kill_again_and_again(job, Path(directory), options.kills, options.seed, options.longest)


if __name__ == "__main__":
    main()
