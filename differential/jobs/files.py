"""The files that a job writes. None replaces another before it is complete.

A file is written under a temporary name beside its place, and takes its place once the job has ended well. So a job
that fails, or is interrupted, leaves a file from before as it was, and a directory that cannot be written to is found
before anything is read. Streams (`-`, a pipe, a device) and the changes of a job that follows a file appear as they are
made, because someone may be reading them.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from timely.errors import ConfigError, DataError
from timely.services import has_no_reader, has_prefixes

if TYPE_CHECKING:
    import pyarrow as pa

UNFIT = re.compile(r"[\t\n\r]|^ | \Z")
"""What a field of a line of changes cannot hold: what divides fields and lines, and blanks at its ends."""

STANDARD = "-"
"""The name of standard output."""


class OutputFile:
    """A file that takes its place when the `with` block ends without an exception.

    Raises DataError where the file cannot be written, also if that turns out later.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp(), "answer.txt")
    >>> with OutputFile(str(place)) as file:
    ...     _ = file.write("complete")
    ...     place.exists()
    False
    >>> place.read_text()
    'complete'
    """

    def __init__(self, name: str, *, is_live: bool = False, binary: bool = False) -> None:
        self.name = name
        self._path = Path(name)
        self._partial: Path | None = None
        mode = "wb" if binary else "w"
        encoding = None if binary else "utf-8"
        with _writing(name):
            if name == STANDARD:
                if sys.stdout is None:
                    raise OSError(9, "standard output is closed")
                if has_prefixes():
                    raise ConfigError(
                        f"{STANDARD} is standard output, where each line gets the number of its process in front; pass "
                        "--raw to `timely run`, or give the path of a file"
                    )
                if isinstance(sys.stdout, io.TextIOWrapper):
                    sys.stdout.reconfigure(encoding=encoding)
                # What a notebook has there takes text alone.
                self._file: IO[Any] = getattr(sys.stdout, "buffer", sys.stdout) if binary else sys.stdout
            elif is_live or _is_stream(self._path):
                self._file = open(self._path, mode, encoding=encoding)  # noqa: SIM115  __exit__ closes it
            else:
                if self._path.is_dir():
                    raise IsADirectoryError(21, "it is a directory")
                self._path = Path(os.path.realpath(name))  # a symbolic link stays one
                # Beside its place, because `os.replace` works within a file system alone. Another process may write
                # here, too.
                self._partial = self._path.with_name(f".{self._path.name}.{os.getpid()}.partial")
                self._file = open(self._partial, mode, encoding=encoding)  # noqa: SIM115  __exit__ closes it
                # Whoever may read the file before may read this one. If there is none, or the file system has no modes,
                # this one stays as it is.
                with suppress(OSError):
                    os.fchmod(self._file.fileno(), stat.S_IMODE(self._path.stat().st_mode))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if self.name == STANDARD:
                self._file.flush()
                # A large write that its reader ends halfway succeeds, so we ask whether there still is a reader.
                if kind is None and has_no_reader(self._file):
                    raise BrokenPipeError
                return
            if kind is None and self._partial is not None:
                self._file.flush()
                # Before it takes its place: after a power failure the name must not lead to a file without its content.
                os.fsync(self._file.fileno())
            self._file.close()
            if kind is None and self._partial is not None:
                os.replace(self._partial, self._path)
                self._partial = None
        except BrokenPipeError:
            if kind is None:
                raise
        except OSError as error:
            if kind is None:
                raise _unwritable(self.name, error) from None
        finally:
            if self._partial is not None:
                with suppress(OSError):
                    self._partial.unlink()

    @property
    def stream(self) -> IO[Any]:
        """The open file, for a library that writes to it."""
        return self._file

    def write(self, text: Any) -> None:
        """Write text, or bytes to a binary file."""
        try:  # not `_writing`, which would cost more than to write a row
            self._file.write(text)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise _unwritable(self.name, error) from None

    def flush(self) -> None:
        """Make what was written visible to readers."""
        with _writing(self.name):
            self._file.flush()


@contextmanager
def _writing(name: str) -> Iterator[None]:
    """Raise DataError, with the reason, where an output cannot be written; BrokenPipeError if its reader has ended."""
    try:
        yield
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:  # pyarrow's errors are ValueErrors
        raise _unwritable(name, error) from None


def _unwritable(name: str, error: Exception) -> DataError:
    return DataError(f"cannot write {name}: {getattr(error, 'strerror', None) or error}")


def refuse_same(outputs: Mapping[str, str], inputs: Iterable[str | None] = ()) -> None:
    """Raise DataError if two outputs, or an output and an input, are one file. `outputs` are files by their options.

    >>> refuse_same({"csv": "answer.csv", "json": "-"}, ["graph.txt"])
    """
    taken = {os.path.realpath(name): name for name in inputs if name is not None and name != STANDARD}
    for name in outputs.values():
        path = os.path.realpath(name)
        if name == STANDARD or _is_stream(Path(name)):
            continue
        if path in taken:
            raise DataError(f"cannot write {name}: it is the same file as {taken[path]}, which the job needs, too")
        taken[path] = name


def print_lines(lines: Iterable[str], stream: IO[str] | None) -> None:
    """Print the lines of a summary. Raises DataError where standard output is closed, or a stream cannot be written.

    Python has None in the place of a standard stream that was closed before the program started. A summary for a
    standard error that is closed is dropped, so that the answer, which goes elsewhere, is written.
    """
    if stream is None:
        if sys.stdout is None:
            raise DataError("cannot write the summary: its stream is closed")
        return
    with _writing("the summary"):
        print(*lines, sep="\n", file=stream, flush=True)


def _is_stream(path: Path) -> bool:
    """Return whether there is a pipe, a device or a socket at `path`, to which one writes directly."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def write_csv(file: OutputFile, table: pa.Table) -> None:
    """Write a table as CSV with a header."""
    from pyarrow.csv import write_csv as write

    with _writing(file.name):
        if isinstance(file.stream, io.TextIOBase):
            content = io.BytesIO()
            write(table, content)
            file.write(content.getvalue().decode())
        else:
            write(table, file.stream)


