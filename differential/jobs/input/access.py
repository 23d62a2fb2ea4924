"""Errors of the system and of damaged files become one line that names the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from timely.errors import DataError


@contextmanager
def reading(label: str, format: str = "text") -> Iterator[None]:
    """Raise DataError, with the reason, where a file cannot be read or turns out to be damaged."""
    try:
        yield
    except (OSError, EOFError, pa.ArrowException) as error:
        if isinstance(error, OSError) and error.errno:
            raise DataError(f"{label} cannot be read: {error.strerror}") from None
        raise DataError(f"{label} is a damaged {format} file: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    text = str(error).partition("\n")[0]
    if text.startswith("Truncated"):
        return "it ends in the middle of the compressed data"
    return text or "it ends early"
