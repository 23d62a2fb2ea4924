"""The log of warnings of a process: Python's warnings and this library's notices, the last few of each."""

from __future__ import annotations

import time as clock
import warnings
from collections import deque
from typing import Any, NamedTuple

from timely.observe.notices import on_notice

KEPT = 200

_open: list[Warnings] = []
"""Those that are not closed."""


class Note(NamedTuple):
    """A warning: its number in the process, when it came in seconds since 1970, its kind, and its text."""

    number: int
    at: float
    kind: str
    text: str


class Warnings:
    """Keeps the last warnings of this process, from now on, but for what contains the `secret`, if there is one.

    Any thread may add one, and one thread reads them.
    """

    def __init__(self, secret: str | None = None) -> None:
        _open.append(self)
        self._secret = secret
        self._kept: deque[Note] = deque(maxlen=KEPT)
        self._number = 0
        self._before = warnings.showwarning
        self._show: Any = self._shown
        warnings.showwarning = self._show  # type: ignore[assignment]
        self._stop = on_notice(lambda text: self.add("notice", text))

    def add(self, kind: str, text: str) -> None:
        if self._secret is not None and self._secret in text:
            return
        self._number += 1
        self._kept.append(Note(self._number, clock.time(), kind, text[:4000]))

    def close(self) -> None:
        if self in _open:
            _open.remove(self)
        self._stop()
        if warnings.showwarning is self._show:  # otherwise another one has taken its place, and goes on to call it
            warnings.showwarning = self._before
        # Every text contains this one, so `add` keeps nothing more, though others may still call this in a chain.
        self._secret = ""

    def since(self, number: int) -> list[Note]:
        if not self._kept or self._kept[-1].number <= number:
            return []
        # A copy, because another thread may add one meanwhile.
        return [note for note in tuple(self._kept) if note.number > number]

    def _shown(self, message: Warning | str, category: type[Warning], filename: str, lineno: int, *rest: Any) -> None:
        self.add(category.__name__, f"{message} ({filename}:{lineno})")
        self._before(message, category, filename, lineno, *rest)


def current() -> Warnings:
    """Return the warnings that this process keeps; if it keeps none, it begins to."""
    return _open[0] if _open else Warnings()