def write_parquet(file: OutputFile, table: pa.Table) -> None:
    from pyarrow import parquet

    with _writing(file.name):
        if isinstance(file.stream, io.TextIOBase):
            raise OSError("standard output takes text alone here: give the path of a file")
        parquet.write_table(table, file.stream)


def write_records(file: OutputFile, header: Sequence[str], records: Iterable[Sequence[Any]]) -> None:
    """Write records as CSV with a header, in the form of `write_csv`: text stands in quotation marks."""
    writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(records)


def write_json(file: OutputFile, content: Any) -> None:
    file.write(json.dumps(content, indent=2) + "\n")


def write_changes(file: OutputFile, epoch: Any, columns: Sequence[Sequence[Any]], diffs: Sequence[int]) -> None:
    """Write the changes of an epoch, one per line: the epoch, `+` or `-`, and the fields, separated by tabs.

    A record whose count changes by more than one has as many lines. Raises DataError for text that a field of such a
    line cannot hold.
    """
    lines = []
    texts = (text for column in columns for text in column if isinstance(text, str))
    if (text := next(filter(UNFIT.search, texts), None)) is not None:
        raise DataError(
            f"cannot write {file.name}: {text!r:.80} has a tab, a line end, or a space at its beginning or end, which "
            "a line of changes cannot hold; --csv and --parquet write the last answer"
        )
    for record, diff in zip(zip(*columns), diffs):
        line = "\t".join([str(epoch), "+" if diff > 0 else "-", *map(str, record)])
        lines += [line] * abs(diff)
    if lines:
        file.write("\n".join(lines) + "\n")
        file.flush()
