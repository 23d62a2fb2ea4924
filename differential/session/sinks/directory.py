"""Directories of files as sinks: one immutable file for each commit that changes the view.

The file `000000000017.parquet` has the rows that commit 17 has changed, with the columns `time` and `diff` that the
other files of changes have, too. It is complete from the moment when it has this name:

    write `.new`, sync  ──►  rename it, sync the directory  ──►  replace `.mark`, in one step

So the rename is the step that applies a commit, and a file is never changed or removed after it, whatever readers have
seen. `.mark` has the stream, the last commit, and a digest of the names and sizes of all files up to it, by which
missing and foreign files are recognised. The files after that commit are those that a killed program has written before
it could replace the mark. They are complete, and no commit between them is missing, so opening the sink adds them to
the mark. A mark without a stream means that the directory is being emptied. `.lock` is locked by the one writer.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from itertools import groupby
from operator import attrgetter
from typing import Literal, NamedTuple

import numpy as np

from differential.data.disk import TEMPORARY, OsDisk, is_at, replace_file
from differential.extra import needs
from differential.session.changes import Change
from differential.session.sinks.files import Path, located, lock_of_writer
from differential.session.sinks.forms import Form, to_arrow, to_npy, to_parquet
from differential.session.sinks.sink import Mark, Outlet
from differential.session.sinks.values import check_names, in_order
from timely.errors import DataError, SessionError, StoreError

Ending = Literal["parquet", "arrow", "npy"]
FORMS: dict[str, Form] = {"parquet": to_parquet, "arrow": to_arrow, "npy": to_npy}
"""How the files are made that end so."""
_DIGITS = 12
_LEFT_BY_KILLED = (".new", f".mark{TEMPORARY}")


class _Noted(NamedTuple):
    """The contents of the mark's file: the commit is None before the first one is written."""

    stream: str
    commit: int | None
    digest: str

    @classmethod
    def of(cls, data: bytes) -> _Noted:
        """Return what was noted. Raises ValueError if these bytes are not of a mark."""
        found = json.loads(data)
        if not isinstance(found, dict) or set(found) != set(cls._fields):
            raise ValueError("no mark")
        noted = cls(**found)
        is_commit = noted.commit is None or type(noted.commit) is int
        if not is_commit or type(noted.stream) is not str or type(noted.digest) is not str:
            raise ValueError("no mark")
        return noted


@dataclass(frozen=True)
class DirectorySink:
    """A sink in a directory, whose files end in `.{ending}`."""

    path: str
    ending: Ending
    name: str

    def open(self, outlet: Outlet) -> DirectoryWriter:
        """Return the writer of the directory, which is made if there is none.

        Raises DataError if the view has a column of a name that the sink adds; SessionError if the path is not that of
        a directory, or if the directory has files of other programs that have the same ending; StoreError if there is
        another writer, and OSError for other failures.
        """
        if os.path.exists(self.path) and not os.path.isdir(self.path):
            raise SessionError(f"{self.path} is not a directory: the sink writes a file for each commit into one")
        OsDisk().make_directory(self.path)
        check_names(outlet.columns or ())
        return DirectoryWriter(self.path, self.ending, outlet)


