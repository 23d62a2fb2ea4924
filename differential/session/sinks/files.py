"""Files of changes as sinks: CSV with a header, or one JSON object on each line.

A file grows by the lines of each commit, in the order of commits. Each line is a changed row, with the number of the
commit (`time`) and the change in how often the row occurs (`diff`). Beside the file, `NAME.mark` has the mark, the size
that the file had when the mark was written, and a digest of its last bytes, by which another file is recognised:

    append the lines, sync  ──►  replace the mark, in one step

After a crash, bytes beyond that size belong to a commit that is written again, so they are cut off. The lines of a
commit are sorted, so a program that has read them already finds the same bytes again. `NAME.lock` is locked by the one
writer of the file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from differential.data.disk import OsDisk, is_at, replace_file
from differential.session.changes import Change
from differential.session.sinks.sink import Mark, Outlet
from differential.session.sinks.values import ADDED, as_json, as_line, as_texts, check_names, in_order
from differential.session.sources.bytes_of import CHECKED, digest
from timely.errors import SessionError, StoreError
from timely.lowlevel import user_origin

Path = str | os.PathLike[str]


@dataclass(frozen=True)
class File:
    """A sink in a file."""

    path: str
    form: Literal["csv", "json"]
    name: str

    def open(self, outlet: Outlet) -> FileWriter:
        """Return the writer of the file.

        Raises DataError if the view has a column of a name that the sink adds, SessionError if a directory or a device
        has the name, StoreError if there is another writer, and OSError for other failures.
        """
        if os.path.exists(self.path) and not os.path.isfile(self.path):
            raise SessionError(f"{self.path} is not a file that can be appended to and truncated")
        check_names(outlet.columns or ())
        return FileWriter(self.path, self.form)


class FileWriter:
    """Appends to a file of changes."""

    def __init__(self, path: str, form: str) -> None:
        self._path = path
        self._form = form
        self._noted: dict[str, Any] | None = None
        """The contents of the mark's file."""
        self._lock = lock_of_writer(f"{path}.lock", path)  # first: who has it may cut off the file
        self._file = -1
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        except BaseException:
            self.close()
            raise

    def mark(self) -> Mark | None:
        """Return the mark, after truncating the file to it; one of no stream if it does not fit the file."""
        size = os.fstat(self._file).st_size
        try:
            with open(f"{self._path}.mark", encoding="utf-8") as file:
                noted = json.load(file)
                written, commit, stream = noted["size"], noted["commit"], noted["stream"]
                last = noted.get("last")  # earlier versions of this library have noted none
                if not _is_mark(written, commit, stream, last):
                    raise ValueError("no mark")
        except FileNotFoundError:
            return Mark("", 0) if size else None
        except (ValueError, KeyError, TypeError):
            return Mark(f"{self._path}.mark is damaged", 0)
        if size < written:
            return Mark(f"{self._path} has {size} bytes, but {written} were written", 0)
        if last not in (None, self._last(written)):
            return Mark(f"{self._path} is another file than the one that was written", 0)
        os.ftruncate(self._file, written)  # a commit beyond the mark is written again
        self._noted = noted
        return None if commit is None else Mark(stream, commit)

    def write(self, changes: Sequence[Change], mark: Mark) -> None:
        """Append the lines of some changes, then replace the mark."""
        if self._noted is None:
            self._note(mark.stream, None, 0)  # after a crash, what the file then has is a part of the first commit
        start = os.fstat(self._file).st_size
        assert self._noted is not None
        if start != self._noted["size"]:
            raise StoreError(
                f"{self._path} has {start} bytes, but {self._noted['size']} were written: another program changed it"
            )
        data = b"".join(self._lines(changes, not start))
        view = memoryview(data)
        while view:  # after an error in between, the next writer truncates the file to the mark
            view = view[os.write(self._file, view) :]
        os.fsync(self._file)  # before the mark, which must not count bytes that a crash can take away
        if not is_at(self._file, self._path):
            raise StoreError(f"{self._path} was moved or removed while it was written to")
        self._note(mark.stream, mark.commit, start + len(data))

    def clear(self) -> None:
        # In the other order, a crash in between would leave a file that is shorter than its mark states.
        self._note("", None, 0)
        os.ftruncate(self._file, 0)

    def close(self) -> None:
        for descriptor in (self._file, self._lock):  # the lock last: then another writer may begin
            if descriptor >= 0:
                with suppress(OSError):
                    os.close(descriptor)
        self._file = self._lock = -1

    def _note(self, stream: str, commit: int | None, size: int) -> None:
        noted = {"stream": stream, "commit": commit, "size": size, "last": self._last(size)}
        replace_file(OsDisk(), f"{self._path}.mark", json.dumps(noted).encode())
        self._noted = noted

    def _last(self, size: int) -> str:
        """Return a digest of the last bytes of the file if it is cut off at a size."""
        start = max(0, size - CHECKED)
        return digest(os.pread(self._file, size - start, start))

    def _lines(self, changes: Sequence[Change], is_first: bool) -> Iterable[bytes]:
        for change in changes:
            check_names(change.columns)
            if self._form == "csv" and is_first:
                yield (",".join(map(_field, (*change.columns, *ADDED))) + "\n").encode()
            is_first = False
            form = _csv_lines if self._form == "csv" else _json_lines
            yield form(in_order(change)).encode()


