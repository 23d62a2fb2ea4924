"""SIGUSR1 makes a running process print what its workers do and wait for, without stopping them.

The system's handler writes the signal's number to a pipe, and a thread that reads it prints the report; so it appears
also while the main thread is inside a kernel or another call that does not return to the interpreter, as long as that
lets other threads run.

The same thread notes when the process is asked to end (SIGINT, SIGTERM, SIGQUIT, SIGHUP), often before the main thread
does anything about it. Where the program handles that signal itself, it also reports to the launcher that the process
ends in order: nobody else can.

From the end of the program on SIGUSR1 is ignored, for it must never end a process.
"""

from __future__ import annotations

import atexit
import os
import signal
import time as clock
from collections.abc import Callable
from contextlib import suppress
from threading import Thread, current_thread, main_thread
from types import FrameType

from timely.communication.notes import begin_to_end
from timely.observe.notices import notify
from timely.origin import is_ours

_NO_SIGNAL = 0
"""In place of a signal's number: the process ends."""
LAST_WORDS_SECONDS = 5.0
"""How long a process that ends waits for a thread that is printing."""

_asked_to_end_at = -1.0


def report_on_signal() -> None:
    """Have SIGUSR1 print a report from now on, unless the program has its own use for it.

    Signals can be handled from the main thread only; called in another one, this does nothing.
    """
    if not hasattr(signal, "SIGUSR1") or current_thread() is not main_thread():
        return
    if signal.getsignal(signal.SIGUSR1) is not signal.SIG_DFL:
        return
    from timely.worker.status import report  # imports NumPy, which a process that only starts others does not need

    ear, hand = os.pipe()
    os.set_blocking(hand, False)
    former = signal.set_wakeup_fd(hand, warn_on_full_buffer=False)
    if former != -1:
        signal.set_wakeup_fd(former)  # somebody else's, say an event loop's: then our handler writes to the pipe itself

    def handle(signum: int, frame: FrameType | None) -> None:
        if former != -1:
            os.write(hand, bytes((signum,)))

    reporter = Thread(target=_listen, args=(ear, report), name="timely reporter", daemon=True)

    process = os.getpid()

    def end() -> None:
        # A thread that is writing to stderr when the interpreter goes would end the process by SIGABRT.
        if os.getpid() == process:  # one that was forked off has no such thread, but the same pipe
            if signal.getsignal(signal.SIGUSR1) is handle:
                # The interpreter gives every signal that is handled its default action back, and goes on for a while.
                signal.signal(signal.SIGUSR1, signal.SIG_IGN)
            with suppress(OSError):
                os.write(hand, bytes((_NO_SIGNAL,)))
            reporter.join(LAST_WORDS_SECONDS)

    signal.signal(signal.SIGUSR1, handle)
    reporter.start()
    atexit.register(end)


def was_asked_to_end(since: float) -> bool:
    """Return whether a signal that asks for the end is known to have come since a moment of the monotonic clock."""
    return _asked_to_end_at >= since


def _handles_itself(signum: int) -> bool:
    """Return whether the program has its own handler of a signal, and not one of this library."""
    handler = signal.getsignal(signum)
    code = getattr(handler, "__code__", None)
    return callable(handler) and (code is None or not is_ours(code.co_filename))


def _listen(ear: int, report: Callable[[], str]) -> None:
    global _asked_to_end_at
    ending = {signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP}
    numbers = b""
    while _NO_SIGNAL not in numbers:
        numbers = os.read(ear, 512)
        if not ending.isdisjoint(numbers):
            _asked_to_end_at = clock.monotonic()
            if any(_handles_itself(signum) for signum in ending.intersection(numbers)):
                begin_to_end()
        if signal.SIGUSR1 in numbers:
            try:
                text = report()
            except Exception as error:  # the thread must be there for the next signal
                text = f"no report can be made at this moment ({type(error).__name__}: {error}); ask again"
            with suppress(OSError, ValueError):  # stderr is closed
                notify(text)
