"""Sources in files: one, those of a directory or a pattern, and standard input; read once, or followed.

A file that is followed is read as it grows. If it is replaced while it is followed, as rotated logs are, the rest of
the old file is read, then the new one: once the old one has not grown for a second, because whoever writes may still
have it open, or for ten while the new one is empty. A directory that is followed is looked through for new files, each
of which is read once, in the order of their names: write a file elsewhere and move it there, because it is read as it
is found, except that a last line without an end counts once the file has not grown for a second. The source stops if a
file that was read grows. Names that begin with "." or "_", or end in ".tmp", are left alone.

The position of a file is a byte and a line, or a row, with a digest of the bytes or rows before it: a session that is
opened again notices that the file is another one. The position of a directory has the names of the files that were read
and are still there, and the sizes of the last of them (`differential.session.sources.directory`).
"""

from __future__ import annotations

import csv as _csv
import glob
import json
import os
import stat
import sys
import time as clock
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from differential.arguments import is_url
from differential.session.sources.bytes_of import Bytes, FileBytes, Overwritten, PipeBytes, RegularFile, StreamBytes
from differential.session.sources.directory import DirectoryFiles, size_of
from differential.session.sources.parts import FilePart, Place, TablePart, TextPart, is_marked
from differential.session.sources.source import Position, Reader, Rejected, SourceBatch, Target
from differential.session.sources.tables import chunks_of
from differential.session.sources.text import Csv, Format, JsonLines
from timely.errors import DataError, SessionError
from timely.lowlevel import notify, user_origin

Path = str | os.PathLike[str]
Replaced = Literal["stop", "begin"]
Identity = tuple[int, int]
"""The numbers of a device and of a file on it."""
QUIET = 1.0
"""A file that was replaced is read until it has not grown for as many seconds, and ten times as long while the new one
has no bytes."""


@dataclass(frozen=True)
class Files:
    """A source of files: `form` is "csv", "json" or "table"; `path` is None for standard input."""

    path: str | None
    form: str
    name: str
    follow: bool = False
    replaced: Replaced = "stop"
    delimiter: str = ","
    header: bool | Sequence[str] = True
    longest: int = Csv.longest

    def __post_init__(self) -> None:
        header = self.header
        if not isinstance(self.delimiter, str) or len(self.delimiter) != 1 or self.delimiter in '"\r\n':
            raise SessionError(
                f"delimiter is one character, neither a quote nor a line end, not {self.delimiter!r:.80}"
            )
        is_list = not isinstance(header, (bool, str)) and hasattr(header, "__len__")
        if not isinstance(header, bool) and not (is_list and all(isinstance(name, str) for name in header)):
            raise SessionError(f"header is a list of names, True or False, not {header!r:.80}")
        if self.replaced not in ("stop", "begin"):
            raise SessionError(f"replaced is 'stop' or 'begin', not {self.replaced!r:.80}")
        if type(self.longest) is not int or not 0 < self.longest < 1 << 31:
            raise SessionError(f"longest is a number of bytes, from 1 to 2,147,483,647, not {self.longest!r:.80}")

    def open(self, target: Target, position: Position | None) -> FilesReader:
        """Return a reader that goes on at a position."""
        known = json.loads(position) if isinstance(position, str) and self.path is not None else {}
        return FilesReader(self, target, known)

    def part(self, path: str | None, target: Target, place: Place, mark: str = "") -> FilePart:
        """Open a file at a place, with the mark of what is before it."""
        label = path or "standard input"
        if self.form == "table":
            assert path is not None
            return TablePart(chunks_of(path, target.names), label, target, int(place.get("row", 0)), mark)
        has_header = self.form == "csv" and self.header is True
        grows = self.follow and not (self.is_several and path is not None and path.endswith(".gz"))
        return TextPart(
            partial(_bytes_of, path), label, target, partial(self._format, target), has_header, place, grows
        )

    def change(self, path: str, target: Target, place: Place, mark: str) -> str:
        """Return how a file differs from what the mark is of, just before a place; an empty text if it does not."""
        another = "is another file, or a shorter one, than an earlier session has read"
        if self.form == "table":
            try:
                return "" if is_marked(chunks_of(path, target.names), int(place.get("row", 0)), mark) else another
            except (DataError, Overwritten, ValueError):  # ValueError is of Arrow and NumPy, too
                return another  # an earlier session has read another file
        at = int(place.get("at", 0))
        source = _bytes_of(path, at)
        try:
            if source.at != at or source.mark() != mark:
                return another
            goes_on = not place.get("is_in_long_line") and source.splits_a_line()
        finally:
            source.close()
        return "goes on in a line that an earlier session has read as the last one" if goes_on else ""

    @property
    def is_several(self) -> bool:
        """Whether the path is a directory, perhaps one that is made later, or a pattern, not the name of a file."""
        if self.path is None or os.path.isfile(self.path):
            return False
        return os.path.isdir(self.path) or glob.has_magic(self.path) or self.path.endswith(os.sep)

    def _format(self, target: Target, header: str | None) -> Format:
        if self.form == "json":
            return JsonLines(target)
        if header is None:
            names = target.names if isinstance(self.header, bool) else self.header
        else:
            try:
                header.encode()
                names = next(_csv.reader([header], delimiter=self.delimiter), [])
            except UnicodeEncodeError:
                raise DataError("the header is not UTF-8") from None
            except _csv.Error as error:
                if "\r" in header.rstrip("\r\n"):
                    raise DataError("lines end with CR alone; convert them to LF: `tr '\\r' '\\n'`") from None
                raise DataError(f"the header is not a record of CSV: {error}") from None
        return Csv(target, [name.strip() for name in names], self.delimiter, self.longest)


