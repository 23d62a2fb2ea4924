"""What `timely` knows of durable collections: `timely run --state DIR --restart TIMES`, and `timely state DIR`.

The collections are those of `differential`, which stands on this package. So its command is found by name.

**One group with `--restart` for a directory.** A program that opens the state ends the one that has it. Two groups that
are started again would end each other in turn. So such a group holds a lock on the directory, and no other run begins
there meanwhile. The system releases the lock however the launcher ends.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from timely.errors import ConfigError
from timely.live.output import printing
from timely.run.environment import STATE_VARIABLE

LOCK = "restarts.lock"
"""The file that a group with `--restart` has locked. It names the process for those that are refused."""

_COMMAND = "differential.durable.command"


def add_options(run: argparse.ArgumentParser) -> None:
    run.add_argument("--state", metavar="DIR", help="where the program keeps its durable collections")
    run.add_argument(
        "--restart",
        metavar="TIMES",
        type=int,
        default=0,
        help="restart all processes when one dies, at most this many times (default: 0)",
    )


def add_state(commands: Any) -> None:
    parser = commands.add_parser(
        "state",
        help="show the durable collections in a directory",
        description="Show the durable collections in a directory: their times, rows, sizes and writers.",
    )
    parser.add_argument("--verify", action="store_true", help="read and check everything; status 1 if any is damaged")
    parser.add_argument(
        "--accept",
        metavar="TABLE",
        help="let a session go on with this table as it is, though commits of it are missing",
    )
    parser.add_argument("directory", metavar="DIR")
    parser.set_defaults(action=_show)


def pass_on(directory: str | None) -> None:
    """Make the program, and the processes started from here, keep its state in a directory."""
    if directory is None:
        return
    if os.path.exists(directory) and not os.path.isdir(directory):
        raise ConfigError(f"--state {directory} is a file; name a directory, which is made if there is none")
    os.environ[STATE_VARIABLE] = os.path.abspath(directory)


@contextmanager
def reserved(directory: str | None, restarts: int) -> Iterator[None]:
    """Keep other runs out of a state directory while this one may be restarted.

    Raises ConfigError if another run already does so, or the directory cannot be locked.
    """
    if directory is None or not (restarts or os.path.exists(os.path.join(directory, LOCK))):
        yield
        return
    lock = _locked(directory)
    try:
        if restarts:
            os.ftruncate(lock, 0)
            os.pwrite(lock, f"process {os.getpid()} on {platform.node()}\n".encode(), 0)
        else:
            os.close(lock)
        yield
    finally:
        if restarts:
            os.close(lock)


def _locked(directory: str) -> int:
    """Return the descriptor of the lock of a directory, which nobody else has."""
    import fcntl

    path = os.path.join(directory, LOCK)
    try:
        os.makedirs(directory, exist_ok=True)
        # Not inherited: a child that outlives the launcher would keep the lock.
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise ConfigError(f"cannot lock {path}: {error.strerror}") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        who = os.pread(lock, 200, 0).decode(errors="replace").strip()
        os.close(lock)
        raise ConfigError(
            f"{directory} belongs to a run with --restart ({who}), which would end this one: stop that run, or name "
            "another directory"
        ) from None
    except OSError as error:  # the file system has no locks
        os.close(lock)
        raise ConfigError(f"cannot lock {path}: {error.strerror}") from None
    return lock


def _show(options: argparse.Namespace) -> int:
    command = importlib.import_module(_COMMAND)
    with printing(errors="backslashreplace"):
        if options.accept is None:
            return int(command.show(options.directory, options.verify))
        return int(command.accept(options.directory, options.accept))
