"""SIGUSR1 makes a running process print what its workers do and wait for, without stopping them.

The system's handler writes the signal's number to a pipe, and a thread that reads the pipe prints the report. So the
report also appears while the main thread is inside a kernel or another call that does not return to the interpreter, as
long as that call lets other threads run.

The same thread notes when the process is asked to end (SIGINT, SIGTERM, SIGQUIT, SIGHUP), often before the main thread
reacts. If the program handles that signal itself, the thread also reports to the launcher that the process ends in
order, because nothing else can.

After the end of the program SIGUSR1 is ignored, because it must never end a process.
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
JOIN_SECONDS = 5.0
"""How long the end of a process waits for a report that is being printed."""

_asked_to_end_at = -1.0


def report_on_signal() -> None:
    """Print a report on SIGUSR1 from now on, unless the program handles that signal itself.

    Only the main thread can handle signals; in another thread this does nothing.
    """
    if not hasattr(signal, "SIGUSR1") or current_thread() is not main_thread():
        return
    if signal.getsignal(signal.SIGUSR1) is not signal.SIG_DFL:
        return
    from timely.worker.status import report  # imports NumPy, which a process that only starts others does not need

    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    former = signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    if former != -1:
        signal.set_wakeup_fd(former)  # of an event loop, for example; our handler then writes to our own pipe

    def handle(signum: int, frame: FrameType | None) -> None:
        # An event loop that handles signals takes the place of our pipe, and leaves none when it ends.
        present = signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
        if present != write_end:
            with suppress(OSError):
                os.write(write_end, bytes((signum,)))
        if present not in (-1, write_end):
            signal.set_wakeup_fd(present)

    reporter = Thread(target=_listen, args=(read_end, report), name="timely reporter", daemon=True)

    process = os.getpid()

    def end() -> None:
        # A thread that writes to stderr while the interpreter shuts down would end the process by SIGABRT.
        if os.getpid() == process:  # a forked process has the same pipe, but not the thread
            if signal.getsignal(signal.SIGUSR1) is handle:
                # The interpreter restores the default action of every handled signal a while before it ends.
                signal.signal(signal.SIGUSR1, signal.SIG_IGN)
            with suppress(OSError):
                os.write(write_end, bytes((_NO_SIGNAL,)))
            reporter.join(JOIN_SECONDS)

    signal.signal(signal.SIGUSR1, handle)
    reporter.start()
    atexit.register(end)


def was_asked_to_end(since: float) -> bool:
    """Return whether a signal that asks for the end is known to have arrived since a moment of the monotonic clock."""
    return _asked_to_end_at >= since


def _handles_itself(signum: int) -> bool:
    """Return whether the program has its own handler of a signal, not one of this library."""
    handler = signal.getsignal(signum)
    code = getattr(handler, "__code__", None)
    return callable(handler) and (code is None or not is_ours(code.co_filename))


def _listen(read_end: int, report: Callable[[], str]) -> None:
    global _asked_to_end_at
    ending = {signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP}
    numbers = b""
    while _NO_SIGNAL not in numbers:
        # Signals that arrive together are read together; each matters once.
        numbers = os.read(read_end, 512)
        if not ending.isdisjoint(numbers):
            _asked_to_end_at = clock.monotonic()
            if any(_handles_itself(signum) for signum in ending.intersection(numbers)):
                begin_to_end()
        if signal.SIGUSR1 in numbers:
            try:
                text = report()
            except Exception as error:  # the thread must survive for the next signal
                text = f"no report can be made at this moment ({type(error).__name__}: {error}); ask again"
            with suppress(OSError, ValueError):  # stderr is closed
                notify(text)
