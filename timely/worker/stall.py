"""Report operators and loops that go on for too long: `timely run --stall SECONDS`.

A worker that sleeps reports by itself that the run stands still (see `timely.worker.standstill`). A worker inside an
operator cannot, so a thread looks at the workers of its process a few times in that span. It reports an operator, once,
if the worker is inside it and for the whole span no count of the worker's dataflows has changed: no message was sent or
received, and no capability or frontier moved. It also reports a loop that goes on while no time becomes final: the loop
has not converged. It ignores a worker that is in the program, or waits.

Nothing is counted for this: the watch reads what is there in any case.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from timely.dataflow.dataflow import Dataflow
from timely.observe.notices import notify
from timely.order import Time
from timely.worker.status import progress_of_loops, running_workers, status, steady, unconverged

if TYPE_CHECKING:
    from timely.worker.worker import Worker

LOOKS = 8
"""How often the watch looks in the span after which it reports a stall."""
JOIN_SECONDS = 5.0
"""How long the end of a run waits for a watch that is printing."""


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
        self._is_reported = True

    def is_due(self, value: Any, now: float) -> bool:
        """Return whether `value` has now been the same for long enough, once for each time it changes."""
        if value != self._value:
            self._value, self.since, self._is_reported = value, now, False
        if self._is_reported or now - self.since < self._seconds:
            return False
        self._is_reported = True
        return True


class Watched:
    """What the watch remembers of one worker."""

    def __init__(self, seconds: float) -> None:
        self.counts = Still(seconds)
        self.outer = Still(seconds)
        self.loops: dict[str, Time] = {}


class StallWatch:
    """Watches the workers of this process inside a `with` block."""

    def __init__(self, seconds: float, notify: Callable[[str], None] = notify) -> None:
        self._seconds = seconds
        self._notify = notify
        self._watched: dict[int, Watched] = {}
        self._has_ended = Event()
        self._thread = Thread(target=self._watch, name="timely stall watch", daemon=True)

    def __enter__(self) -> StallWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._has_ended.set()
        self._thread.join(JOIN_SECONDS)

    def _watch(self) -> None:
        while not self._has_ended.wait(self._seconds / LOOKS):
            for worker in running_workers():
                if worker.dataflows:
                    self._look(worker, clock.monotonic())

    def _look(self, worker: Worker, now: float) -> None:
        watched = self._watched.setdefault(worker.index, Watched(self._seconds))
        if watched.counts.is_due(steady(counts, worker), now):
            seen = status(worker)
            if seen.operator is not None and not self._has_ended.is_set():
                self._notify(f"nothing has moved on worker {worker.index} for {self._seconds:g} s: {seen}")
        if watched.outer.is_due(steady(outermost_frontiers, worker), now):
            lines = unconverged(worker, watched.loops, self._seconds)
            for line in lines:
                self._notify(f"no time has become final for {self._seconds:g} s: {line}")
            if watched.loops and not lines:
                watched.outer = Still(self._seconds)  # nothing of the loop was in a queue at this moment: begin again
        # `is_due` has just set `since`, because the frontiers differ: the progress of loops is measured from here.
        if now == watched.outer.since:
            watched.loops = progress_of_loops(worker)
            if not watched.loops:
                watched.outer = Still(self._seconds)


def counts(worker: Worker) -> Any:
    """Return something that differs whenever a count of pointstamps has changed here, or an operator in a loop has run.

    In a region, operators run without a change of these counts. An operator outside of loops that runs again and again,
    and moves nothing, does not count as a change.
    """
    return [
        (each.index, each.tracker.revision, each.protocol.statistics(), activations_in_loops(each))
        for each in worker.dataflows
    ]


def activations_in_loops(dataflow: Dataflow) -> list[int]:
    """Return how often each operator has run whose times have a loop counter."""
    return [each.activations for each in dataflow.operators if each.scope.width > each.scope.outer]


def outermost_frontiers(worker: Worker) -> Any:
    """Return the frontiers at all locations outside of loops."""
    return [
        [front for location, front in enumerate(dataflow.tracker.fronts()) if not dataflow.is_in_loop(location)]
        for dataflow in worker.dataflows
    ]
