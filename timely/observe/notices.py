"""Notices on stderr, for the person who runs the program."""

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

Entry = TypeVar("Entry")

QUIET_SECONDS = 1.0
"""How long a program waits before its work counts as long, unless the configuration sets another time."""

_listeners: dict[object, Callable[[str], object]] = {}
"""By keys of their own: the same function may be added several times, and each is removed by itself."""


def notify(text: str) -> None:
    """Print `timely: ` and a text on stderr, as `print_error` does."""
    # A copy, because another thread may begin or end to listen.
    for listener in tuple(_listeners.values()):
        listener(text)
    print_error(f"timely: {text}")


def print_error(text: str) -> None:
    """Print a text on stderr, in one piece, so that threads do not mix their lines, unless that is closed or full.

    `print` writes to standard output where there is no stderr, among what the program writes there.
    """
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()


def is_terminal() -> bool:
    """Return whether standard error is a terminal."""
    try:
        return bool(sys.stderr.isatty())
    except (AttributeError, ValueError):  # there is none, or it is closed
        return False


def numbered(kind: str, numbers: Sequence[int], most: int = 8) -> str:
    """Return the names of some workers or processes, but of at most so many.

    >>> numbered("worker", [1], 4), numbered("process", [1, 2]), numbered("worker", range(1, 9), 4)
    ('worker 1', 'processes 1, 2', 'workers 1, 2, 3, 4 and 4 more')
    """
    plural = "" if len(numbers) == 1 else "es" if kind.endswith("s") else "s"
    more = f" and {len(numbers) - most} more" if len(numbers) > most else ""
    return f"{kind}{plural} {', '.join(map(str, numbers[:most]))}{more}"


def on_notice(listener: Callable[[str], object]) -> Callable[[], None]:
    """Also call `listener` with each notice, in the thread that gives notice, until the result is called.

    >>> stop = on_notice(print)
    >>> notify("nothing has moved")
    nothing has moved
    >>> stop()
    """
    return added(_listeners, listener)


def added(entries: dict[object, Entry], entry: Entry) -> Callable[[], None]:
    """Add an entry under a key of its own; return a function that removes it, and does nothing when called again."""
    key = object()
    entries[key] = entry

    def forget() -> None:
        entries.pop(key, None)

    return forget