class DirectoryWriter:
    """Adds files to a directory."""

    def __init__(self, path: str, ending: Ending, outlet: Outlet) -> None:
        self._path = path
        self._ending = ending
        self._outlet = outlet
        self._disk = OsDisk()
        self._noted: _Noted | None = None
        self._last: tuple[str, int] | None = None
        """The path and size of the last file."""
        self._lock = lock_of_writer(self._at(".lock"), path)
        try:
            for name in _LEFT_BY_KILLED:
                with suppress(FileNotFoundError):
                    self._disk.remove(self._at(name))
            self._refuse_foreign()
        except BaseException:
            self.close()
            raise

    def mark(self) -> Mark | None:
        """Return the mark, with the files that were written after it; one of no stream if it does not fit the files."""
        files = self._files()
        try:
            noted = _Noted.of(self._disk.read(self._at(".mark")))
        except FileNotFoundError:
            return Mark("", 0) if files else None
        except ValueError:
            return Mark(f"{self._at('.mark')} is damaged", 0)
        if not noted.stream:
            self._empty()
            return None
        known = -1 if noted.commit is None else noted.commit
        digest = ""
        for _, name in (each for each in files if each[0] <= known):
            digest = self._digest(digest, name)
        if digest != noted.digest:
            return Mark(f"{self._path} does not have the files that were written", 0)
        self._noted = noted
        if files:
            self._last = _size_of(self._at(files[-1][1]))
        if after := [each for each in files if each[0] > known]:
            for _, name in after:
                digest = self._digest(digest, name)
            self._note(noted.stream, after[-1][0], digest)
        return None if self._noted.commit is None else Mark(self._noted.stream, self._noted.commit)

    def write(self, changes: Sequence[Change], mark: Mark) -> None:
        """Add a file for each commit, then replace the mark."""
        self._refuse_changed()
        if self._noted is None or self._noted.commit is None:
            self._note(mark.stream, None, "")  # after a crash, files are those of this stream
            changes = changes or self._without_rows(mark.commit)
        assert self._noted is not None
        digest = self._noted.digest
        for commit, same in groupby(changes, attrgetter("time")):
            name = f"{commit:0{_DIGITS}d}.{self._ending}"
            self._add(name, [in_order(change) for change in same])
            digest = self._digest(digest, name)
        self._note(mark.stream, mark.commit, digest)

    def clear(self) -> None:
        # In the other order, a crash in between would leave a mark whose files are gone.
        self._note("", None, "")
        self._empty()

    def close(self) -> None:
        descriptor, self._lock = self._lock, -1  # a second call must not close what has this number by then
        if descriptor >= 0:
            with suppress(OSError):
                os.close(descriptor)

    def _add(self, name: str, changes: Sequence[Change]) -> None:
        for change in changes:
            check_names(change.columns)
        try:
            data = FORMS[self._ending](changes, None if self._last is None else self._last[0])
        except DataError as error:
            raise DataError(f"{self._at(name)} cannot be written: {error}") from None
        self._disk.write(self._at(".new"), data)
        self._disk.rename(self._at(".new"), self._at(name))
        self._disk.sync_directory(self._path)
        self._last = _size_of(self._at(name))

    def _without_rows(self, commit: int) -> list[Change]:
        """Return what a view without rows begins with: columns that readers find, if their types are known."""
        columns, empty = self._outlet.columns, self._outlet.empty
        if columns is None or empty is None:
            return []
        return [Change(commit, columns, empty, np.empty(0, np.int64))]

    def _note(self, stream: str, commit: int | None, digest: str) -> None:
        noted = _Noted(stream, commit, digest)
        replace_file(self._disk, self._at(".mark"), json.dumps(noted._asdict()).encode())
        self._noted = noted

    def _empty(self) -> None:
        for _, name in self._files():
            self._disk.remove(self._at(name))
        self._disk.sync_directory(self._path)
        self._noted = self._last = None

    def _files(self) -> list[tuple[int, str]]:
        """Return the commit and the name of each file of the sink, by commits."""
        found = (re.fullmatch(rf"(\d{{{_DIGITS},}})\.{self._ending}", name) for name in self._disk.names(self._path))
        return sorted((int(each[1]), each[0]) for each in found if each is not None)

    def _refuse_foreign(self) -> None:
        """Raise SessionError if readers of the directory would also read a file that is not of the sink."""
        own = {name for _, name in self._files()}
        for name in self._disk.names(self._path):
            if name.endswith(f".{self._ending}") and name not in own and not name.startswith("."):
                raise SessionError(
                    f"{self._at(name)} is not a file of the sink, and who reads {self._at(f'*.{self._ending}')} would "
                    "read it, too: move it, or name another directory"
                )

    def _refuse_changed(self) -> None:
        """Raise StoreError if the directory or its last file is no longer the one that was written."""
        if not is_at(self._lock, self._at(".lock")):
            raise StoreError(f"{self._path} was moved or removed while it was written to")
        if self._last is not None and self._last != _size_of(self._last[0]):
            raise StoreError(f"{self._last[0]} was changed or removed by another program")

    def _digest(self, digest: str, name: str) -> str:
        """Return the digest of files after those of another digest."""
        size = os.stat(self._at(name)).st_size
        return sha256(f"{digest} {name} {size}".encode()).hexdigest()[:32]

    def _at(self, name: str) -> str:
        return os.path.join(self._path, name)


def parquet(directory: Path, *, name: str | None = None) -> DirectorySink:
    """Return a sink that adds a Parquet file to a directory for each commit, which is then complete and never changes.

    The directory is made if it does not exist. The name of the sink is by default the path of the directory. Raises
    SessionError if there is no directory to make it in, and ImportError if pyarrow is missing, as `arrow` does.

    >>> parquet("spent").name
    'spent'
    """
    needs("pyarrow", "to write Parquet files")
    return DirectorySink(located(directory, "directory"), "parquet", name or os.fspath(directory))


def arrow(directory: Path, *, name: str | None = None) -> DirectorySink:
    """Return a sink that adds an Arrow file to a directory for each commit, in the file format of Arrow's IPC.

    >>> arrow("spent", name="amounts").name
    'amounts'
    """
    needs("pyarrow", "to write Arrow files")
    return DirectorySink(located(directory, "directory"), "arrow", name or os.fspath(directory))


def npy(directory: Path, *, name: str | None = None) -> DirectorySink:
    """Return a sink that adds a structured array of NumPy to a directory for each commit, as a `.npy` file.

    The columns must be integers, floats or booleans without nulls. The delivery ends at others.

    >>> npy("sizes").name
    'sizes'
    """
    return DirectorySink(located(directory, "directory"), "npy", name or os.fspath(directory))


def _size_of(path: str) -> tuple[str, int] | None:
    try:
        return path, os.stat(path).st_size
    except FileNotFoundError:
        return None
