"""Directories of files as sinks: one immutable file for each commit that changes the view.

The file `000000000017.parquet` has the rows that commit 17 has changed, with the columns `time` and `diff` that the
other files of changes have, too. It is complete from the moment when it has this name:

    write `.new`, sync  ──►  rename it, sync the directory  ──►  replace `.mark`, in one step

So the rename is the step that applies a commit, and a file is never changed or removed after it, whatever readers have
seen. `.mark` has the stream, the last commit, and a digest of the names and sizes of all files up to it, by which
missing and foreign files are recognised. The files after that commit are those that a killed program has written before
it could replace the mark. They are complete, and no commit between them is missing, so opening the sink adds them to
the mark. A mark without a stream means that the directory is being emptied. `.lock` is locked by the one writer.

**The bytes of a file** are Parquet, Arrow, or an array of NumPy. Parquet and Arrow have the types that
`Change.to_arrow` makes. These follow from the types of the columns, except in columns of lists and structs, which Arrow
types by what they hold: the first file may have nothing but empty lists. So a file takes the types of the file before
it where these cover its own, and a type that covers both elsewhere.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from differential.data.disk import TEMPORARY, OsDisk, is_at, replace_file
from differential.extra import needs
from differential.session.changes import Change
from differential.session.sinks.files import Path, located, lock_of_writer
from differential.session.sinks.sink import Mark, Outlet
from differential.session.sinks.values import ADDED, check_names, in_order
from timely.errors import DataError, SessionError, StoreError
from timely.lowlevel import Typed, name_of

if TYPE_CHECKING:
    import pyarrow


Form = Callable[[Sequence[Change], str | None], bytes]
"""Makes a file of changes, given the path of the file before it if there is one. Raises DataError if it cannot."""
_TEXT_OF_ASCII, _TEXT_OF_UTF_8 = (1, 0), (3, 0)
"""The versions of `.npy` whose headers have such names of columns."""


def to_parquet(changes: Sequence[Change], former: str | None) -> bytes:
    """Return changes as a Parquet file.

    >>> to_parquet([Change(2, ("x",), (np.array([5, 3]),), np.array([1, -1]))], None)[:4]
    b'PAR1'
    """
    import pyarrow as pa
    from pyarrow import parquet

    table = _table(changes, former, parquet.read_schema)
    file = BytesIO()
    try:
        parquet.write_table(table, file)
    except pa.ArrowException as error:
        raise DataError(f"Parquet cannot hold these columns: {error}") from None
    return file.getvalue()


def to_arrow(changes: Sequence[Change], former: str | None) -> bytes:
    """Return changes as an Arrow file, in the file format of Arrow's IPC.

    >>> to_arrow([Change(2, ("x",), (np.array([5, 3]),), np.array([1, -1]))], None)[:6]
    b'ARROW1'
    """
    import pyarrow as pa

    def schema_of(path: str) -> pyarrow.Schema:
        with pa.OSFile(path) as file:
            return pa.ipc.open_file(file).schema

    table = _table(changes, former, schema_of)
    file = BytesIO()
    with pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    return file.getvalue()


def to_npy(changes: Sequence[Change], former: str | None) -> bytes:
    """Return changes as a structured array, whose fields are the columns.

    Raises DataError for columns other than integers, floats and booleans without nulls.

    >>> np.load(BytesIO(to_npy([Change(2, ("x",), (np.array([5, 3]),), np.array([1, -1]))], None))).tolist()
    [(5, 2, 1), (3, 2, -1)]
    """
    names = (*changes[0].columns, *ADDED)
    parts = [_array(names, change) for change in changes]
    array = parts[0] if len(parts) == 1 else np.concatenate(parts)
    file = BytesIO()
    is_ascii = all(map(str.isascii, names))
    np.lib.format.write_array(file, array, _TEXT_OF_ASCII if is_ascii else _TEXT_OF_UTF_8, allow_pickle=False)
    return file.getvalue()


def _array(names: Sequence[str], change: Change) -> np.ndarray[Any, Any]:
    """Return a change as a structured array with these fields."""
    rows = [np.asarray(column) if name_of(column) == "uint64" else column for column in change.rows]
    for name, column in zip(names, rows):
        if isinstance(column, Typed) or column.dtype.kind not in "biuf":
            raise DataError(
                f"column {name!r} is of type {name_of(column)}, and .npy files have integers, floats and booleans "
                "without nulls: leave the column out with a view, map it, or write parquet(...)"
            )
    columns = (*rows, np.full(len(change.diff), change.time), change.diff)
    array = np.empty(len(change.diff), [(name, column.dtype.str) for name, column in zip(names, columns)])
    for name, column in zip(names, columns):
        array[name] = column
    return array


def _table(changes: Sequence[Change], former: str | None, schema_of: Callable[[str], Any]) -> pyarrow.Table:
    """Return changes as an Arrow table, with the types of the file before it where its columns can have them."""
    import pyarrow as pa

    table: Any = pa.concat_tables([change.to_arrow() for change in changes], promote_options="permissive")
    # Other types follow from those of the columns, so they are those of the file before already.
    if former is None or not any(map(_is_by_values, table.schema.types)):
        return table
    try:
        wider: Any = pa.unify_schemas([schema_of(former), table.schema], promote_options="permissive")
        return table.cast(wider)
    except (pa.ArrowTypeError, pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise DataError(f"the columns have other types than in {former}: {error}") from None


def _is_by_values(of: Any) -> bool:
    """Return whether Arrow has found this type by looking at values."""
    import pyarrow as pa

    return bool(pa.types.is_nested(of) or pa.types.is_null(of))


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
