"""The tasks of Slurm on this machine: which of them have ended.

For a step of a job, Slurm's daemon starts one process on each machine, `slurmstepd`. That process starts the tasks of
the machine before any of them runs a program. So the tasks that are left are children of the same process, and the
environment of each states its number. Nobody has to be asked, and a task that has ended before it could connect to any
other is found, too.

This holds for Linux, where processes are directories in `/proc`. Tasks of another machine are found by those that run
there: one of them ends with an error, and process 0 names it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

STARTER = "slurmstepd"


def ended_tasks(environ: Mapping[str, str], proc: Path = Path("/proc"), own: int | None = None) -> list[int]:
    """Return the numbers of the tasks of this step and machine that have ended, or none if that cannot be known."""
    tasks = {int(each) for each in environ.get("SLURM_GTIDS", "").split(",") if each.isdigit()}
    with suppress(OSError, ValueError, IndexError):
        return sorted(tasks - _running(_starter(os.getpid() if own is None else own, proc), proc))
    return []


def _starter(process: int, proc: Path) -> int:
    """Return the ancestor of a process that has started the tasks; raise ValueError if there is none."""
    while process > 1:
        process = _name_and_parent(process, proc)[1]
        if _name_and_parent(process, proc)[0] == STARTER:
            return process
    raise ValueError(f"{STARTER} has not started this process")


def _running(starter: int, proc: Path) -> set[int]:
    """Return the numbers of the tasks that run; raise ValueError if a child of the starter does not state its number.

    A child that has not started its program yet has the environment of the starter.
    """
    tasks = set()
    for directory in proc.iterdir():
        if not directory.name.isdigit():
            continue
        try:
            is_child = _name_and_parent(int(directory.name), proc)[1] == starter
            variables = (directory / "environ").read_bytes() if is_child else b""
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended meanwhile
        if is_child and variables:  # a child without variables has ended, and its parent has not been notified yet
            [number] = [
                each.removeprefix(b"SLURM_PROCID=") for each in variables.split(b"\0") if each[:13] == b"SLURM_PROCID="
            ]
            tasks.add(int(number))
    return tasks


def _name_and_parent(process: int, proc: Path) -> tuple[str, int]:
    name, _, rest = (proc / str(process) / "stat").read_text().rpartition(")")
    return name.partition("(")[2], int(rest.split()[1])
