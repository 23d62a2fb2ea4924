"""Workers of one process that wait for each other."""

from __future__ import annotations

from collections.abc import Callable
from threading import Barrier, BrokenBarrierError

from differential.session.interrupt import Closing


class Agreement:
    """A point that no worker of a session passes before all have reached it.

    >>> agreement = Agreement(1, lambda: None)
    >>> agreement.wait()
    """

    def __init__(self, peers: int, wake_all: Callable[[], object]) -> None:
        self._barrier = Barrier(peers) if peers > 1 else None
        self.wake_all = wake_all
        """Lets every worker look again at what it waits for."""

    def wait(self) -> None:
        """Wait for all workers. Raises Closing where the session ends meanwhile."""
        if self._barrier is not None:
            try:
                self._barrier.wait()
            except BrokenBarrierError:
                raise Closing from None

    def abort(self) -> None:
        """Let nobody wait any more."""
        if self._barrier is not None:
            self._barrier.abort()
