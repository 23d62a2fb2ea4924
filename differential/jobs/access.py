"""What messages of jobs call an input, and the one line that reports a system error or a damaged file.

Nothing here imports pyarrow, so that jobs about lines of text run without it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from differential.extra import imported
from timely.errors import DataError

STANDARD_INPUT = "standard input"

CODECS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2"}
"""The first bytes of compressed files, and how these are compressed."""

LONGEST = max(map(len, CODECS))
"""How many first bytes show whether a file is compressed."""


def label_of(path: str) -> str:
    """Return what to call an input: its path, or `standard input` for `-`."""
    return STANDARD_INPUT if path == "-" else path


def codec_of(head: bytes) -> str | None:
    """Return how a file with these first bytes is compressed, or None if it is not.

    >>> codec_of(b"BZh9"), codec_of(b"1 2")
    ('bz2', None)
    """
    return next((codec for magic, codec in CODECS.items() if head.startswith(magic)), None)


@contextmanager
def reading(label: str, format: str = "text") -> Iterator[None]:
    """Raise DataError, with the reason, where a file cannot be read or turns out to be damaged."""
    try:
        yield
    except _errors() as error:
        # An error of the system has a number. Those of gzip and Arrow about damage are OSErrors without one.
        if isinstance(error, OSError) and error.errno:
            raise DataError(f"cannot read {label}: {error.strerror}") from None
        raise DataError(f"{label} is a damaged {format} file: {_reason(error)}; copy the file again") from None


def _errors() -> tuple[type[Exception], ...]:
    """Return what reading raises; pyarrow's errors only once a module has imported it."""
    arrow = imported("pyarrow")
    return (OSError, EOFError, zlib.error, *((arrow.ArrowException,) if arrow is not None else ()))


def _reason(error: Exception) -> str:
    text = str(error).partition("\n")[0]
    if text.startswith(("Truncated", "Compressed file ended")):
        return "it ends in the middle of the compressed data"
    return text or "it ends early"