def _json_lines(change: Change) -> str:
    diffs = change.diff.tolist()
    names = (*change.columns, *ADDED)
    columns = [as_json(name, column) for name, column in zip(change.columns, change.rows)]
    rows = zip(*columns, [change.time] * len(diffs), diffs)
    return "".join(f"{as_line(dict(zip(names, row)))}\n" for row in rows)


def _csv_lines(change: Change) -> str:
    columns = [map(_field, as_texts(name, column)) for name, column in zip(change.columns, change.rows)]
    rows = zip(*columns, map(str, change.diff.tolist()))
    return "".join(f"{','.join(fields)},{change.time},{diff}\n" for *fields, diff in rows)


def _field(text: str | None) -> str:
    """Return a field of CSV: an empty one for a null, a pair of quotes for an empty text."""
    if text is None:
        return ""
    if not text or any(character in text for character in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def csv(path: Path, *, name: str | None = None) -> File:
    """Return a sink that appends to a CSV file, which begins with a header.

    A null is an empty field, and an empty text is a pair of quotes. The name of the sink is by default the path.
    Raises SessionError if the file's directory does not exist, as `json_lines` does.

    >>> csv("spent.csv").name
    'spent.csv'
    """
    return File(located(path, "file"), "csv", name or os.fspath(path))


def json_lines(path: Path, *, name: str | None = None) -> File:
    """Return a sink that appends a JSON object for each changed row to a file, one on each line.

    The name of the sink is by default the path.

    >>> json_lines("spent.jsonl", name="spent").name
    'spent'
    """
    return File(located(path, "file"), "json", name or os.fspath(path))


def located(path: Path, what: Literal["file", "directory"]) -> str:
    """Return where a path is, wherever the program changes to later. Raises SessionError if it is in no directory."""
    text = os.fspath(path)
    whole = os.path.join(os.getcwd(), text)
    parent = os.path.dirname(os.path.normpath(whole) if what == "directory" else text) or os.curdir
    if not os.path.isdir(parent):
        raise SessionError(
            f"there is no directory {parent} for the {what} of a sink (at {user_origin()}): make it first"
        )
    return whole


def lock_of_writer(lock: str, path: str) -> int:
    """Return the descriptor of the lock of the one writer to a path. Raises StoreError if there is another writer."""
    import fcntl  # here, because Windows has none

    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException as error:
        os.close(descriptor)
        if isinstance(error, BlockingIOError):
            raise StoreError(f"{path} is being written to by another session") from None
        raise
    return descriptor


def _is_mark(size: Any, commit: Any, stream: Any, last: Any) -> bool:
    """Return whether these are the values of a mark."""
    is_commit, is_digest = commit is None or type(commit) is int, last is None or type(last) is str
    return type(size) is int and size >= 0 and is_commit and type(stream) is str and is_digest
