"""Report who holds everything up, once nothing can move any more.

A worker *sleeps* while it waits without a time limit: in `step_while`, in `step_or_park()`, or with its program
returned, for its dataflows to complete or for its peers to end. A worker that runs an operator or the user's program
does not sleep, nor does one that waits for a limited time, for it looks for itself at what comes from outside.

A run *stands still* when all its workers have slept for a while with nothing moved, and nothing outside of the workers
may wake one of them: no timer, no request, no source that may be activated (`Worker.may_be_woken`), and no thread of
the program that could ask for anything (`Worker.call`). Then no message is under way, and none will ever be sent. All
else is idle: a service that waits for its input is never reported.

A sleeping worker finds that out by itself, so nothing runs beside it: it sleeps for a limited time, and if that passes
asks the others, which answer only if they, too, have slept for half of that time. The first worker of all that have
not dropped a dataflow reports what its completion waits for, once, until something has moved again.
"""

from __future__ import annotations

import threading
import time as clock
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING

from timely.dataflow.explain import PATIENCE, explanation
from timely.run.signals import say
from timely.worker.garbage import search_everything

if TYPE_CHECKING:
    from timely.worker.worker import Worker

SECONDS = 30.0
"""After how long a standstill is reported, unless the configuration sets another time."""

OURS = "timely "
"""How the names of this library's own threads begin, none of which sends anything."""

_engaged: set[threading.Thread] = set()


@contextmanager
def engaged() -> Iterator[None]:
    """Take this thread for one that runs a worker, or waits for those that do, and so asks nothing of any."""
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


class Standstill:
    """How long one worker has slept. `slept` is reset by the worker whenever something has moved."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._seconds = inf
        self._due = inf
        self.slept = 0.0

    def report_after(self, seconds: float) -> None:
        """Report a standstill that has lasted for `seconds`; with 0, none."""
        self._seconds = self._due = seconds or inf

    def park(self, timeout: float | None) -> None:
        """Park the worker. Without a time limit it sleeps, and looks whether everything stands still when that lasts.

        Like the allocator's `park`, it may return though nothing has arrived.
        """
        park = self._worker.allocator.park
        if timeout is not None or self._seconds == inf:
            park(timeout)
            self.slept = 0.0
            return
        if not self.slept:
            self._due = self._seconds
        begun = clock.monotonic()
        park(None if self._due == inf else max(0.0, self._due - self.slept))
        self.slept += clock.monotonic() - begun
        if self.slept >= self._due:
            self._look()

    def has_lasted(self, seconds: float) -> bool:
        """Return whether this worker has slept for so long, and nothing outside may wake it."""
        worker = self._worker
        return self.slept >= seconds and worker.is_stalled and not worker.may_be_woken and is_alone()

    def _look(self) -> None:
        """Report the standstill if it is one and this worker is the one to do so; else look again after as long."""
        self._due += self._seconds
        if self.has_lasted(self._seconds):
            search_everything()  # a forgotten capability that it finds wakes its worker, which drops it
        texts = self._explained()
        if texts and self.slept:  # what arrived with the answers may have moved something
            self._due = inf
            say(f"nothing has moved on worker {self._worker.index} for {self._seconds:g} s\n" + "\n".join(texts))

    def _explained(self) -> list[str]:
        """Return what the dataflows wait for that no worker before this one reports; nothing unless all stand still."""
        if not self.has_lasted(self._seconds):
            return []
        explainer = self._worker.explainer
        texts = []
        for dataflow in self._worker.dataflows:
            lines = explainer.standstill(dataflow, self._seconds / 2, PATIENCE)
            if lines:
                texts.append(explanation(lines, f"{dataflow} is kept from completing by:"))
        return texts