class FilesReader(Reader):
    """Reads files, one after the other."""

    is_ended = False

    def __init__(self, source: Files, target: Target, known: dict[str, Any]) -> None:
        self._source = source
        self._target = target
        self._size = 0
        """The bytes of the file when it was opened."""
        self._path: str | None = source.path
        self._part: FilePart | None = None
        self._place: Place = {}
        self._mark: str | None = None
        """The mark before the place of a file that an earlier session has read, until the file is opened."""
        self._left_out: Identity | None = None
        """The file at a path that is followed, if it cannot be read."""
        self._has_moved = False
        """Whether the position is the beginning of another file, and no batch has it yet."""
        self._last_growth = -1, 0.0
        """The size of a file that was replaced, and since when it has had it."""
        self._directory: DirectoryFiles | None = None
        """The files to read, if there may be several."""
        self._finished = 0
        """The bytes of the files that were read to their ends."""
        if source.path is not None and source.is_several:
            self._directory = DirectoryFiles(source.path, source.follow, known)
        if source.path is not None and not source.follow:
            _refuse_absent(source.path, self._directory is not None)
            if self._directory is not None and not known and self._directory.is_empty:
                notify(f"source {source.name!r} reads nothing: there is no such file yet")
        if self._directory is None:
            if "file" in known:
                self._place, self._mark = known["place"], known.get("mark")
                self._open_next()
        elif known.get("file"):
            self._resume(self._directory, known)

    def poll(self) -> SourceBatch | None:
        """Return the rows that are there, a block at a time."""
        rejected: list[Rejected] = []
        while not self.is_ended:
            piece = None
            try:
                if self._part is None and not self._open_next():
                    break
                assert self._part is not None
                piece = self._part.next()
            except Overwritten as error:
                self._begin_again(str(error))
                continue
            except (DataError, OSError, ValueError) as error:  # of Arrow and NumPy, too
                label = self._path or "standard input"
                rejected.append(Rejected(label, 1, os.path.basename(label), f"the file cannot be read: {error}"))
                if self._target.stops:
                    return SourceBatch((), rejected, self._position())
                if self._directory is None and self._path is not None:
                    self._left_out = _identity(self._path)  # one that is followed may be replaced by another
                self._finish()
                continue
            if piece is not None:
                self._place, self._has_moved = self._part.place, False  # the place also remains if the part is closed
                changes = [(self._target.kind, piece.columns)] if len(piece.columns[0]) else []
                return SourceBatch(changes, [*rejected, *piece.rejected], self._position())
            if self._part.is_ended:
                self._finish()
            elif not self._is_final(self._part):
                break
        if rejected or (self._has_moved and self._part is not None):
            self._has_moved = False
            return SourceBatch((), rejected, self._position())
        return None

    @property
    def note(self) -> str:
        """What a person should know of the file that is read, or an empty text."""
        return self._part.note if isinstance(self._part, TextPart) else ""

    @property
    def extent(self) -> tuple[float, float | None] | None:
        """The bytes of files that this has read, and of those that it reads, if known; None of what is followed."""
        source = self._source
        if source.follow:
            return None
        if source.path is None or source.form == "table":
            return 0.0, None
        if self.is_ended:
            return self._finished, self._finished
        size = size_of(self._path or "")
        left = size if self._directory is None else self._directory.bytes_left
        share = self._part.bytes.share() if isinstance(self._part, TextPart) else 0.0
        return self._finished + share * size, self._finished + left

    def close(self) -> None:
        part, self._part = self._part, None
        if part is not None:
            part.close()

    def _position(self) -> Position | Callable[[], Position]:
        """Return the position; of a directory a function that returns it, because it has the names of many files."""
        part, directory = self._part, self._directory
        found: dict[str, Any] = {"place": self._place if part is None else part.place}
        if part is not None:
            found["mark"] = part.mark
        if directory is None:
            return json.dumps(found | {"file": ""})
        found["file"] = "" if part is None else directory.name
        if part is not None:
            begins = any(found["place"].get(each) for each in ("at", "row", "skip"))
            found["is_partial"] = begins and not part.is_over()
        # Called now, because files that are read later do not belong to this position.
        read = directory.position()
        return lambda: json.dumps(found | read())

    def _resume(self, directory: DirectoryFiles, known: dict[str, Any]) -> None:
        """Open the file of a directory that an earlier session was reading, if it is still there."""
        path = directory.path_of(known["file"])
        if os.path.exists(path):
            directory.resume(known["file"])
            self._path, self._place, self._mark = path, known["place"], known.get("mark")
            self._open()
        elif known.get("is_partial") and self._source.replaced == "stop":
            raise SessionError(
                f"{path} is gone, and an earlier session has read only a part of it: put it back, or "
                '`replaced="begin"` continues without the rest'
            )

    def _open_next(self) -> bool:
        """Open the next file; return whether there is one. Without any, the source has ended if it is not followed."""
        if self._directory is not None:
            self._path, self._place = self._directory.next(), {}
            if self._path is None:
                self.is_ended = not self._source.follow
                return False
        elif self._path is not None:
            there = _identity(self._path)
            if there is None or there == self._left_out:
                return False
        self._open()
        return True

    def _open(self) -> None:
        """Open the file at its place, if it is the one that was read up to there, and else at its beginning."""
        mark, self._mark = self._mark or "", None
        # The size before the file is read: what comes later then counts as growth.
        path, place, self._size = self._path, self._place, size_of(self._path or "")
        if path is not None and stat.S_ISFIFO(os.stat(path).st_mode):
            raise DataError("it is a pipe, which is read with standard_input()")
        if mark and path is not None and (change := self._source.change(path, self._target, place, mark)):
            self._begin_again(change)
            mark = ""
        self._part = self._source.part(path, self._target, self._place, mark)

    def _finish(self) -> None:
        """Go on to the next file, if there may be one."""
        self._finished += size_of(self._path or "")
        if self._directory is not None:
            part, size = self._part, self._size
            if isinstance(part, TextPart) and isinstance(part.bytes, FileBytes) and part.is_ended:
                size = part.bytes.at  # what was read, which may be more than when it was opened
            self._directory.finish(size)  # of the file that `next` has returned last
            self._last_growth = -1, 0.0
        elif self._source.follow and self._path is not None and self._source.form != "table":
            self._place, self._has_moved = {}, True  # it was replaced, and ended
        else:
            self.is_ended = True
        self.close()

    def _is_final(self, part: FilePart) -> bool:
        """Return whether a file that may grow will not, as far as can be known: then the rest of it is read.

        It has not grown for a moment, and another one is in its place. In a directory, the end of a line is enough.
        """
        source = getattr(part, "bytes", None)
        if not isinstance(part, TextPart) or not isinstance(source, RegularFile) or self._path is None:
            return False
        if self._directory is not None:
            patience = 0.0 if part.is_over() else QUIET
        elif _identity(self._path) in (None, source.identity()):
            self._last_growth = -1, 0.0
            return False
        else:
            patience = QUIET if size_of(self._path) else 10 * QUIET
        size, now = source.size(), clock.monotonic()
        if size != self._last_growth[0]:
            self._last_growth = size, now
        if now < self._last_growth[1] + patience:
            return False
        part.grows = False
        return True

    def _begin_again(self, what: str) -> None:
        """Close the file, to read it from its beginning. Raises SessionError if the program has not asked for this."""
        self.close()
        if self._source.replaced == "stop":
            raise SessionError(f'{self._path} {what}: `replaced="begin"` reads it from its beginning')
        self._place = {}


