"""Progress: what a job reads, computes and follows, how fast, and about how much longer.

The display is on standard error, and shows what worker 0 does. On a terminal, if rich is installed, it is a line that
changes. Elsewhere, as in a file or under `timely run -n`, it is a new line every `PLAIN_SECONDS`, so a short job prints
none.

While the first answer is computed, the display has the round of a loop that the dataflow is in, and how many records
the operators send each other: as a loop settles, they become fewer. Both come from the worker's log, which records them
only while someone listens: the display does on a terminal, and elsewhere from its first line on.
"""

from __future__ import annotations

import sys
import time as clock
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Self

from timely import Worker
from timely.observe.events import FrontierChanged, MessageSent

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PERIOD = 0.1
"""Seconds between two refreshes on a terminal."""
PLAIN_SECONDS = 10.0
"""Seconds between two lines elsewhere."""
ESTIMATED_FROM = 1.0
"""After this many seconds of a phase there is an estimate of what is left."""


class Display:
    """A line of progress that changes with the phase of the job. Use from one thread, in a `with` block."""

    def __init__(self, is_shown: bool) -> None:
        self._progress = _on_the_terminal() if is_shown else None
        self._is_shown = is_shown
        self._period = PLAIN_SECONDS if self._progress is None else PERIOD
        self._task: TaskID | None = None
        self._phase = ""
        self._total: float | None = None
        self._is_endless = False
        self._shown_at = 0.0
        self._began = 0.0
        self._round = 0
        self._sent = 0
        self._worker: Worker | None = None
        self._forget: Callable[[], None] | None = None

    def __enter__(self) -> Self:
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def begin(self, phase: str, total: float | None, *, is_endless: bool = False) -> None:
        """Show another phase; `total` is how much there is to do in it, if that is known.

        A phase that is endless, because it follows something, is shown on a terminal only.
        """
        self._phase, self._total, self._is_endless = phase, total, is_endless
        self._began = self._shown_at = clock.monotonic()
        if self._progress is not None:
            if self._task is not None:
                self._progress.remove_task(self._task)
            self._task = self._progress.add_task(phase, total=total, figures="")

    def advance(self, done: float, rows: int, noun: str) -> None:
        """Show how much of the phase is done, with the rows so far, their rate, and about how long the rest takes."""
        if self._is_due():
            seconds = max(self._shown_at - self._began, 1e-6)
            figures = f"{rows:,} {noun}, {rows / seconds:,.0f}/s"
            rest = left(done, self._total, seconds)
            self._show(f"{figures}, {rest}" if rest else figures, done)

    def computing(self) -> None:
        """Show the round, and how many records operators have sent each other a second since the last refresh."""
        looked_at = self._shown_at
        if self._worker is None or not self._is_due():
            return
        if self._forget is None:
            self._listen(self._worker)
            self._show("")
            return
        rounds = f"round {self._round:,}, " if self._round else ""
        self._show(f"{rounds}{self._sent / (self._shown_at - looked_at):,.0f} records/s")
        self._sent = 0

    def listen(self, worker: Worker) -> Callable[[], None]:
        """Learn rounds and records from the worker's log; return the function that ends this."""
        self._worker = worker
        if self._progress is not None:
            self._listen(worker)

        def end() -> None:
            self._worker = None
            if self._forget is not None:
                self._forget()
                self._forget = None

        return end

    def _listen(self, worker: Worker) -> None:
        self._forget = worker.log.listen(self._learn, MessageSent, FrontierChanged)

    def _learn(self, events: Sequence[Any]) -> None:
        for event in events:
            if isinstance(event, MessageSent):
                self._sent += event.records
            else:
                self._round = max((time[1] for time in event.frontier if len(time) > 1), default=self._round)

    def _is_due(self) -> bool:
        if not self._is_shown or (self._is_endless and self._progress is None):
            return False
        now = clock.monotonic()
        if now < self._shown_at + self._period:
            return False
        self._shown_at = now
        return True

    def _show(self, figures: str, done: float | None = None) -> None:
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, figures=figures, completed=done)
            return
        share = f"{done / self._total:.0%}" if done is not None and self._total else ""
        parts = [share, figures, f"for {lasting(self._shown_at - self._began)}"]
        sys.stderr.write(f"{self._phase}: {', '.join(filter(None, parts))}\n")
        sys.stderr.flush()


def left(done: float, total: float | None, seconds: float) -> str:
    """Return an estimate of what is left, from how long it took to do a part; nothing where that cannot be known.

    >>> left(25, 100, 10.0), left(1, 1000, 10.0), left(0, 100, 10.0), left(25, None, 10.0), left(25, 100, 0.1)
    ('about 30 s left', 'about 2 h 46 min left', '', '', '')
    """
    if total is None or not 0 < done < total or seconds < ESTIMATED_FROM:
        return ""
    return f"about {lasting((total - done) / done * seconds)} left"


def lasting(seconds: float) -> str:
    """Return a span of time for people.

    >>> lasting(0.4), lasting(59.7), lasting(119), lasting(7259)
    ('0 s', '1 min', '2 min', '2 h 1 min')
    """
    if round(seconds) < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _on_the_terminal() -> Progress | None:
    """Return the line on standard error, or None if that is not a terminal, or rich is not installed."""
    if find_spec("rich") is None:
        return None
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        return None
    texts = TextColumn("{task.description}"), TextColumn("{task.fields[figures]}")
    columns = SpinnerColumn(), texts[0], BarColumn(), texts[1], TimeElapsedColumn()
    return Progress(*columns, console=console, transient=True)
