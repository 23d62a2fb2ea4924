"""What `timely` knows of durable collections: `timely run --state DIR --restart TIMES`, and `timely state DIR`.

The collections are those of `differential`, which stands on this package. So its command is found by name.
"""

from __future__ import annotations

import argparse
import importlib
import os
from typing import Any

from timely.errors import ConfigError

VARIABLE = "TIMELY_STATE_DIR"
"""The environment variable that names the directory to the program."""

_COMMAND = "differential.durable.command"


def add_options(run: argparse.ArgumentParser) -> None:
    """Add the options of `timely run`."""
    run.add_argument("--state", metavar="DIR", help="where the program keeps its durable collections")
    run.add_argument(
        "--restart",
        metavar="TIMES",
        type=int,
        default=0,
        help="start all again, so often at most, when a process dies (default: 0)",
    )


def add_state(commands: Any) -> None:
    """Add the command to those of `timely`."""
    parser = commands.add_parser(
        "state",
        help="show the durable collections in a directory",
        description="Show the durable collections in a directory: their times, rows, sizes and writers.",
    )
    parser.add_argument("--verify", action="store_true", help="read and check everything; status 1 if any is damaged")
    parser.add_argument("directory", metavar="DIR")
    parser.set_defaults(action=_show)


def pass_on(directory: str | None) -> None:
    """Let the program, and the processes started from here, keep its state in a directory."""
    if directory is None:
        return
    if os.path.exists(directory) and not os.path.isdir(directory):
        raise ConfigError(f"--state {directory} is a file; name a directory, which is made if there is none")
    os.environ[VARIABLE] = os.path.abspath(directory)


def _show(options: argparse.Namespace) -> int:
    status: int = importlib.import_module(_COMMAND).show(options.directory, options.verify)
    return status
