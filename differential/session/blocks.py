"""Which `transaction()` blocks of a session the program is in.

A block belongs to its thread, and the lock of the session makes other threads wait for its end. The lock does not
separate tasks of one event loop, which share a thread: while a task awaits in its block, another one would change the
same transaction, and lose its changes with those of the block. So each block is noted in the context of its task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event, Thread, current_thread

from timely.errors import SessionError

_INTERVAL = 0.2
"""How often, in seconds, a thread that waits looks whether the session has ended."""
_TORN = (
    "a transaction() block of this session has not ended in the thread in which it began, so the session stays locked, "
    "and its changes are not committed: begin and end each block in one thread; close the session and open it again"
)
_INSIDE: ContextVar[frozenset[int]] = ContextVar("_INSIDE", default=frozenset())


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
        self.depth = 0
        """How many blocks are inside of each other."""
        self.is_torn = False
        """Whether a block has not ended in its thread, which then keeps the lock for ever."""
        self._thread: Thread | None = None
        self._are_over = Event()
        self._are_over.set()

    @property
    def is_inside(self) -> bool:
        """Whether the present task, or the thread if there is none, is in a block."""
        return id(self) in _INSIDE.get()

    def wait(self, refuse: Callable[[], object]) -> None:
        """Wait, before taking the lock, for the end of blocks of another thread, which may never come.

        Meanwhile, call `refuse` at times. It raises the error that ends the wait once the session has ended. Raises
        SessionError where no block can end any more.
        """
        while self._thread is not current_thread() and not self.is_torn and not self._are_over.wait(_INTERVAL):
            refuse()
            self.is_torn = self._thread is not None and not self._thread.is_alive() and not self._are_over.is_set()
        if self.is_torn:
            raise SessionError(_TORN)

    def refuse_other_thread(self) -> None:
        """Raise SessionError if the block ends in another thread than the one in which it began."""
        if self._thread is not current_thread():
            self.is_torn = True
            raise SessionError(_TORN)

    def refuse_inside(self) -> None:
        """Raise SessionError in a block, which commits at its end."""
        if self.is_inside:
            raise SessionError("the transaction() block commits at its end: leave out commit() inside of it")

    def refuse_other_task(self) -> None:
        """Raise SessionError where another task of this thread is in a block."""
        if self.depth and self._thread is current_thread() and not self.is_inside:
            raise SessionError(
                "another task of this event loop awaits inside of a transaction() block: a block that awaits nothing "
                "lets no other task run before its end"
            )

    @contextmanager
    def block(self) -> Iterator[None]:
        """Note a block, until its end."""
        before = _INSIDE.get()
        _INSIDE.set(before | {id(self)})
        self.depth += 1
        self._thread = current_thread()
        self._are_over.clear()
        try:
            yield
        finally:
            self.depth -= 1
            if not self.depth:
                self._are_over.set()
            _INSIDE.set(before)