def _refuse_absent(path: str, is_several: bool) -> None:
    """Raise SessionError if there is no such file or directory, or no directory for the files of a pattern."""
    directory = os.path.dirname(path)
    if not is_several and not os.path.exists(path):
        raise SessionError(f"there is no file or directory {path}")
    if is_several and not glob.has_magic(directory) and not os.path.isdir(directory):
        raise SessionError(f"there is no directory {directory}")


def _name_of(path: Path) -> str:
    """Return the path as the name of a source: a text, also if the path is not UTF-8."""
    return os.fsencode(path).decode(errors="backslashreplace")


def _identity(path: str) -> Identity | None:
    """Return the numbers of the device and the file at a path, None if there is no file."""
    try:
        there = os.stat(path)
    except FileNotFoundError:
        return None
    return there.st_dev, there.st_ino


def _absolute(path: Path) -> str:
    """Return where a path is, wherever the program changes to later; a slash at its end stays.

    Raises SessionError for a URL.
    """
    if is_url(_name_of(path)):
        raise SessionError(
            f"{_name_of(path)} is a URL, not the path of a file (at {user_origin()}): download the files, or read "
            "them with pandas or Polars, and insert() the frames"
        )
    return os.path.join(os.getcwd(), path) if os.fspath(path) else ""


