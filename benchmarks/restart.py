"""The command of the upgrade job with durable collections, started again: how soon there is a further answer.

`timely run --state DIR examples/durable.py` replays the upgrade of a Linux distribution up to a step. The same command
is then started with one step more, again and again. `restart s` is from the start of the command until both answers to
the further step are durable: it includes the start of Python, loading modules and the files of the example, and reading
what is durable. `restart CPU s` is the processor time of all its processes until they have ended. Both are medians of
`restarts`. At the end the answers are compared with those of a program that has no durable collections.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time as clock

from benchmarks.harness import EXAMPLES, ROOT, Case, Figures, check, example
from differential import new_input
from differential.durable import Directory, Shard
from timely import Worker, execute_directly

RESTART, RESTART_CPU = "restart s", "restart CPU s"
ANSWERS = ("cycles", "dependants")
WITHIN = 120.0
"""Seconds after which a restart has failed."""

CASES = [
    Case(
        f"restart of the upgrade, {name}",
        "restart",
        {"processes": processes, "steps": 4000, "restarts": 5},
        quick=False,
        limits={RESTART: 5.0},
    )
    for processes, name in ((1, "1 process"), (2, "2 processes"))
]


def measure(processes: int, steps: int, restarts: int) -> Figures:
    """Return the figures of a number of processes, after checking the last answers."""
    seconds, used = [], []
    with tempfile.TemporaryDirectory() as directory:
        _end(_start(directory, processes, steps), 600.0)
        for step in range(steps + 1, steps + restarts + 1):
            before = _processor_time()
            begun = clock.perf_counter()
            command = _start(directory, processes, step)
            try:
                _wait_for(directory, step, command)
                seconds.append(clock.perf_counter() - begun)
            finally:
                printed = _end(command, WITHIN)
            check(f"step {step} is the first" in printed, f"the restart did not go on with step {step}: {printed}")
            used.append(_processor_time() - before)
        found = {name: _shard(directory, name).read() for name in ANSWERS}
    check(found == _from_scratch(steps + restarts), "the answers after the restarts are wrong")
    return {RESTART: statistics.median(seconds), RESTART_CPU: statistics.median(used)}


def _start(directory: str, processes: int, steps: int) -> subprocess.Popen[str]:
    """Start the job, which ends after so many steps."""
    command = [sys.executable, "-m", "timely", "run", "-n", str(processes), "--state", directory]
    command += [str(EXAMPLES / "durable.py"), "--steps", str(steps)]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("TIMELY_")}
    return subprocess.Popen(
        command, env=environ | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def _end(command: subprocess.Popen[str], seconds: float) -> str:
    """Return what a command has printed, which must end within so many seconds."""
    with command:
        try:
            printed, _ = command.communicate(timeout=seconds)
        except BaseException:
            command.terminate()
            raise
    check(command.returncode == 0, f"the job ended with status {command.returncode}: {printed}")
    return printed


def _wait_for(directory: str, step: int, command: subprocess.Popen[str]) -> None:
    """Wait until both answers to a step are durable."""
    end = clock.perf_counter() + WITHIN
    while any(_shard(directory, name).manifest().upper <= step for name in ANSWERS):
        check(clock.perf_counter() < end, f"no answer to step {step} within {WITHIN:g} s")
        check(command.poll() in (None, 0), f"the restart ended with status {command.returncode}")
        clock.sleep(0.005)


def _shard(directory: str, name: str) -> Shard:
    return Shard(name, Directory(directory).store(name))


def _processor_time() -> float:
    """Return the processor seconds of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _from_scratch(step: int) -> dict[str, dict[tuple[int, ...], int]]:
    """Return both answers to a step, of a program without durable collections that makes all changes at once."""
    job, debian = example("durable"), example("debian")
    upgrade = debian.load(debian.INITIAL, debian.CHANGES)

    def program(worker: Worker) -> dict[str, dict[tuple[int, ...], int]]:
        with worker.dataflow() as scope:
            session, edges = new_input(scope)
            outputs = {name: getattr(job, name)(edges).output() for name in ANSWERS}
        for each in range(step + 1):
            package, needed, diff = upgrade.changes(each, 0, 1)
            if len(package):
                session.update(package, needed, diff=diff)
        session.close()
        worker.step_while(lambda: not all(output.done() for output in outputs.values()))
        return {name: dict(output.contents()) for name, output in outputs.items()}

    return execute_directly(program)
