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
from contextlib import AbstractContextManager
from functools import partial

from timely.cluster.place import ProcessPlace, number
from timely.cluster.ports import agreed_ports
from timely.cluster.rendezvous import placed_at
from timely.cluster.siblings import ended_tasks
from timely.config import Config
from timely.errors import ConfigError

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
