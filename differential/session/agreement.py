"""Workers of a session that wait for each other."""

from __future__ import annotations

from collections.abc import Callable
from threading import Barrier, BrokenBarrierError

from differential.session.interrupt import Closing
from differential.session.item import Item


class Agreement:
    """A point that no worker of a session passes before all have reached it.

    There, workers agree whether an item is built: by all of them, or by none. `settle` exchanges `Item.refused` with
    the workers in other processes.

    >>> from timely.lowlevel import Origin
    >>> agreement = Agreement(1, settle=lambda item: None)
    >>> agreement.wait(Item("x", "view", Origin("notebook.py", 1), 1))
    """

    def __init__(self, workers: int, settle: Callable[[Item], object]) -> None:
        self._barrier = Barrier(workers) if workers > 1 else None
        self._settle = settle

    def wait(self, item: Item) -> None:
        """Wait for all workers. Raises Closing where the session ends meanwhile."""
        if self._barrier is not None:
            try:
                self._barrier.wait()
            except BrokenBarrierError:
                raise Closing from None
        self._settle(item)

    def abort(self) -> None:
        """Release the threads that wait: they raise Closing."""
        if self._barrier is not None:
            self._barrier.abort()
