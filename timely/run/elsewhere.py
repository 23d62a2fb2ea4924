"""What `timely` knows of systems that place processes on machines: `timely run --on SYSTEM`.

The systems are those of `timely.cluster`, which stands on this package. So its modules are found by name, and only the
one that is asked for is imported.
"""

from __future__ import annotations

import argparse
import importlib
import os
import time as clock
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

from timely.config import Config
from timely.errors import ConfigError
from timely.live.output import printing
from timely.observe.notices import notify
from timely.run.environment import report_unknown_variables
from timely.run.failure import PEER_FAILED
from timely.run.launched import handle_signals, run_target, write_lines
from timely.run.memory import restart_with_large_pages
from timely.run.state import reserved
from timely.worker.garbage import keep_short

STARTED = {"slurm": "srun", "mpi": "mpirun", "kubernetes": "kubernetes"}
"""The systems that have started this process and its peers, and by which command."""

ECHO_SECONDS = 1.0
"""How long a process that ends because of a peer waits before it does.

Such systems end all processes as soon as one exits with a nonzero status. That one should be the peer that failed,
after it has printed why.
"""


FILES = {
    "k8s": ("manifest", "write a Kubernetes manifest", "Write the manifest of a job, or a service, on Kubernetes."),
    "systemd": ("systemd", "write a systemd unit", "Write the unit of a service that runs a program on this machine."),
    "containerfile": ("container", "write a Containerfile", "Write the file that an image of a program is built from."),
}
"""The commands that write what starts programs: the module of `timely.cluster`, and the help."""


def add_commands(commands: Any, given: str | None) -> None:
    """Add the commands that write files to those of `timely`, with options for the one that is given."""
    for name, (module, short, description) in FILES.items():
        parser = commands.add_parser(name, help=short, description=description, allow_abbrev=False)
        if name == given:
            found = importlib.import_module(f"timely.cluster.{module}")
            found.add_options(parser)
            parser.set_defaults(action=partial(_print, found.text, getattr(found, "remarks", lambda _: ())))


def _print(
    text: Callable[[argparse.Namespace], str],
    remarks: Callable[[argparse.Namespace], Sequence[str]],
    options: argparse.Namespace,
) -> int:
    made = text(options)
    with printing(encoding="utf-8", errors="surrogateescape"):
        print(made, end="")
    for remark in remarks(options):
        notify(remark)
    return 0


def add_options(run: argparse.ArgumentParser) -> None:
    run.add_argument("--on", choices=[*STARTED, "ray"], help="take the places of processes from this system")


def check(options: argparse.Namespace) -> None:
    """Raise `ConfigError` for options that contradict `--on`."""
    if options.on is None:
        return
    if options.hostfile is not None or options.process is not None:
        raise ConfigError(f"--on {options.on} decides where processes are: leave out --hostfile and --process")
    if options.raw:
        raise ConfigError(
            f"--raw is for processes that this command starts, and here {options.on} starts them: leave it out"
        )
    command = STARTED.get(options.on)
    if command is not None and options.processes is not None:
        raise ConfigError(
            f"{command} decides how many processes there are: {command} -n {options.processes} timely run"
        )
    if command is not None and options.restart:
        raise ConfigError(
            f"{command} has started the processes, so it has to start them again: leave out --restart, and have the "
            "job submitted again when it fails"
        )


def run_on(options: argparse.Namespace, config: Config, target: list[str], safe_path: bool) -> int:
    """Run a target on the processes of a system, or as the one of them that this is; return the exit status."""
    if options.is_process:
        restart_with_large_pages()
        keep_short()
        handle_signals()
    write_lines()
    module = importlib.import_module(f"timely.cluster.{options.on}")
    if options.on not in STARTED:
        report_unknown_variables(config)
        processes = 1 if options.processes is None else options.processes
        arguments = ["-m", "timely.run.launched", *(["-m"] if options.module is not None else []), *target]
        with reserved(options.state, options.restart):
            status: int = module.launch(config, processes, arguments, options.restart, options.state)
            return status
    with module.placed(config) as placed:
        # Only now, and before anyone meets process 0: the others learn that it has ended, and do not wait for it.
        with reserved(options.state, 0) if placed.process == 0 else nullcontext():
            pass
        report_unknown_variables(placed)
        os.environ.update(placed.to_environ())
        try:
            return run_target(target, options.module is not None, safe_path)
        except SystemExit as error:
            if error.code == PEER_FAILED:
                clock.sleep(ECHO_SECONDS)
            raise
