"""The files of a directory, or of a pattern: those that were read, and those to read next.

A listing finds the files that were not read yet, and they are read in the order of their names. The next listing is
made when none of them is left, so a read of many files costs a few listings. It finds the files that have arrived in
the meantime, whatever their names; if there are any, it forgets the files that were read and are gone.

The position has the names of the files that were read, relative to the directory in which the last part of the path is:
the directory may be moved. The names become a text once for each commit.
"""

from __future__ import annotations

import fnmatch
import glob
import os
from collections.abc import Callable
from itertools import accumulate, islice
from typing import Any

from timely.errors import SessionError

SIZES = 100
"""The sizes of as many files are kept: of those that were read last."""


class DirectoryFiles:
    """The files at a path, from a position on. If it is followed, a file that has grown since it was read is refused.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as path:
    ...     for name in "b", "a":
    ...         open(os.path.join(path, name), "w").close()
    ...     directory, found = DirectoryFiles(path, False, {}), []
    ...     while (file := directory.next()) is not None:
    ...         found.append(os.path.basename(file))
    ...         directory.finish(0)
    >>> found
    ['a', 'b']
    """

    def __init__(self, path: str, is_followed: bool, known: dict[str, Any]) -> None:
        self._path = path
        self._base = os.path.dirname(path) or os.curdir
        self._is_followed = is_followed
        done: list[str] = known.get("done", [])
        sizes: list[int] = known.get("sizes", [])
        self._read: dict[str, int | None] = dict.fromkeys(done) | dict(zip(done[-len(sizes) :], sizes))
        """How many bytes were read of each file, if that is known, by their names: the last one was read last.

        Positions share this, so names are only ever added to it.
        """
        self._checked = len(self._read)
        """How many files were read before the last listing."""
        self._waiting: list[tuple[str, str]] = []
        """The paths and names of the files to read, the first one last: it stays there until the next one is asked for,
        so that an interrupt loses none."""
        self._bytes: list[int] | None = None
        """How many bytes the first of `_waiting` have, for each number of them, if that was asked since the listing."""

    @property
    def name(self) -> str:
        """The name of the file that `next` has returned."""
        return self._waiting[-1][1]

    @property
    def is_empty(self) -> bool:
        """Whether there is no file now."""
        return not self._listed()

    @property
    def bytes_left(self) -> int:
        """How many bytes the files have that were found and not read to their ends."""
        if not self._waiting:
            self._look()
        if self._bytes is None:
            self._bytes = [0, *accumulate(size_of(path) for path, _ in self._waiting)]
        return self._bytes[len(self._waiting) - (self._waiting != [] and self.name in self._read)]

    def path_of(self, name: str) -> str:
        """Return the path of a file. Names lead up from a pattern of directories, which is not a path itself."""
        path = os.path.join(self._base, name)
        return os.path.normpath(path) if name.startswith(os.pardir + os.sep) else path

    def resume(self, name: str) -> None:
        """Make a file that an earlier session has read in part the next one."""
        self._look()
        self._waiting = [*(each for each in self._waiting if each[1] != name), (self.path_of(name), name)]

    def next(self) -> str | None:
        """Return the path of the next file, None if there is none now. Raises SessionError if one has grown."""
        while self._waiting or self._look_again():
            path, name = self._waiting[-1]
            if name not in self._read and os.path.isfile(path):  # it may be gone since the listing
                return path
            self._waiting.pop()
        return None

    def finish(self, size: int) -> None:
        """Record that the file was read, and how many bytes of it."""
        self._read[self.name] = size  # `next` passes over it from now on

    def position(self) -> Callable[[], dict[str, Any]]:
        """Return a function that returns the files that were read by now, in values of JSON."""
        read, count = self._read, len(self._read)

        def found() -> dict[str, Any]:
            names = list(islice(read, count))
            return {"done": names, "sizes": [size for name in names[-SIZES:] if (size := read[name]) is not None]}

        return found

    def _look_again(self) -> bool:
        """Refuse files that have grown, list the directory, and return whether there is a file to read."""
        if self._is_followed:
            recent = max(SIZES, len(self._read) - self._checked)
            for name, size in islice(reversed(self._read.items()), recent):
                if size is not None and (there := size_of(self.path_of(name))) > size:
                    raise SessionError(
                        f"{self.path_of(name)} had {size:,} bytes when it was read, and now has {there:,}: write a "
                        "file elsewhere and move it there once it is complete; move this one away to continue "
                        "without the rest"
                    )
        return self._look()

    def _look(self) -> bool:
        """List the directory, and return whether there is a file to read. If so, files that are gone are forgotten.

        If not, they are kept: a directory may be away for a while, and its files must not be read again.
        """
        listed = self._listed()
        self._waiting = sorted([each for each in listed if each[1] not in self._read], reverse=True)
        self._bytes = None
        if self._waiting and len(listed) - len(self._waiting) < len(self._read):
            there = {name for _, name in listed}
            # A new dict, because positions that were returned still read the former one.
            self._read = {name: size for name, size in self._read.items() if name in there}
        self._checked = len(self._read)
        return bool(self._waiting)

    def _listed(self) -> list[tuple[str, str]]:
        """Return the paths and names of the files that are there."""
        path = self._path
        if os.path.isdir(path) or path.endswith(os.sep):
            directories, pattern = [path], "*"
        else:
            directory, pattern = os.path.split(path)
            directories = glob.glob(directory) if glob.has_magic(directory) else [directory]
        found = []
        for directory in directories:
            inner = os.path.relpath(directory, self._base)
            try:
                with os.scandir(directory) as scanned:
                    entries = {entry.name: entry for entry in scanned}
            except OSError:  # it is gone, or is not a directory
                continue
            for name in fnmatch.filter(entries, pattern):
                if not name.startswith((".", "_")) and not name.endswith(".tmp") and _is_file(entries[name]):
                    found.append((entries[name].path, name if inner == os.curdir else os.path.join(inner, name)))
        return found


def size_of(path: str) -> int:
    """Return the bytes of a file, 0 if it was removed."""
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:  # a link that leads nowhere
        return False
