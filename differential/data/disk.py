"""The operations of a file system that a local store consists of, so that a simulation can stand in for them.

A file system keeps less than it shows: after a crash of the machine a file may lack what was written since its last
`fsync`, and a directory what was renamed, created or removed since its own. `Disk` therefore names the two kinds of
sync, and a simulation forgets what neither has reached.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Protocol

TEMPORARY = ".tmp"
_LOCKS = 100
"""How often a lock may be removed while a program waits for it."""


class Disk(Protocol):
    """The operations of a file system. They raise OSError."""

    def make_directory(self, path: str) -> None:
        """Make a directory and its parents, unless they exist, and sync their entries."""

    def write(self, path: str, data: bytes) -> None:
        """Write a file and sync its contents. Its entry in the directory is not synced."""

    def read(self, path: str) -> bytes:
        """Return the contents of a file. Raises FileNotFoundError."""

    def rename(self, old: str, new: str) -> None:
        """Give a file another name, in one step. The directory is not synced."""

    def remove(self, path: str) -> None:
        """Remove a file. Raises FileNotFoundError."""

    def sync_directory(self, path: str) -> None:
        """Make the entries of a directory survive a crash."""

    def names(self, path: str) -> list[str]:
        """Return the names in a directory."""

    def locked(self, path: str) -> AbstractContextManager[None]:
        """Return a context in which this process alone holds the lock of that name."""


def replace_file(disk: Disk, path: str, data: bytes) -> None:
    """Write a file in such a way that, even after a crash, it has either all of its new contents or those it had."""
    # In this order: after a crash the name must not lead to a file whose contents are not on disk.
    disk.write(path + TEMPORARY, data)
    disk.rename(path + TEMPORARY, path)
    disk.sync_directory(os.path.dirname(path) or ".")


class OsDisk:
    """The file system of this machine. Locks are `flock`: the system releases them however a process ends."""

    def make_directory(self, path: str) -> None:
        missing = []
        while not os.path.isdir(path):
            missing.append(path)
            path = os.path.dirname(path) or "."
        # From the outermost on; a directory that is not in its parent on disk is lost with all that is in it.
        for each in reversed(missing):
            os.makedirs(each, exist_ok=True)
            self.sync_directory(os.path.dirname(each) or ".")

    def write(self, path: str, data: bytes) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
            os.fsync(descriptor)
        except OSError:
            with suppress(OSError):
                os.unlink(path)  # what is on a full disk would keep it full
            raise
        finally:
            os.close(descriptor)

    def read(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def rename(self, old: str, new: str) -> None:
        os.replace(old, new)

    def remove(self, path: str) -> None:
        os.remove(path)

    def sync_directory(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def names(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    @contextmanager
    def locked(self, path: str) -> Iterator[None]:
        import fcntl  # here, because Windows has none

        for _ in range(_LOCKS):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if is_at(descriptor, path):  # else it was removed meanwhile, and another file is the lock
                    yield
                    return
            finally:
                os.close(descriptor)
        raise OSError(errno.ESTALE, f"{path} was removed {_LOCKS} times while this program waited for it")


def is_at(descriptor: int, path: str) -> bool:
    """Return whether an open file is the one with a path."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
