"""Show how far long work is while a program waits for it, in a line on standard error.

A program *waits* while it is inside of `Worker.step_while`, or steps its worker again and again. Its work is *long*
once it has waited for `Config.quiet_seconds` (1 unless set), and for as long as something moves: the first worker is
inside of an operator, or its operators run, or a frontier moves. So a service that waits for requests shows nothing.

The line has the epoch and the round of a loop that the work is at, the rows that sources have taken in while it was
shown, and how many records operators receive a second. A thread looks from outside, four times a second, and only where
a line can be shown: on a terminal, or where the configuration asks for it. What it looks at is there in any case. While
the line is shown it also counts records, with the bounded cost of the live page (`timely.live.looking`).

Programs of sessions and jobs show their own progress.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, NamedTuple

from timely.config import Config
from timely.observe.activity import PARKED, STEPPING
from timely.observe.notices import QUIET_SECONDS, is_terminal
from timely.worker.status import running_workers, steady

if TYPE_CHECKING:
    from timely.live.display import Display
    from timely.live.looking import Looking, ProcessSeen
    from timely.worker.worker import Worker

PERIOD = 0.25
"""Seconds between two looks, and after which a program that has not stepped its worker does not wait for it."""
LOOK_SECONDS = 1.0
"""Seconds between two looks at epochs and records while a line is shown."""
STILL_SECONDS = 3.0
"""After this many seconds in which nothing moves, nothing is shown any more."""
JOIN_SECONDS = 5.0
OWN_PROGRESS = ("differential.session", "differential.jobs")
"""Packages whose programs show their own progress."""


class Sight(NamedTuple):
    """What is seen of a worker from outside: which wait it is in, if any, and what moves as it works."""

    waits: int
    """How many waits the program has begun."""
    is_waiting: bool
    is_inside: bool
    """Whether the worker is inside of an operator."""
    counts: tuple[int, ...]


class Wait:
    """How long a program has waited for work under way.

    >>> wait = Wait(1.0)
    >>> at = lambda waits, count: Sight(waits, True, False, (count,))
    >>> [wait.is_long(at(1, now), now / 2) for now in range(4)], wait.is_long(at(2, 4), 2.0)
    ([False, False, True, True], False)
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._waits = -1
        self._counts: tuple[int, ...] = ()
        self.since = 0.0
        """When the present wait began."""
        self._moved = 0.0

    def is_long(self, sight: Sight, now: float) -> bool:
        """Return whether the program waits for long work, which goes on."""
        if sight.waits != self._waits or not sight.is_waiting:
            self._waits, self.since = sight.waits, now
        if sight.is_inside or sight.counts != self._counts:
            self._counts, self._moved = sight.counts, now
        return sight.is_waiting and now - self.since >= self._seconds and now - self._moved < STILL_SECONDS


def progress_line(config: Config, build: Callable[..., Any]) -> AbstractContextManager[object]:
    """Return a block in which the progress of a program is shown, where it is to be shown and can be."""
    seconds = config.quiet_seconds
    if config.process or seconds == 0 or str(build.__module__).startswith(OWN_PROGRESS):
        return nullcontext()
    if seconds is None and not is_terminal():
        return nullcontext()
    return ProgressLine(QUIET_SECONDS if seconds is None else seconds)


class ProgressLine:
    """Watches the first worker inside a `with` block, and shows its work once that is long."""

    def __init__(self, seconds: float) -> None:
        self._wait = Wait(seconds)
        self._has_ended = Event()
        self._thread = Thread(target=self._watch, name="timely progress", daemon=True)
        self._shown: _Shown | None = None

    def __enter__(self) -> ProgressLine:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._has_ended.set()
        self._thread.join(JOIN_SECONDS)

    def _watch(self) -> None:
        try:
            while not self._has_ended.wait(PERIOD):
                worker = next((each for each in running_workers() if each.index == 0), None)
                now = clock.monotonic()
                if worker is not None and self._wait.is_long(steady(sight_of, worker, now), now):
                    if self._shown is None:
                        # Made when it is first needed: a short program imports nothing of this.
                        self._shown = _Shown(self._wait.since)
                    self._shown.show(worker)
                else:
                    self._hide()
        finally:
            self._hide()

    def _hide(self) -> None:
        if self._shown is not None:
            self._shown.close()
            self._shown = None


