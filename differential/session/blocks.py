"""Which `transaction()` blocks of a session the program is in.

A block belongs to its thread, and the lock of the session makes other threads wait for its end. The lock does not
separate tasks of one event loop, which share a thread: while a task awaits in its block, another one would change the
same transaction, and lose its changes with those of the block. So each block is noted in the context of its task.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import get_ident

from timely.errors import SessionError

_INSIDE: ContextVar[frozenset[int]] = ContextVar("_INSIDE", default=frozenset())


class Blocks:
    """The blocks of one session. Use under its lock, except for `is_inside`.

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
        self._thread = 0

    @property
    def is_inside(self) -> bool:
        """Whether the present task, or the thread if there is none, is in a block."""
        return id(self) in _INSIDE.get()

    def refuse_inside(self) -> None:
        """Raise SessionError in a block, which commits at its end."""
        if self.is_inside:
            raise SessionError("the transaction() block commits at its end: leave out commit() inside of it")

    def refuse_other_task(self) -> None:
        """Raise SessionError where another task of this thread is in a block."""
        if self.depth and self._thread == get_ident() and not self.is_inside:
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
        self._thread = get_ident()
        try:
            yield
        finally:
            self.depth -= 1
            _INSIDE.set(before)
