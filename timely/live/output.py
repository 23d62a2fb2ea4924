"""What commands print: all of it is written, or the command ends with one line that states why."""

from __future__ import annotations

import io
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

from timely.errors import TimelyError


@contextmanager
def printing(encoding: str | None = None, errors: str | None = None) -> Iterator[None]:
    """Print in the block to standard output. Raises TimelyError if it is closed, or cannot be written to.

    `encoding` and `errors` replace those of standard output, which in some locales cannot write every name.
    """
    if sys.stdout is None:
        raise TimelyError("standard output is closed")
    if (encoding or errors) and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding=encoding, errors=errors)
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        empty_standard_output()
        raise TimelyError(f"cannot write to standard output: {error.strerror}") from None


def empty_standard_output() -> None:
    """Flush standard output; discard what it holds if that fails, or Python would complain once more at exit."""
    if sys.stdout is None:
        return
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        return
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def has_no_reader(file: IO[Any]) -> bool:
    """Return whether a file is a pipe whose other end is closed, as that of `head` is once it has its lines.

    >>> reading, writing = os.pipe()
    >>> with open(writing, "w") as file:
    ...     has_no_reader(file), os.close(reading), has_no_reader(file)
    (False, None, True)
    """
    try:
        descriptor = file.fileno()
    except OSError:  # the program has put something else in the place of standard output
        return False
    poll = select.poll()
    # No events are asked for: POLLERR is reported in any case.
    poll.register(descriptor, 0)
    return any(events & select.POLLERR for _, events in poll.poll(0))
