"""Interrupts that arrive while compiled code runs.

Python handles a signal at the next point where the interpreter checks for one. This may be inside a compiled function
that then returns a result: between a loop over rows and the creation of its arrays, say. So Python has a result and an
exception at the same time. It raises a `SystemError` about the function, whose cause is the handler's exception. Code
that reports errors calls `interruption` first, so that an interrupt ends the run as an interrupt.

>>> error = SystemError("a function returned a result with an exception set")
>>> error.__cause__ = KeyboardInterrupt()
>>> interruption(error)
KeyboardInterrupt()
>>> interruption(SystemError("something else"))

If Python checks inside a destructor or a callback of a weak reference, it cannot raise the handler's exception: it
passes the exception to `sys.unraisablehook` and ignores it. `no_interrupt_lost` then sends the signal again.

A program that a `KeyboardInterrupt` ends has to end by SIGINT, so that a shell ends the script that has started it.
Python does that only if no thread has evaluated text since, as imports may do. `end_as_interrupted` restores it.
"""

from __future__ import annotations

import os
import signal
import sys
import time as clock
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Timer, current_thread, main_thread

_AGAIN_SECONDS = 0.01


def interruption(error: BaseException) -> BaseException | None:
    """Return the `KeyboardInterrupt` (or a handler's `SystemExit`) that a `SystemError` stands for, or None."""
    cause: BaseException | None = error
    while isinstance(cause, SystemError):
        cause = cause.__cause__ or cause.__context__
    return cause if cause is not error and not isinstance(cause, Exception) else None


@contextmanager
def no_interrupt_lost() -> Iterator[None]:
    """Send SIGINT again, while the context lasts, whenever Python ignored its `KeyboardInterrupt`.

    Only in the main thread, and only if Python's own handler is installed: a program that handles SIGINT itself decides
    what to do.
    """
    if current_thread() is not main_thread() or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    report_ignored = sys.unraisablehook

    def send_ignored_again(ignored: sys.UnraisableHookArgs) -> None:
        if issubclass(ignored.exc_type, KeyboardInterrupt):
            send_again(signal.SIGINT)
        else:
            report_ignored(ignored)

    sys.unraisablehook = send_ignored_again
    try:
        yield
    finally:
        if sys.unraisablehook is send_ignored_again:
            sys.unraisablehook = report_ignored


def send_again(signum: signal.Signals, may_raise: Callable[[], bool] = lambda: True) -> None:
    """Send a signal to this process in a moment, once `may_raise()`; at once, its handler could not raise either."""

    def send() -> None:
        while not may_raise():
            clock.sleep(_AGAIN_SECONDS)
        os.kill(os.getpid(), signum)

    timer = Timer(_AGAIN_SECONDS, send)
    timer.daemon = True
    timer.start()


def end_as_interrupted() -> None:
    """Make Python end this process by SIGINT if a `KeyboardInterrupt` has ended the program. Call from `atexit`."""
    has_prompt = hasattr(sys, "ps1")  # where an interrupt ends one statement only
    if getattr(sys, "last_type", None) is KeyboardInterrupt and not has_prompt:
        with suppress(KeyboardInterrupt):
            # Python remembers whether the text evaluated last, such as the program, has raised it.
            exec("raise KeyboardInterrupt", {})
