"""End a function of the program that runs on a worker.

A worker that runs the program's own code cannot check whether it should stop. Python can raise an exception in another
thread, at its next instruction. This is done only while that thread has a frame of the program's code on its stack: the
exception then leaves an operator as any error of a function would. What waits in C (`time.sleep`, say) ends first.
"""

from __future__ import annotations

import signal
import sys
from threading import current_thread, main_thread
from types import FrameType
from typing import Any

_has_hook = False
_OURS = {"timely", "differential", "threading", "numpy", "numba", "msgpack", "zmq"}


class Interrupted(BaseException):
    """The program asked for its function to end."""


class Closing(BaseException):
    """The session ends."""


class Deferral:
    """A block that defers SIGINT until its end, unless the signal comes twice.

    If the block raises an error, the handler of the signal may raise `KeyboardInterrupt` instead.

    A write to the disk must not be left halfway: nobody would know what is durable. Only the main thread receives
    SIGINT; in other threads nothing is done. A block inside of another leaves the signal to the outer one.

    >>> before = signal.signal(signal.SIGINT, lambda *_: print("interrupted"))
    >>> with Deferral():
    ...     signal.raise_signal(signal.SIGINT)
    ...     print("written")
    written
    interrupted
    >>> handler = signal.signal(signal.SIGINT, before)
    """

    def __init__(self) -> None:
        self._before: Any = None
        self._frame: FrameType | None = None
        self._has_come = False

    def __enter__(self) -> None:
        if current_thread() is main_thread():
            before = signal.getsignal(signal.SIGINT)
            is_inside = getattr(before, "__func__", None) is Deferral._receive
            if callable(before) and not is_inside:
                self._before = before  # first: a signal may come at once, and `_handle` needs it
                signal.signal(signal.SIGINT, self._receive)

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
        self._handle()

    def _handle(self) -> None:
        """Handle a signal that arrived during the block as it would have been handled without it."""
        if self._has_come:
            # Noted before it is handled, because the handler may raise.
            self._has_come, frame, self._frame = False, self._frame, None
            self._before(signal.SIGINT, frame)

    def _receive(self, signum: int, frame: FrameType | None) -> None:
        self._handle()
        self._has_come, self._frame = True, frame


def program_frame(thread: int) -> FrameType | None:
    """Return the frame of the function of the program that a thread of ours has called; None if it is in none.

    >>> from threading import get_ident
    >>> program_frame(get_ident()) is None, program_frame(-1) is None
    (False, True)
    """
    found = None
    frame: FrameType | None = sys._current_frames().get(thread)
    while frame is not None:
        if str(frame.f_globals.get("__name__")).partition(".")[0] not in _OURS:
            found = frame  # in the end the outermost, which stays the same while the function calls others
        frame = frame.f_back
    return found


def interrupt(thread: int) -> bool:
    """Raise `Interrupted` in a thread, at its next instruction, if it is in a function of the program.

    Return whether it is.

    >>> interrupt(-1)
    False
    """
    import ctypes

    _silence_dropped()
    if program_frame(thread) is None:
        return False
    return bool(ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(Interrupted)))


def _silence_dropped() -> None:
    """Keep Python from printing an `Interrupted` that it raises in a callback of the collector or a weak reference.

    It drops all exceptions there. The function goes on, and is interrupted again.
    """
    global _has_hook
    if _has_hook:
        return
    before = sys.unraisablehook

    def hook(unraisable: sys.UnraisableHookArgs) -> None:
        if unraisable.exc_type is not Interrupted:
            before(unraisable)

    sys.unraisablehook = hook
    _has_hook = True
