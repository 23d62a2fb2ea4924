"""Report who holds everything up, once nothing can move any more.

A worker *sleeps* while it waits without a time limit: in `step_while`, in `step_or_park()`, or, after its program has
returned, for its dataflows to complete or its peers to end. A worker that runs an operator or the user's program does
not sleep. Nor does a worker that waits for a limited time, because it then looks at the outside by itself.

A run *stands still* when all its workers have slept for a while with nothing moved, and nothing outside of the workers
may wake one of them: no timer, no request, no source that may be activated (`Worker.may_be_woken`), and no thread of
the program that could call a worker (`Worker.call`). Then no message is under way, and none will ever be sent. Anything
else is idle: a service that waits for its input is never reported.

A sleeping worker finds that out by itself, so nothing runs beside it. It sleeps for a limited time. If that passes it
asks its peers, which answer only if they, too, have slept for half of that time. The first of all workers that have not
dropped a dataflow reports what its completion waits for, once, until something has moved again.
"""

from __future__ import annotations

import gc
import threading
import time as clock
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil, inf

from timely.dataflow.dataflow import Dataflow
from timely.dataflow.explain import EVERYWHERE, PATIENCE, explanation, held_anywhere, is_absence, kept
from timely.dataflow.host import Host
from timely.observe.notices import notify
from timely.worker.dataflows import Dataflows
from timely.worker.garbage import search_everything, thaw
from timely.worker.requests import Requests

SECONDS = 30.0
"""After how long a standstill is reported, unless the configuration sets another time."""
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


class Standstill:
    """Whether one worker has slept for so long that it is to report what it waits for."""

    def __init__(self, host: Host, dataflows: Dataflows, requests: Requests) -> None:
        self._host = host
        self._dataflows = dataflows
        self._requests = requests
        self._seconds = inf
        self._due = inf

    def report_after(self, seconds: float) -> None:
        """Report a standstill that has lasted for `seconds`; with 0, none."""
        self._seconds = self._due = seconds or inf

    def park(self, timeout: float | None) -> None:
        """Park the worker. Without a time limit it sleeps, and looks whether everything stands still when that lasts.

        Like the allocator's `park`, it may return though nothing has arrived.
        """
        park, activity = self._host.allocator.park, self._host.activity
        if timeout is not None or self._seconds == inf:
            park(timeout)
            activity.slept = 0.0
            return
        if not activity.slept:
            # Something has moved since the last sleep, so a standstill is to be reported again (`_look` sets `inf`).
            self._due = self._seconds
        begun = clock.monotonic()
        park(None if self._due == inf else max(0.0, self._due - activity.slept))
        activity.slept += clock.monotonic() - begun
        if activity.slept >= self._due:
            self._look()

    def has_lasted(self, seconds: float) -> bool:
        """Return whether this worker has slept for so long, and nothing outside may wake it."""
        if self._host.activity.slept < seconds or not (self._requests.is_empty and self._dataflows.is_idle):
            return False
        return not self._dataflows.may_be_woken and is_alone()

    def is_certain(self) -> bool:
        """Return whether a worker without peers, which has just found nothing to do, can never go on.

        If reports are turned off, something may wake it that is not known here, such as a signal.
        """
        if self._host.peers > 1 or self._seconds == inf or not self.has_lasted(0.0):
            return False
        # Not `search_everything`, which does nothing in a process whose searches are not kept short.
        thaw()
        gc.collect()  # a forgotten capability that it finds wakes the worker, which drops it
        return self.has_lasted(0.0)

    def _look(self) -> None:
        """Report the standstill if it is one and this worker is the one to do so; else look again after as long."""
        host = self._host
        # Before all else: a sleep that has lasted as long as `_due` would make every later `park` return at once.
        self._due += self._seconds
        if self.has_lasted(self._seconds):
            search_everything()  # a forgotten capability that it finds wakes its worker, which drops it
        texts = []
        if self.has_lasted(self._seconds):
            for dataflow in tuple(self._dataflows.running.values()):
                if lines := self._held(dataflow):
                    texts.append(explanation(lines, kept(dataflow)))
        if texts and host.activity.slept:  # what arrived with the answers may have moved something
            self._due = inf
            notify(f"nothing has moved on worker {host.index} for {self._seconds:g} s\n" + "\n".join(texts))

    def _held(self, dataflow: Dataflow) -> list[str]:
        """Return a line for each thing that any worker holds of a dataflow, if all others have slept for long enough.

        Nothing if one has not, or if a worker before this one runs the dataflow, too, and so reports it.
        """
        # Half, since workers do not fall asleep at the same moment. Rounded up, since a peer answers 0 even if it is
        # awake.
        asleep = (ceil(self._seconds / 2 * 1000),)
        answers = self._host.explainer.ask(dataflow.index, EVERYWHERE, asleep, PATIENCE)
        before = [peer for peer in answers.lines if peer < self._host.index]
        if answers.silent or not all(is_absence(dataflow, peer, answers.lines[peer]) for peer in before):
            return []
        return held_anywhere(dataflow, EVERYWHERE, (), answers, PATIENCE)
