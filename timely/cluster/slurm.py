"""Slurm: `srun timely run --on slurm script.py` runs one process per task.

The number of tasks is Slurm's (`-n`), as are their places. Tasks recognise each other by munge, the service by which
the nodes of most Slurm clusters recognise their users, so nothing needs to be made or copied. Where there is none, make
keys where all nodes can read them, and give `--curve DIR`.

>>> environ = {"SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "8", "SLURM_JOB_ID": "17", "SLURM_STEP_ID": "0"}
>>> place = place_of({**environ, "SLURM_STEP_NODELIST": "node[07-09,12]"})
>>> place.process, place.processes, place.head, place.run
(5, 8, 'node07', '17.0.0')
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path

from timely.cluster.place import ProcessPlace, agreed_ports, number
from timely.cluster.rendezvous import placed_at
from timely.config import Config
from timely.errors import ConfigError

STARTER = "slurmstepd"
"""Slurm's daemon for a step of a job, which starts the tasks of a machine before any of them runs a program."""
_TASK = "a task that srun has started; use 'srun timely run --on slurm SCRIPT'"


def place_of(environ: Mapping[str, str]) -> ProcessPlace:
    """Return the place of a task, given its environment; raise `ConfigError` if srun has not started it."""
    process = number(environ, "SLURM_PROCID", of=_TASK)
    processes = number(environ, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", of=_TASK)
    names = ("SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT")
    run = ".".join(environ.get(name, "0") for name in names)
    nodes = environ.get("SLURM_STEP_NODELIST") or environ.get("SLURM_NODELIST", "")
    if environ.get("SLURM_DISTRIBUTION", "").startswith("arbitrary"):
        raise ConfigError(
            "with --distribution=arbitrary Slurm does not state where task 0 is; use another distribution of tasks"
        )
    return ProcessPlace(process, processes, first_node(nodes), run, agreed_ports(run))


def first_node(nodes: str) -> str:
    """Return the first name in Slurm's list of nodes, where task 0 is.

    >>> first_node("login"), first_node("rack1-[3,5],x"), first_node("n[001-128]"), first_node("r[2-4]c[10-12]-ib")
    ('login', 'rack1-3', 'n001', 'r2c10-ib')
    """
    name = re.split(r",(?![^\[]*\])", nodes, maxsplit=1)[0]
    first = re.sub(r"\[([^\]]*)\]", lambda found: re.split("[-,]", found[1])[0], name)
    if not first:
        raise ConfigError(f"SLURM_STEP_NODELIST is not set, so this process is not {_TASK}")
    return first


def placed(config: Config) -> AbstractContextManager[Config]:
    """Return a context with the configuration of this task, which is entered when all tasks are connected."""
    return placed_at(place_of(os.environ)._replace(ended=partial(ended_tasks, dict(os.environ))), config)


def ended_tasks(environ: Mapping[str, str], proc: Path = Path("/proc"), own: int | None = None) -> list[int]:
    """Return the numbers of the tasks of this step and machine that have ended, or none if that cannot be known.

    The tasks that are left are children of the same process, and the environment of each states its number. Nobody has
    to be asked, and a task that has ended before it could connect to any other is found, too. This holds for Linux,
    where processes are directories in `/proc`. Tasks of another machine are found by those that run there: one of them
    ends with an error, and process 0 names it.
    """
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
