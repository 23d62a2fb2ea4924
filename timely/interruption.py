"""An interrupt that came while compiled code ran, told from an error of that code.

The system's signal is heeded when the interpreter next looks. Where that is inside a compiled function that goes on to
return its result, as it does between a loop over rows and the making of its arrays, Python finds a result and an
exception at once: it raises a `SystemError` about the function, with what the handler raised as its cause. Whoever
reports errors asks here first, so that an interrupt ends a run as an interrupt.

>>> error = SystemError("a function returned a result with an exception set")
>>> error.__cause__ = KeyboardInterrupt()
>>> interruption(error)
KeyboardInterrupt()
>>> interruption(SystemError("something else"))

Where Python looks in the midst of a destructor, or of a weak reference's callback, it ignores what the handler raises:
it hands it to `sys.unraisablehook`. There the signal is sent again, to come a moment later.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer, current_thread, main_thread

_AGAIN_SECONDS = 0.01


def interruption(error: BaseException) -> BaseException | None:
    """Return the `KeyboardInterrupt`, or the `SystemExit` of a handler, that a `SystemError` stands for, if it does."""
    cause: BaseException | None = error
    while isinstance(cause, SystemError):
        cause = cause.__cause__ or cause.__context__
    return cause if cause is not error and not isinstance(cause, Exception) else None


@contextmanager
def no_interrupt_lost() -> Iterator[None]:
    """Have SIGINT come again while the context lasts when its `KeyboardInterrupt` was ignored.

    Only where Python's own handler raises it, in the main thread: who handles the signal otherwise knows best.
    """
    if current_thread() is not main_thread() or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    report_ignored = sys.unraisablehook

    def heed_again(ignored: sys.UnraisableHookArgs) -> None:
        if issubclass(ignored.exc_type, KeyboardInterrupt):
            send_again(signal.SIGINT)
        else:
            report_ignored(ignored)

    sys.unraisablehook = heed_again
    try:
        yield
    finally:
        if sys.unraisablehook is heed_again:
            sys.unraisablehook = report_ignored


def send_again(signum: signal.Signals) -> None:
    """Send this process a signal in a moment: sent at once, it would be heeded where nothing can be raised either."""
    timer = Timer(_AGAIN_SECONDS, os.kill, (os.getpid(), signum))
    timer.daemon = True
    timer.start()
