"""Which threads of this process may call a worker from outside."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

OURS = "timely "
"""How the names of this library's own threads begin, none of which calls a worker."""

_engaged: set[threading.Thread] = set()


@contextmanager
def engaged() -> Iterator[None]:
    """Register this thread as one that runs a worker, or waits for those that do, and so calls none from outside."""
    thread = threading.current_thread()
    added = thread not in _engaged
    _engaged.add(thread)
    try:
        yield
    finally:
        if added:
            _engaged.discard(thread)


def is_alone() -> bool:
    """Return whether all threads of this process are engaged, or this library's own: nothing else can wake a worker."""
    return all(thread in _engaged or thread.name.startswith(OURS) for thread in threading.enumerate())
