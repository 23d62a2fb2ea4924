"""Progress: what a long computation does, how far it is, and about how much longer it takes.

The display is on standard error, and shows what one worker does. On a terminal, if rich is installed, it is a line with
a bar; without rich, and in a notebook, it is a line that is written again in place. Elsewhere, as in a file or under
`timely run -n`, it is a new line every `PLAIN_SECONDS`, so a short computation prints none.

While an answer is computed, the display has the round of a loop that the worker is in, and how many records the
operators send each other: as a loop settles, they become fewer. The round is read from outside. Records come from the
worker's log, which slows down a loop with small rounds while someone listens. So the display listens for a tenth of the
time.
"""

from __future__ import annotations

import sys
import threading
import time as clock
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, Self

from timely.observe.events import MessageSent
from timely.worker.worker import Worker

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PERIOD = 0.25
"""Seconds between two refreshes of a line that changes in place."""
PLAIN_SECONDS = 10.0
"""Seconds between two lines elsewhere."""
SAMPLE, SAMPLED_EVERY = 0.1, 1.0
"""For how many seconds records are counted, and how often."""
WIDTH = 120, 24
"""The size of a terminal whose size is not known, and of a notebook."""
ESTIMATED_FROM = 1.0
"""After this many seconds of a phase there is an estimate of what is left."""


class Line:
    """Where a display shows what it has to show."""

    period = PERIOD
    """Seconds between two refreshes."""
    is_in_place = True
    """Whether the line is replaced, and gone at the end."""
    phase = ""

    def begin(self, phase: str, began: float) -> None:
        """Show another phase, which began at a time of `time.monotonic`."""
        self.phase = phase

    def show(self, figures: str, share: float | None, seconds: float) -> None:
        """Show figures, the share that is done, if it is known, and for how long the phase has lasted."""

    def end(self) -> None:
        """Show nothing more."""


class Display:
    """A line of progress that changes with the phase of a computation. Use from one thread, in a `with` block."""

    def __init__(self, is_shown: bool) -> None:
        self._line: Line | None = _line() if is_shown else None
        self._total: float | None = None
        self._is_endless = False
        self._shown_at = 0.0
        self._began = 0.0
        self._records: _Records | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def period(self) -> float:
        """Seconds between two refreshes."""
        return PERIOD if self._line is None else self._line.period

    def end(self) -> None:
        """Show nothing more."""
        self._with_line(lambda line: line.end())

    def begin(self, phase: str, total: float | None, *, is_endless: bool = False, began: float | None = None) -> None:
        """Show another phase, which begins now, or has begun at a time of `time.monotonic`.

        `total` is how much there is to do in it, if that is known. A phase that is endless, because it follows
        something, is shown only by a line that changes in place.
        """
        self._total, self._is_endless = total, is_endless
        self._began = self._shown_at = clock.monotonic() if began is None else began
        self._with_line(lambda line: line.begin(phase, self._began))

    def advance(self, done: float, rows: int, noun: str, *, total: float | None = None) -> None:
        """Show how much of the phase is done, with the rows so far, their rate, and about how long the rest takes.

        `total` is how much there is to do now, if that has changed.
        """
        total = self._total if total is None else total
        if self._is_due():
            seconds = max(self._shown_at - self._began, 1e-6)
            figures = f"{rows:,} {noun}, {rows / seconds:,.0f}/s"
            rest = time_left(done, total, seconds)
            self._show(f"{figures}, {rest}" if rest else figures, min(done / total, 1.0) if total else None)

    def state(self, figures: Sequence[str]) -> None:
        """Show some figures."""
        if self._is_due():
            self._show(", ".join(figures))

    def computing(self) -> None:
        """Show the round, and how many records operators send each other a second."""
        if self._records is None or self._line is None:
            return
        self._records.sample(self._shown_at + self._line.period)
        if self._is_due():
            reached, rate = round_of(self._records.worker), self._records.rate
            rounds = [f"round {reached:,}"] if reached else []
            self._show(", ".join([*rounds, *([] if rate is None else [f"{rate:,.0f} records/s"])]))

    def listen(self, worker: Worker, *, is_own: bool = True) -> Callable[[], None]:
        """Show what a worker does; return the function that ends this.

        With `is_own=False` the worker runs on another thread, and begins and ends to count in its next step.
        """
        records = self._records = _Records(worker, (lambda act: act()) if is_own else worker.call)

        def end() -> None:
            self._records = None
            records.end()

        return end

    def _is_due(self) -> bool:
        if self._line is None or (self._is_endless and not self._line.is_in_place):
            return False
        now = clock.monotonic()
        if now < self._shown_at + self._line.period:
            return False
        self._shown_at = now
        return True

    def _show(self, figures: str, share: float | None = None) -> None:
        self._with_line(lambda line: line.show(figures, share, self._shown_at - self._began))

    def _with_line(self, act: Callable[[Line], None]) -> None:
        """Do something with the line, or be without one from now on if standard error cannot be written to."""
        if self._line is not None:
            try:
                act(self._line)
            except Exception:  # what cannot be shown must not end what it is about
                self._line = None


