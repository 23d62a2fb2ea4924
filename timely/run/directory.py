"""The private directory of a run, for sockets and notes, and the removal of those that killed runs have left.

The launcher holds a lock on its directory as long as it lives, and the system releases it however the launcher ends. So
a directory with our kind of name, of this user, that nobody has locked is left of a run that was killed. The next start
removes it, also under the lock, and opens it as a directory that is no symbolic link; hence two that start at once do
not disturb each other. Who makes a directory may lose it before the lock is taken, and then makes another.
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
"""Where the directory is if paths in the one for temporary files are too long for sockets."""


@contextmanager
def run_directory(workers: int) -> Iterator[Path]:
    """Yield a new directory with a name short enough for socket paths in it, which is removed at the end."""
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
                with suppress(OSError):  # another user's, or in use, or gone
                    _remove_if_left(entry.path)


def _make(place: str) -> tuple[Path, int]:
    """Return a new directory, and the descriptor that holds the lock on it."""
    while True:
        path = tempfile.mkdtemp(prefix=PREFIX, dir=place)
        lock = -1
        with suppress(FileNotFoundError):  # removed by another launcher, to which it seemed left over
            lock = _open(path)
            if _take_lock(lock, or_none=True) and _is_at(path, lock):
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


def _take_lock(directory: int, *, or_none: bool = False) -> bool:
    """Return whether nobody else has the lock, which is now held until the directory is closed.

    Where the file system has no locks, the answer is `or_none`: nobody removes anything there.
    """
    import fcntl

    try:
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return or_none
    return True


def _is_at(path: str, directory: int) -> bool:
    """Return whether an open directory is the one at this path."""
    return os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(directory))
