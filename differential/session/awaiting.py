"""Wait in an event loop, so that Ctrl-C in a notebook ends the wait.

A Jupyter kernel runs a cell that awaits as a task of its event loop. On SIGINT its handler asks the loop to cancel this
task, but does not wake the loop, so nothing happens until something else does. While the task of a cell waits for a
session, another handler cancels the task and wakes the loop, and the cancellation becomes KeyboardInterrupt. This error
must not leave any other task: it would end the event loop, and the kernel with it. The kernel cancels these tasks
together with the cell that awaits them, once the loop wakes, which it does several times a second meanwhile.

Outside of notebooks the wait needs nothing: `asyncio.run` handles SIGINT itself, and cancels what it runs.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread, current_thread, main_thread
from types import FrameType
from typing import Any, TypeVar

R = TypeVar("R")

BEAT = 0.2
"""How many seconds an event loop sleeps at most while a task waits."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Make an interrupt of a notebook end what a coroutine awaits in this block.

    >>> async def wait():
    ...     with interruptible():
    ...         return await asyncio.sleep(0, "done")
    >>> asyncio.run(wait())
    'done'
    """
    task = asyncio.current_task()
    before = signal.getsignal(signal.SIGINT)
    if task is None or before is None or current_thread() is not main_thread():
        yield
        return
    is_cell = "IPython" in sys.modules and in_cell(sys._getframe())
    with _beating(asyncio.get_running_loop()):
        if is_cell:
            yield from _cancelled_by_signal(task, before)
        else:
            yield


def in_cell(frame: FrameType | None) -> bool:
    """Return whether IPython runs this frame as a part of a cell, not the event loop as a task of its own.

    >>> in_cell(sys._getframe())
    False
    """
    while frame is not None:
        if frame.f_code.co_name == "run_code" and frame.f_globals.get("__name__") == "IPython.core.interactiveshell":
            return True
        frame = frame.f_back
    return False


def _cancelled_by_signal(task: asyncio.Task[Any], before: Any) -> Iterator[None]:
    """Cancel the task of a cell on SIGINT, and raise KeyboardInterrupt in it."""
    loop = task.get_loop()
    cancelling: list[asyncio.Handle] = []

    def cancel(signum: int, frame: FrameType | None) -> None:
        if not cancelling:  # once, since `uncancel` below undoes a single cancellation
            cancelling.append(loop.call_soon_threadsafe(task.cancel))

    signal.signal(signal.SIGINT, cancel)
    try:
        yield
    except asyncio.CancelledError:
        if not cancelling:
            raise
        task.uncancel()
        raise KeyboardInterrupt from None
    finally:
        signal.signal(signal.SIGINT, before)
        for handle in cancelling:  # which the loop may not have run yet: it would cancel what the task does next
            handle.cancel()
    if cancelling:  # what it awaited was over before the loop cancelled the task
        raise KeyboardInterrupt


@contextmanager
def _beating(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Wake the loop again and again: a signal that came just before it went to sleep is handled only when it wakes."""
    timers: list[asyncio.TimerHandle] = []

    def beat() -> None:
        timers[:] = [loop.call_later(BEAT, beat)]  # the only one, which the end of the block cancels

    beat()
    try:
        yield
    finally:
        timers[0].cancel()


async def in_thread(function: Callable[[], R], give_up: Callable[[Callable[[float], bool]], object]) -> R:
    """Run a function in a thread while the event loop continues, and return its result.

    After an interrupt, of a notebook or of `asyncio.run`, the function continues. Then `give_up` is called, in another
    thread, with what waits for the function for some seconds, and returns whether it is over.

    >>> asyncio.run(in_thread(lambda: 7, lambda wait: None))
    7
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[R] = loop.create_future()

    def run() -> None:
        try:
            result = function()
        except BaseException as error:
            _settle(loop, future.set_exception, future, error)
        else:
            _settle(loop, future.set_result, future, result)

    def wait(seconds: float) -> bool:
        thread.join(seconds)
        return not thread.is_alive()

    thread = Thread(target=run, name="timely commit", daemon=True)
    thread.start()
    try:
        with interruptible():
            return await future
    except (KeyboardInterrupt, asyncio.CancelledError) as error:
        if isinstance(error, KeyboardInterrupt):
            error.add_note("the commit continues in the background: db.status() lists what still computes")
        if isinstance(error, KeyboardInterrupt) or _is_interrupted():
            Thread(target=give_up, args=(wait,), name="timely commit", daemon=True).start()
        raise


def _is_interrupted() -> bool:
    """Return whether `asyncio.run` cancels tasks because of SIGINT, which only its own handler knows."""
    runner = getattr(getattr(signal.getsignal(signal.SIGINT), "func", None), "__self__", None)
    return isinstance(runner, asyncio.Runner) and getattr(runner, "_interrupt_count", 0) > 0


def _settle(loop: asyncio.AbstractEventLoop, settle: Callable[[Any], object], future: Any, value: Any) -> None:
    """Settle a future of a loop from another thread, unless nobody awaits it any more."""
    with suppress(RuntimeError):  # the loop is closed, perhaps just now
        loop.call_soon_threadsafe(lambda: None if future.done() else settle(value))
