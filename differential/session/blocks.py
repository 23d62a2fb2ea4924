"""Which `transaction()` blocks of a session the program is in.

A block belongs to its thread, and the lock of the session makes other threads wait for its end. The lock does not
separate tasks of one event loop, which share a thread: while a task awaits in its block, another one would change the
same transaction, and lose its changes with those of the block. So each block is noted in the context of its task, and
with the task itself if it is one of asyncio, because tasks that it makes in the block have its context.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event, Thread, current_thread
from typing import NamedTuple

from timely.errors import SessionError

_INTERVAL = 0.2
"""How often, in seconds, a waiting thread checks whether the session has ended."""
TORN = (
    "a transaction() block of this session has not ended in the thread in which it began, so the session stays locked, "
    "and its changes are not committed: begin and end each block in one thread; close the session and open it again"
)


class _Open(NamedTuple):
    """A block that is not inside of another: its thread, its task of asyncio, and what is set when it is over."""

    thread: Thread
    task: object
    is_over: Event


_INSIDE: ContextVar[frozenset[_Open]] = ContextVar("_INSIDE", default=frozenset())
"""Blocks that this context has entered. One that has ended in another context stays here, and no longer counts."""


def _task() -> object:
    """Return the task of asyncio that runs in this thread; None if there is none."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


class Blocks:
    """The blocks of one session. Use under its lock, except for `is_inside` and `wait`.

    >>> blocks = Blocks()
    >>> with blocks.block():
    ...     with blocks.block():
    ...         blocks.depth, blocks.is_inside
    (2, True)
    >>> blocks.depth, blocks.is_inside
    (0, False)
    """

    def __init__(self) -> None:
        self.begun: tuple[int, ...] = ()
        """How many statements there were when each open block began, the outermost first."""
        self.is_torn = False
        """Whether a block has not ended in its thread, which then keeps the lock for ever."""
        self._open: _Open | None = None

    @property
    def depth(self) -> int:
        """How many blocks are inside of each other."""
        return len(self.begun)

    @property
    def is_inside(self) -> bool:
        """Whether the present task, or the thread if there is none, is in a block."""
        block = self._open  # read once: another thread may end its block at any moment
        return block is not None and block in _INSIDE.get() and block.task in (None, _task())

    def wait(self, refuse: Callable[[], object]) -> None:
        """Wait, before taking the lock, for the end of blocks of another thread, which may never come.

        Meanwhile, call `refuse` at times. It raises the error that ends the wait once the session has ended. Raises
        SessionError where no block can end any more.
        """
        while (block := self._open) is not None and block.thread is not current_thread() and not self.is_torn:
            if block.is_over.wait(_INTERVAL):
                break
            refuse()
            # In this order: a thread that is gone may have ended its block before.
            if not block.thread.is_alive() and self._open is block:
                self.is_torn = True
        if self.is_torn:
            raise SessionError(TORN)

    def is_torn_here(self) -> bool:
        """Return whether a block ends in a thread other than the one in which it began, and record this."""
        if self._open is not None and self._open.thread is not current_thread():
            self.is_torn = True
        return self.is_torn

    def refuse_inside(self) -> None:
        """Raise SessionError in a block, which commits at its end."""
        if self.is_inside:
            raise SessionError("the transaction() block commits at its end: leave out commit() inside of it")

    def refuse_other_task(self) -> None:
        """Raise SessionError where another task of this thread is in a block."""
        if self._open is not None and self._open.thread is current_thread() and not self.is_inside:
            raise SessionError(
                "another task of this event loop awaits inside of a transaction() block: a block that awaits nothing "
                "lets no other task run before its end (what create_task() or gather() runs in a block is another task)"
            )

    def forget_beyond(self, kept: int) -> None:
        """Record that all but the first `kept` statements are forgotten: what follows belongs to the open blocks."""
        self.begun = tuple(min(each, kept) for each in self.begun)

    @contextmanager
    def block(self, statements: int = 0) -> Iterator[None]:
        """Record a block, until its end. It begins after so many statements of the transaction."""
        # A block inside of another has the same thread and task: `wait` holds up all others, or `refuse_other_task`.
        block = self._open or _Open(current_thread(), _task(), Event())
        # Handlers of signals run at calls. There is none between here and `try`, nor before the end is noted below.
        self.begun = (*self.begun, statements)
        self._open = block
        try:
            _INSIDE.set(_INSIDE.get() | {block})
            yield
        finally:
            self.begun = self.begun[:-1]
            if not self.begun:
                self._open = None
                block.is_over.set()  # those who wait go on to the lock, which this thread has until its commit is made
                _INSIDE.set(_INSIDE.get() - {block})
