"""Report a store that does not answer.

A store may answer late, and what it has done then counts, so an operation on it is not given up. But whoever waits for
it cannot tell why nothing moves: appends wait in a thread of their own, and a worker that such a thread may wake is
not at a standstill. So one thread looks at the operations that are under way in this process, and reports each that
takes `SECONDS`, once. The thread ends when it finds none.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock, Thread

from timely.lowlevel import notify

SECONDS = 30.0


class OverdueWatch:
    """Reports the operations under way that take `seconds`, from a thread of its own."""

    def __init__(
        self, seconds: float, now: Callable[[], float] = clock.monotonic, sleep: Callable[[float], None] = clock.sleep
    ) -> None:
        """`now` and `sleep` are the clock."""
        self._seconds = seconds
        self._now = now
        self._sleep = sleep
        self._lock = Lock()
        self._under_way: dict[object, tuple[object, float]] = {}
        """For each operation, the collection whose store it is on, and when it began."""
        self._has_thread = False

    def begin(self, of: object) -> object:
        """Return a token of an operation that begins on the store of `of`."""
        token = object()
        with self._lock:
            self._under_way[token] = of, self._now()
            if not self._has_thread:
                self._has_thread = True
                Thread(target=self._run, name="timely watch of stores", daemon=True).start()
        return token

    def end(self, token: object) -> None:
        """Note that the operation is over."""
        with self._lock:
            del self._under_way[token]

    def _run(self) -> None:
        reported: set[object] = set()
        while True:
            # Decided under the lock: `begin` either adds its operation before this look, or starts another thread.
            with self._lock:
                if not self._under_way:
                    self._has_thread = False
                    return
                reported &= self._under_way.keys()
                waiting = [
                    (began + self._seconds, token, of)
                    for token, (of, began) in self._under_way.items()
                    if token not in reported
                ]
            now = self._now()
            for due, token, of in waiting:
                if due <= now:
                    reported.add(token)
                    notify(
                        f"the store of {of} has not answered for {self._seconds:g} s; "
                        "what waits for it continues when it does"
                    )
            # What begins meanwhile is due after `seconds` at the earliest, so no sleep is longer.
            self._sleep(min([self._seconds, *(due - now for due, _, _ in waiting if due > now)]))


watch = OverdueWatch(SECONDS)


@contextmanager
def awaited(of: object) -> Iterator[None]:
    """Report if the block, an operation on the store of a collection, has not ended after `SECONDS`.

    >>> with awaited("'words' in memory"):
    ...     pass
    """
    watching = watch  # `end` needs the one that `begin` had, and tests replace the global
    token = watching.begin(of)
    try:
        yield
    finally:
        watching.end(token)
