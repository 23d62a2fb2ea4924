"""The private directory of a run, for sockets and notes; and the removal of directories left by killed runs.

The launcher holds a lock on its directory as long as it lives, and the system releases the lock however the launcher
ends. So a directory of this user, with a name of this form, that nobody has locked is left over from a killed run. The
next start removes it, under the same lock, after opening it in a way that excludes symbolic links; so two launchers
that start together do not disturb each other. A launcher may lose a new directory before it has taken the lock, and
then makes another.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from timely.config import check_address
from timely.errors import ConfigError, TransportError

PREFIX = "timely-run-"
_NAME = re.compile(re.escape(PREFIX) + r"[a-z0-9_]{8}")
_SHORT = "/tmp"
"""The parent of the directory if paths in the directory for temporary files are too long for sockets."""


@contextmanager
def run_directory(workers: int) -> Iterator[Path]:
    """Yield a new directory, with a name short enough for the paths of sockets; it is removed at the end."""
    try:
        place = tempfile.gettempdir()
        try:
            check_address(f"ipc://{place}/{PREFIX}12345678/0000", workers, protected=False)
        except ConfigError:
            place = _SHORT
        remove_left_directories(place)
        directory, lock = _make(place)
    except OSError as error:
        raise TransportError(f"cannot make a directory for sockets: {error.strerror}: {error.filename}") from None
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        os.close(lock)


def remove_left_directories(place: str) -> None:
    """Remove the directories that killed runs of this user have left in `place`."""
    with suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            if _NAME.fullmatch(entry.name):
                with suppress(OSError):  # it belongs to another user, is in use, or no longer exists
                    _remove_if_left(entry.path)


def _make(place: str) -> tuple[Path, int]:
    """Return a new directory and the descriptor that holds the lock on it."""
    while True:
        path = tempfile.mkdtemp(prefix=PREFIX, dir=place)
        # What is opened below is closed again unless it becomes the lock.
        lock = -1
        with suppress(FileNotFoundError):  # removed by another launcher, which took it for a leftover
            lock = _open(path)
            # Another launcher may have locked and removed the directory just before; then the lock is on a deleted one.
            if _take_lock(lock, without_locks=True) and _is_at(path, lock):
                return Path(path), lock
        if lock >= 0:
            os.close(lock)


def _remove_if_left(path: str) -> None:
    lock = _open(path)
    try:
        status = os.fstat(lock)
        is_private = status.st_uid == os.getuid() and stat.S_IMODE(status.st_mode) == stat.S_IRWXU
        if is_private and _take_lock(lock) and _is_at(path, lock):
            shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(lock)


def _open(path: str) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _take_lock(directory: int, *, without_locks: bool = False) -> bool:
    """Take the lock, until the directory is closed, unless somebody else has it; return whether it was taken.

    On a file system without locks the result is `without_locks`: no directories are removed there.
    """
    import fcntl

    try:
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return without_locks
    return True


def _is_at(path: str, directory: int) -> bool:
    """Return whether an open directory is still the one at this path."""
    return os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(directory))