def sight_of(worker: Worker, now: float) -> Sight:
    activity, dataflows = worker.activity, worker.dataflows
    is_waiting = activity.doing in (STEPPING, PARKED) or now - activity.step_began < PERIOD
    counts = [number for each in dataflows for number in (each.index, each.tracker.revision)]
    counts += [sum(operator.activations for operator in each.operators) for each in dataflows]
    return Sight(activity.waits, is_waiting, any(each.running is not None for each in dataflows), tuple(counts))


class Amounts(NamedTuple):
    """How much was counted so far: the rows that sources have sent, and the records that operators have received."""

    at: float
    taken: int
    received: int

    def figures(self, before: Amounts) -> list[str]:
        """Return for people what there is now, and what was added in each second since before.

        >>> Amounts(12.0, 3_000_000, 5_000).figures(Amounts(10.0, 1_000_000, 1_000))
        ['3,000,000 rows taken in, 1,000,000/s', '2,000 records/s']
        >>> Amounts(1.0, 0, 9).figures(Amounts(0.0, 0, 0))
        ['9 records/s']
        """
        seconds = max(self.at - before.at, 1e-6)
        rows = f"{self.taken:,} rows taken in, {(self.taken - before.taken) / seconds:,.0f}/s"
        return [*([rows] if self.taken else []), f"{(self.received - before.received) / seconds:,.0f} records/s"]


def amounts(workers: list[Worker], seen: ProcessSeen, at: float) -> Amounts:
    """Return how much all workers of this process have taken in and received."""
    from timely.live.looking import RECEIVED, SENT

    taken = received = 0
    operators = {(worker.index, each.index): each.operators for worker in workers for each in worker.dataflows}
    for worker in seen.workers:
        for index, dataflow in worker.dataflows.items():
            for operator in operators.get((worker.index, index), ()):
                taken += 0 if operator.inputs else int(dataflow.rows[operator.index, SENT])
                received += int(dataflow.rows[operator.index, RECEIVED])
    return Amounts(at, taken, received)


def epoch_of(seen: ProcessSeen) -> int | None:
    """Return the earliest epoch that is not complete anywhere, if the first worker is among those seen."""
    frontiers = [each.frontiers for worker in seen.workers for each in worker.dataflows.values()]
    return min((time[0] for found in frontiers for times in found.values() for time in times), default=None)


class _Shown:
    """The line while it is shown."""

    def __init__(self, since: float) -> None:
        from timely.live.display import Display
        from timely.live.looking import Looking

        self._looking: Looking = Looking()
        self._display: Display = Display(True)
        self._display.begin("timely: computing", None, began=since)
        self._amounts: Amounts | None = None
        self._figures: list[str] = []
        self._due = 0.0

    def show(self, worker: Worker) -> None:
        now = clock.monotonic()
        if now >= self._due:
            self._due = now + LOOK_SECONDS
            self._figures = self._look(worker, now)
        self._display.state(self._figures)

    def close(self) -> None:
        """Remove the line, and count nothing more."""
        self._display.end()
        self._looking.close()

    def _look(self, worker: Worker, now: float) -> list[str]:
        from timely.live.display import round_of

        seen, reached = steady(self._looking.look), steady(round_of, worker)
        before, self._amounts = self._amounts, steady(amounts, running_workers(), seen, now)
        epoch = epoch_of(seen)
        figures = [] if epoch is None else [f"epoch {epoch:,}"]
        figures += [f"round {reached:,}"] if reached else []
        return figures + ([] if before is None else self._amounts.figures(before))  # the first look begins to count
