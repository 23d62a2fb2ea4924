"""Report operators and loops that go on for too long: `timely run --stall SECONDS`.

A worker that sleeps reports by itself that everything stands still (see `timely.worker.standstill`). One that is inside
an operator cannot, so a thread looks at the workers of its process a few times in that span. When no count of a
worker's dataflows has changed for so long (no message was sent or taken, no capability moved, no frontier) and it is
inside an operator, the thread reports which, once. A loop that goes on while no time becomes final is reported, too: it
has not converged. A worker in the program, or waiting, is left alone.

Nothing is counted for this: what is looked at is there in any case.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from threading import Event, Thread
from types import TracebackType
from typing import Any

from timely.observe.status import doing, going_round, progress_of_loops, running_workers, steady
from timely.run.signals import LAST_WORDS_SECONDS, say
from timely.worker.worker import Worker

LOOKS = 8
"""How often to look in the span after which a stall is told."""


class Still:
    """Since when something has been the same.

    >>> still = Still(5.0)
    >>> [still.is_due(value, now) for value, now in [("a", 0.0), ("a", 4.0), ("a", 6.0), ("a", 7.0), ("b", 8.0)]]
    [False, False, True, False, False]
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._value: Any = None
        self.since = 0.0
        self._is_told = True

    def is_due(self, value: Any, now: float) -> bool:
        """Return whether `value` has now been the same for long enough, once for each time it changes."""
        if value != self._value:
            self._value, self.since, self._is_told = value, now, False
        if self._is_told or now - self.since < self._seconds:
            return False
        self._is_told = True
        return True


class Watched:
    """What is remembered of one worker."""

    def __init__(self, seconds: float) -> None:
        self.counts = Still(seconds)
        self.outer = Still(seconds)
        self.loops: dict[str, tuple[int, ...]] = {}


class StallWatch:
    """Watches the workers of this process until it is left."""

    def __init__(self, seconds: float, tell: Callable[[str], None] = say) -> None:
        self._seconds = seconds
        self._tell = tell
        self._watched: dict[int, Watched] = {}
        self._has_ended = Event()
        self._thread = Thread(target=self._watch, name="timely stall watch", daemon=True)

    def __enter__(self) -> StallWatch:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._has_ended.set()
        self._thread.join(LAST_WORDS_SECONDS)

    def _watch(self) -> None:
        while not self._has_ended.wait(self._seconds / LOOKS):
            for worker, thread in running_workers():
                if worker.dataflows:
                    self._look(worker, thread, clock.monotonic())

    def _look(self, worker: Worker, thread: int, now: float) -> None:
        watched = self._watched.setdefault(worker.index, Watched(self._seconds))
        if watched.counts.is_due(steady(lambda: counts(worker)), now):
            activity = doing(worker, thread)
            if activity.is_in_operator and not self._has_ended.is_set():
                self._tell(f"nothing has moved on worker {worker.index} for {self._seconds:g} s: {activity.text}")
        if watched.outer.is_due(steady(lambda: outermost_frontiers(worker)), now):
            for line in going_round(worker, watched.loops, self._seconds):
                self._tell(f"no time has become final for {self._seconds:g} s: {line}")
        if now == watched.outer.since:
            watched.loops = steady(lambda: progress_of_loops(worker))


def counts(worker: Worker) -> Any:
    """Return something that is another whenever a count of pointstamps has changed here."""
    dataflows = worker.dataflows
    return [(each.index, each.tracker.revision, each.protocol.statistics()) for each in dataflows]


def outermost_frontiers(worker: Worker) -> Any:
    """Return the frontiers at all locations outside of loops."""
    return [
        [front for location, front in enumerate(dataflow.tracker.fronts()) if not dataflow.is_in_loop(location)]
        for dataflow in worker.dataflows
    ]
