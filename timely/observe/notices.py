"""Notices on stderr, for whoever runs the program."""

import sys
from collections.abc import Callable

_listeners: list[Callable[[str], object]] = []


def notify(text: str) -> None:
    """Print `timely: ` and a text on stderr, in one piece, so that threads do not mix their lines."""
    for listener in tuple(_listeners):
        listener(text)
    sys.stderr.write(f"timely: {text}\n")
    sys.stderr.flush()


def on_notice(listener: Callable[[str], object]) -> Callable[[], None]:
    """Also call `listener` with each notice, in the thread that gives notice, until the result is called.

    >>> stop = on_notice(print)
    >>> notify("nothing has moved")
    nothing has moved
    >>> stop()
    """
    _listeners.append(listener)
    return lambda: _listeners.remove(listener)