class _Records:
    """How many records the operators of a worker send each other a second, as of the last sample.

    `on_worker` calls a function on the worker's thread, in its next step or now. Only that thread uses the log.
    """

    def __init__(self, worker: Worker, on_worker: Callable[[Callable[[], None]], object]) -> None:
        self.worker = worker
        self.rate: float | None = None
        self._on_worker = on_worker
        self._due = 0.0
        self._began: float | None = None
        """When the present sample was asked for."""
        self._forget: Callable[[], None] | None = None
        self._sent = 0
        self._listened = 0.0

    def sample(self, shown_at: float) -> None:
        """Begin or end a sample if it is time to, so that there is one before something is shown."""
        now = clock.monotonic()
        if self._began is None:
            if now >= max(self._due, shown_at - SAMPLED_EVERY):
                self._began = now
                self._on_worker(self._listen)
        elif now >= self._began + SAMPLE and self._forget is not None:
            self._began, self._due = None, now + SAMPLED_EVERY - SAMPLE
            self._on_worker(self._leave)

    def end(self) -> None:
        self._on_worker(self._leave)

    def _listen(self) -> None:
        self._sent, self._listened = 0, clock.monotonic()
        self._forget = self.worker.log.listen(self._learn, MessageSent)

    def _leave(self) -> None:
        forget, self._forget = self._forget, None
        if forget is not None:
            forget()
            seconds = clock.monotonic() - self._listened
            if seconds >= SAMPLE / 2:
                self.rate = self._sent / seconds

    def _learn(self, events: Sequence[Any]) -> None:
        self._sent += sum(event.records for event in events)


class _Plain(Line):
    """A new line each time."""

    period = PLAIN_SECONDS
    is_in_place = False

    def show(self, figures: str, share: float | None, seconds: float) -> None:
        sys.stderr.write(f"{_text(self.phase, share, figures, seconds)}\n")
        sys.stderr.flush()


class _Again(Line):
    """A line that is written again from its beginning, and overwritten by spaces at the end."""

    _width = 0

    def show(self, figures: str, share: float | None, seconds: float) -> None:
        self._write(_text(self.phase, share, figures, seconds))

    def end(self) -> None:
        if self._width:
            self._write("")
            sys.stderr.write("\r")
            sys.stderr.flush()

    def _write(self, text: str) -> None:
        # One column less, or a terminal would go to the next line, and "\r" would no longer return to this one.
        text = text[: get_terminal_size(WIDTH).columns - 1]
        # Padded to the length of what was there, of which nothing may be left.
        sys.stderr.write(f"\r{text:<{self._width}}")
        sys.stderr.flush()
        self._width = len(text)


class _Bar(Line):
    """A line of rich, with a bar."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task: TaskID | None = None

    def begin(self, phase: str, began: float) -> None:
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._task = self._progress.add_task(phase, total=None, figures="")
        self._progress.tasks[-1].start_time = began
        before = set(threading.enumerate())
        self._progress.start()
        for thread in set(threading.enumerate()) - before:
            thread.name = f"timely {thread.name}"  # it calls no worker (see `timely.worker.standstill`)

    def show(self, figures: str, share: float | None, seconds: float) -> None:
        assert self._task is not None
        total = None if share is None else 1.0
        self._progress.update(self._task, figures=figures, completed=share, total=total)

    def end(self) -> None:
        self._progress.stop()


def _line() -> Line | None:
    """Return the line for what standard error is, None if nothing can be shown there."""
    try:
        is_notebook = type(sys.stderr).__module__.partition(".")[0] == "ipykernel"
        return _terminal() if sys.stderr.isatty() else _Again() if is_notebook else _Plain()
    except Exception:  # it is closed, None, or an object of the program that only writes
        return None


def _terminal() -> Line | None:
    if find_spec("rich") is None:
        return _Again()
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if console.is_dumb_terminal:
        return _Plain()
    # Without markup: `[final]` in the name of a file is not a style.
    texts = [TextColumn(each, markup=False) for each in ("{task.description}", "{task.fields[figures]}")]
    columns = SpinnerColumn(), texts[0], BarColumn(), texts[1], TimeElapsedColumn()
    # What the program prints while a line is shown goes above it, unless it goes elsewhere than to the terminal.
    is_both = sys.stdout is not None and sys.stdout.isatty()
    return _Bar(
        Progress(*columns, console=console, transient=True, refresh_per_second=1 / PERIOD, redirect_stdout=is_both)
    )


def _text(phase: str, share: float | None, figures: str, seconds: float) -> str:
    parts = ["" if share is None else f"{share:.0%}", figures, f"for {lasting(seconds)}"]
    return f"{phase}: {', '.join(filter(None, parts))}"


def round_of(worker: Worker) -> int:
    """Return the latest round that any dataflow of a worker is in, 0 outside of loops. For any thread."""
    rounds = [0]
    for dataflow in worker.dataflows:
        rounds += [region.round for region in dataflow.regions]
        rounds += [time[1] for times in dataflow.tracker.fronts() for time in times if len(time) > 1]
    return max(rounds)


def time_left(done: float, total: float | None, seconds: float) -> str:
    """Return an estimate of what is left, from how long it took to do a part; nothing where that cannot be known.

    >>> time_left(25, 100, 10.0), time_left(1, 1000, 10.0)
    ('about 30 s left', 'about 2 h 46 min left')
    >>> time_left(0, 100, 10.0), time_left(25, None, 10.0), time_left(25, 100, 0.1)
    ('', '', '')
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
