"""Report a store that does not answer.

A store may answer late, and what it has done then counts, so an operation on it is not given up. But whoever waits for
it cannot tell why nothing moves: appends wait in a thread of their own, and a worker that such a thread may wake is
not at a standstill. So one thread looks at the operations that are under way in this process, and reports each that
takes `SECONDS`, once. The thread ends when it finds none.
"""

from __future__ import annotations

import time as clock
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, Thread

from timely.lowlevel import notify

SECONDS = 30.0

_lock = Lock()
_under_way: dict[object, tuple[object, float]] = {}
"""Of each operation, whose store it is on, and when it began."""
_has_thread = False


@contextmanager
def awaited(of: object) -> Iterator[None]:
    """Report if the block, an operation on the store of a collection, has not ended after `SECONDS`.

    >>> with awaited("'words' in memory"):
    ...     pass
    """
    global _has_thread
    token = object()
    with _lock:
        _under_way[token] = of, clock.monotonic()
        if not _has_thread:
            _has_thread = True
            Thread(target=_watch, name="timely watch of stores", daemon=True).start()
    try:
        yield
    finally:
        with _lock:
            del _under_way[token]


def _watch() -> None:
    global _has_thread
    reported: set[object] = set()
    while True:
        with _lock:
            if not _under_way:
                _has_thread = False
                return
            reported &= _under_way.keys()
            waiting = [
                (began + SECONDS, token, of) for token, (of, began) in _under_way.items() if token not in reported
            ]
        now = clock.monotonic()
        for due, token, of in waiting:
            if due <= now:
                reported.add(token)
                notify(f"the store of {of} has not answered for {SECONDS:g} s; what waits for it goes on when it does")
        clock.sleep(min([SECONDS, *(due - now for due, _, _ in waiting if due > now)]))
