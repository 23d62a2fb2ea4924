"""Signals that arrive while a kernel is compiled or loaded.

A signal handler of Python may run inside a callback of the compiler, where an exception that it raises is printed and
lost. So handlers that raise are replaced meanwhile, and the signal is raised again afterwards.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from differential.kernels.store import print_line

_SAME_INTERRUPT_SECONDS = 1.0
_LATE = "differential: interrupted; this takes effect when the kernel is compiled, a second interrupt at once"


@contextlib.contextmanager
def _handled_by(
    handlers: dict[signal.Signals, Callable[[int, FrameType | None], None] | signal.Handlers],
) -> Iterator[None]:
    """Replace the handlers of signals for a while, if they are Python functions: an ignored signal stays ignored."""
    former: dict[signal.Signals, Any] = {}
    # Python runs signal handlers in the main thread only, so elsewhere nothing has to be replaced.
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
    """Postpone SIGINT and SIGTERM until the end of the block."""
    caught: list[int] = []
    try:
        with _handled_by(dict.fromkeys((signal.SIGINT, signal.SIGTERM), lambda number, _: caught.append(number))):
            yield
    finally:
        for late in caught:
            signal.raise_signal(late)


@contextlib.contextmanager
def interrupted_late() -> Iterator[None]:
    """Postpone the first SIGINT, with a line on stderr; a second one, or SIGTERM, ends the process.

    A second one within a second counts as the first: `timely run` forwards what a terminal has sent to all processes.
    """
    caught: list[float] = []

    def postpone(number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if not caught:
            caught.append(now)
            print_line(_LATE)
        elif now > caught[0] + _SAME_INTERRUPT_SECONDS:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    try:
        with _handled_by({signal.SIGINT: postpone, signal.SIGTERM: signal.SIG_DFL}):
            yield
    finally:
        if caught:
            signal.raise_signal(signal.SIGINT)