def _bytes_of(path: str | None, at: int) -> Bytes:
    if path is None:
        return PipeBytes(sys.stdin.fileno())
    return StreamBytes(path, at) if path.endswith(".gz") else FileBytes(path, at)


def csv(
    path: Path,
    *,
    follow: bool = False,
    delimiter: str = ",",
    header: bool | Sequence[str] = True,
    replaced: Replaced = "stop",
    longest: int = Csv.longest,
    name: str | None = None,
) -> Files:
    """Return a source of CSV: a file, a directory, or a pattern such as "orders/*.csv"; gzip too, by the ending `.gz`.

    The first line names the columns, of which the table takes its own; `header=False` has them in the table's order,
    and a list of names in that order. With `follow` the source does not end. `replaced` is what happens if a file is
    another one than it was: an error, or reading it from its beginning. If no record ends in `longest` bytes, because a
    quote is not closed, their first line is a record that is not a row.

    >>> import tempfile
    >>> from differential.session import Session
    >>> with tempfile.NamedTemporaryFile("w+") as file, Session() as db:
    ...     print("item,price", "nut,0.5", "cog,2", sep="\\n", file=file, flush=True)
    ...     stock = db.table("stock", {"item": str, "price": float}, key="item")
    ...     feed = stock.read_from(csv(file.name))
    ...     db.run()
    ...     stock.records()
    1
    [('cog', 2.0), ('nut', 0.5)]
    """
    return Files(_absolute(path), "csv", name or _name_of(path), follow, replaced, delimiter, header, longest)


def json_lines(path: Path, *, follow: bool = False, replaced: Replaced = "stop", name: str | None = None) -> Files:
    """Return a source of JSON, one object a line, in files as those of `csv`.

    >>> json_lines("events.jsonl", follow=True).name
    'events.jsonl'
    """
    return Files(_absolute(path), "json", name or _name_of(path), follow, replaced)


def tables(path: Path, *, follow: bool = False, replaced: Replaced = "stop", name: str | None = None) -> Files:
    """Return a source of Parquet, Arrow or `.npy`, by the ending: a file, a directory, or a pattern.

    With `follow`, new files of a directory are read. `replaced` is as in `csv`.

    >>> tables("orders/*.parquet", name="orders").name
    'orders'
    """
    return Files(_absolute(path), "table", name or _name_of(path), follow, replaced)


def standard_input(form: Literal["csv", "json"] = "csv", *, delimiter: str = ",") -> Files:
    """Return standard input as a source. It has no position: a session that is opened again reads what comes then.

    >>> standard_input("json").name
    'standard input'
    """
    if form not in ("csv", "json"):
        raise SessionError(f"standard input is 'csv' or 'json', not {form!r:.80} (at {user_origin()})")
    return Files(None, form, "standard input", delimiter=delimiter)
