"""Which processes of this user can be looked at: each leaves a note in a private directory of its run.

The note `process.PID.json` states what the process is, and it answers at the socket beside it, `process.PID`. Only
their owner can enter the directory, so whoever can connect may look. Notes in a directory that others can enter or
write are not read, and neither are those of processes that have ended.
"""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

DIRECTORIES = "timely-run-"
"""How the names of the private directories of runs begin."""
_NOTE = ".json"


class Presence(NamedTuple):
    """A process that can be looked at.

    `launcher` is the process that started it, if that belongs to the run, or 0. `runs` has the index of the process in
    each run of several processes that it takes part in, by the generation of the run.
    """

    pid: int
    launcher: int
    program: str
    runs: Mapping[str, int]
    socket: Path


def socket_of(directory: Path, pid: int) -> Path:
    return directory / f"process.{pid}"


def note(presence: Presence) -> None:
    """Write the note of a process, beside its socket."""
    content = {"launcher": presence.launcher, "program": presence.program, "runs": dict(presence.runs)}
    write_privately(_note_of(presence.socket), content)


def withdraw(presence: Presence) -> None:
    for path in (_note_of(presence.socket), presence.socket):
        with suppress(OSError):
            path.unlink()


def presences() -> list[Presence]:
    """Return the processes of this user that can be looked at, in order of their numbers."""
    found = []
    for directory in private_directories():
        with suppress(OSError):
            for path in directory.glob(f"process.*{_NOTE}"):
                with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
                    presence = _read(path)
                    if is_alive(presence.pid):
                        found.append(presence)
    # By what distinguishes them: a killed process may have left a note with the number of one that runs now.
    return sorted(found, key=lambda presence: (presence.pid, presence.socket))


def fellows(runs: Mapping[str, int]) -> Iterator[tuple[int, Presence]]:
    """Yield the processes on this machine that take part in one of these runs, each after its index there."""
    for presence in presences() if runs else ():
        # The process that asks is among them if it has left a note.
        for run in runs.keys() & presence.runs.keys():
            yield presence.runs[run], presence


def private_directories() -> list[Path]:
    """Return the directories of runs that only this user can enter."""
    found: list[Path] = []
    for place in sorted({tempfile.gettempdir(), "/tmp"}):
        with suppress(OSError), os.scandir(place) as entries:
            found += [Path(entry.path) for entry in entries if entry.name.startswith(DIRECTORIES)]
    return sorted(directory for directory in found if _has_mode(directory, stat.S_IFDIR | 0o700))


def read_privately(path: Path) -> dict[str, object]:
    """Return what `write_privately` has written. Raises ValueError if others can read or write the file."""
    if not _has_mode(path, stat.S_IFREG | 0o600):
        raise ValueError(f"others can reach {path}")
    content = json.loads(path.read_text())
    if not isinstance(content, dict):
        raise ValueError(f"{path} is damaged")
    return content


def write_privately(path: Path, content: Mapping[str, object]) -> None:
    """Write a file that is complete whenever it is there, and that only its owner can read."""
    part = path.with_name(f"{path.name}.new")
    part.unlink(missing_ok=True)
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        json.dump(content, file)
    # In one step: whoever looks for the note finds all of it or nothing.
    part.replace(path)


def is_alive(pid: int) -> bool:
    """Return whether a process of this user runs. It does not if it has ended, and its parent has not yet waited."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, PermissionError, OverflowError):
        return False
    # The state follows the name of the program, which may itself have spaces and parentheses.
    with suppress(OSError):  # on Linux
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[:1] != [b"Z"]
    return True


def _note_of(socket: Path) -> Path:
    return socket.with_name(socket.name + _NOTE)


def _read(path: Path) -> Presence:
    content = read_privately(path)
    socket = path.with_name(path.name.removesuffix(_NOTE))
    launcher, runs = content["launcher"], content["runs"]
    if not isinstance(launcher, int) or not isinstance(runs, dict):
        raise ValueError(f"{path} is damaged")
    numbers = {str(run): int(index) for run, index in runs.items()}
    return Presence(int(socket.suffix[1:]), launcher, str(content["program"]), numbers, socket)


def _has_mode(path: Path, mode: int) -> bool:
    try:
        # A symbolic link is not followed: its owner could lead to a directory of this user and change it later.
        status = path.lstat()
    except OSError:
        return False
    return status.st_uid == os.getuid() and status.st_mode == mode
