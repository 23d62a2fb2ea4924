"""Signals that come while a kernel is compiled or loaded.

Raised inside a callback of the compiler, an interrupt would be printed and lost.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

_SAME_INTERRUPT_SECONDS = 1.0
_LATE = "differential: interrupted; this ends when the kernel is compiled, and at once when it is interrupted again"


@contextlib.contextmanager
def _handled_by(
    handlers: dict[signal.Signals, Callable[[int, FrameType | None], None] | signal.Handlers],
) -> Iterator[None]:
    """Have signals handled so for a while, where functions of Python handle them: what is ignored stays so."""
    former: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():
        former = {number: handler for number in handlers if callable(handler := signal.getsignal(number))}
    for number in former:
        signal.signal(number, handlers[number])
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Put SIGINT and SIGTERM off."""
    caught: list[int] = []
    try:
        with _handled_by(dict.fromkeys((signal.SIGINT, signal.SIGTERM), lambda number, _: caught.append(number))):
            yield
    finally:
        for late in caught:
            signal.raise_signal(late)


@contextlib.contextmanager
def interrupted_late() -> Iterator[None]:
    """Put the first SIGINT off, and say so; a second one, or SIGTERM, ends the process.

    `timely run` passes on what a terminal sends to all processes, so one that follows at once is taken for the same.
    """
    caught: list[float] = []

    def put_off(number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if not caught:
            caught.append(now)
            with contextlib.suppress(OSError, ValueError, RuntimeError):  # stderr is closed, or in use at this moment
                print(_LATE, file=sys.stderr, flush=True)
        elif now > caught[0] + _SAME_INTERRUPT_SECONDS:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    try:
        with _handled_by({signal.SIGINT: put_off, signal.SIGTERM: signal.SIG_DFL}):
            yield
    finally:
        if caught:
            signal.raise_signal(signal.SIGINT)
