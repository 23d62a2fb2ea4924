"""Lines of text from files, compressed or not, and from standard input: all of them, or as they arrive.

The first bytes of a file show whether it is compressed with gzip, zstd or bzip2. A line that is not UTF-8 text raises
an error that names the file and the line. A byte order mark at the beginning is left out.
"""

from __future__ import annotations

import codecs
import gzip
import io
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from differential.extra import needed_for
from differential.jobs.access import LONGEST, codec_of, label_of, reading
from differential.jobs.input.faults import Fault
from timely.errors import DataError


class TextLine(NamedTuple):
    """A line of a text, without its end."""

    file: str
    """The path, or `standard input`."""
    number: int
    """Counted from 1."""
    text: str

    def fault(self, reason: str) -> DataError:
        """Return the error that names this line.

        >>> print(TextLine("tweets.tsv", 3, "x").fault("has no user"))
        tweets.tsv, line 3: has no user: 'x'
        """
        return DataError(str(Fault(self.file, self.number, self.text, reason)))


def lines(path: str) -> Iterator[TextLine]:
    """Yield the lines of a text; `-` is standard input. Raises DataError if it is missing, damaged, or not text."""
    label = label_of(path)
    with reading(label), _opened(path, label) as stream:
        for number, data in enumerate(stream, start=1):
            yield TextLine(label, number, _text(data, label, number))


def followed(paths: Sequence[str], is_over: Callable[[], bool] = lambda: False) -> Iterator[TextLine | None]:
    """Yield the lines of texts as they arrive, and None whenever no line has.

    It ends when no text can grow any more: when all are standard input, which has ended, or once `is_over` returns
    True. Raises DataError as `lines` does; a text that is followed must not be compressed.
    """
    with needed_for("--follow"):
        from differential.jobs.input.follow import Followed
    with ExitStack() as stack:
        texts = {}
        for path in paths:
            with reading(label_of(path)):
                text = Followed(path, os.dup(0) if path == "-" else None, is_over)
            stack.callback(text.close)
            texts[path] = text
        while texts:
            pieces = []
            for path, text in texts.items():
                with reading(label_of(path)):
                    piece = text.poll()
                if piece is not None:
                    pieces.append((path, piece))
            # After all have been polled, so that a text that grows fast does not keep others from being read.
            for path, piece in pieces:
                for number, data in enumerate(io.BytesIO(piece.data), start=piece.line):
                    yield TextLine(label_of(path), number, _text(data, label_of(path), number))
            texts = {path: text for path, text in texts.items() if not text.is_ended}
            if not pieces and texts:
                yield None


def is_for_one_worker(path: str) -> bool:
    """Return whether only one worker can read a text: standard input, a pipe, or what this process does not see.

    >>> is_for_one_worker("-"), is_for_one_worker(__file__)
    (True, False)
    """
    return not os.path.isfile(path)


@contextmanager
def _opened(path: str, label: str) -> Iterator[Any]:
    """Open a text, decompressed."""
    # A copy of the descriptor, because closing the file must not close standard input.
    with open(os.dup(0) if path == "-" else path, "rb") as file:
        codec = codec_of(file.peek(LONGEST))
        with reading(label, codec or "text"):
            if codec is None:
                yield file
            elif codec == "gzip":
                yield gzip.open(file)  # noqa: SIM115  it holds nothing but `file`
            else:
                with needed_for(f"{label}, which is compressed with {codec},"):
                    import pyarrow as pa
                packed = pa.PythonFile(file, mode="r")
                yield io.BufferedReader(pa.CompressedInputStream(packed, codec))


def _text(data: bytes, label: str, number: int) -> str:
    if number == 1:
        data = data.removeprefix(codecs.BOM_UTF8)
    try:
        return data.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise DataError(f"{label}, line {number}: not UTF-8 text") from None
