"""Calls that the workers of a session make."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import Any, Generic, TypeVar

R = TypeVar("R")


class Call(Generic[R]):
    """A call that all workers make, `function(site, *arguments)`, and in the end the result of each, or an error.

    Workers in other processes get the arguments `elsewhere`, if there are any. `done` is called on the thread of the
    last worker once all have made the call, though the caller may no longer wait.
    """

    def __init__(
        self,
        function: Callable[..., R],
        arguments: tuple[Any, ...],
        peers: int,
        *,
        elsewhere: tuple[Any, ...] | None = None,
        done: Callable[[Call[R]], object] | None = None,
    ) -> None:
        self.function: Callable[..., R] | None = function
        self.arguments = arguments
        self.elsewhere = arguments if elsewhere is None else elsewhere
        self.number = 0
        """Its place in the list of calls."""
        self.is_begun = False
        """Whether a worker of this process has begun to make it."""
        self.packed: bytes | None = None
        """The call as other processes read it."""
        self.results: list[R] = []
        self.error: BaseException | None = None
        self.next: Call[Any] | None = None
        """The call after it in the list; that assignment submits the other call (`Engine.submit`)."""
        self.before: Call[Any] | None = None
        """The call before it. Set before `before.next` is: so it is known whether workers can reach this call."""
        self._left = peers
        self._lock = Lock()
        self._done = done
        self._waiting = Lock()
        self._waiting.acquire()

    @property
    def is_over(self) -> bool:
        """Whether all workers have run it, or never will."""
        return self._left <= 0

    @property
    def is_submitted(self) -> bool:
        """Whether workers make the call, or have made it.

        The list itself is the answer, without a flag: an interrupt could come between two assignments.
        """
        before = self.before  # read first: a worker that completes the call forgets `function` before it
        return self.function is None or (before is not None and before.next is self)

    def finish(self, result: R | None, error: BaseException | None) -> None:
        """Add the result of one worker."""
        with self._lock:
            self.error = self.error or error
            if error is None:
                self.results.append(result)  # type: ignore[arg-type]
            self._left -= 1
            if self._left:  # some are missing; or it was abandoned, and is negative
                return
        try:
            if self._done is not None and self.error is None:
                self._done(self)
        except BaseException as error:  # for want of memory, say: it ends the engine, and the caller must not wait
            self.error = error
            raise
        finally:
            self._forget()

    def abandon(self, error: BaseException) -> None:
        """End a call that the workers will not complete."""
        with self._lock:
            if self._left <= 0:
                return
            self._left = 0
            self.error = error
        self._forget()

    def _forget(self) -> None:
        """Let the caller continue, and drop all references: workers keep their last call until the next one."""
        self.function = self._done = self.before = self.packed = None  # before the rest: see `Engine._program`
        self.arguments = self.elsewhere = ()
        self._release()

    def wait(self, timeout: float = -1) -> bool:
        """Wait until all workers have run it; return False when `timeout` seconds have passed before that."""
        try:
            if self.function is not None:  # else it is over: an interrupt may have come before the lock was released
                self._waiting.acquire(timeout=timeout)
        finally:
            is_over = self.function is None
            if is_over:
                self._release()
        return is_over

    def _release(self) -> None:
        with suppress(RuntimeError):  # another thread has released it just now
            self._waiting.release()
