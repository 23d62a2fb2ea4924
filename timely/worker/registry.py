"""The workers that run in this process, and the threads that run them or wait for them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from timely.worker.worker import Worker

OURS = "timely "
"""How the names of this library's own threads begin, none of which sends anything."""

_running: set[Worker] = set()
_engaged: set[threading.Thread] = set()


@contextmanager
def running(worker: Worker) -> Iterator[None]:
    """Register a worker that runs in this thread."""
    _running.add(worker)
    try:
        with engaged():
            yield
    finally:
        _running.discard(worker)


def running_workers() -> list[Worker]:
    """Return the workers of this process, in the order of their indices."""
    return sorted(_running, key=lambda worker: worker.index)


@contextmanager
def engaged() -> Iterator[None]:
    """Register this thread as one that runs a worker, or waits for those that do, and so asks nothing of any."""
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
