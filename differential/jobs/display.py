"""Progress on the terminal: what a job reads, computes and follows.

The display is on standard error, and only if that is a terminal and rich is installed. While the first answer is
computed, it shows in which round of a loop the dataflow is, and how many records the operators send each other: as a
loop settles, they become fewer. Both come from the worker's log, which records them only while someone listens.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Self

from timely import Worker
from timely.observe.events import FrontierChanged, MessageSent

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PERIOD = 0.1
"""Seconds between two refreshes."""


class Display:
    """A line of progress that changes with the phase of the job. Use from one thread, in a `with` block."""

    def __init__(self, is_shown: bool) -> None:
        self._progress = _on_the_terminal() if is_shown and find_spec("rich") is not None else None
        self.is_live = self._progress is not None
        self._task: TaskID | None = None
        self._shown_at = 0.0
        self._began = 0.0
        self._round = 0
        self._sent = 0

    def __enter__(self) -> Self:
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def begin(self, phase: str, total: float | None) -> None:
        """Show another phase; `total` is how much there is to do in it, if that is known."""
        if self._progress is None:
            return
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._task = self._progress.add_task(phase, total=total, figures="")
        self._began = self._shown_at = clock.monotonic()

    def advance(self, done: float, rows: int, noun: str) -> None:
        """Show how much of the phase is done, with the rows so far and their rate."""
        if self._is_due():
            rate = rows / max(clock.monotonic() - self._began, 1e-6)
            self._show(completed=done, figures=f"{rows:,} {noun}, {rate:,.0f}/s")

    def computing(self) -> None:
        """Show the round, and how many records operators have sent each other a second since the last refresh."""
        looked_at = self._shown_at
        if self._is_due():
            rounds = f"round {self._round:,}, " if self._round else ""
            self._show(figures=f"{rounds}{self._sent / (self._shown_at - looked_at):,.0f} records/s")
            self._sent = 0

    def listen(self, worker: Worker) -> Callable[[], None]:
        """Learn rounds and records from the worker's log; return the function that ends this."""
        if not self.is_live:
            return lambda: None
        return worker.log.listen(self._learn, MessageSent, FrontierChanged)

    def _learn(self, events: Sequence[Any]) -> None:
        for event in events:
            if isinstance(event, MessageSent):
                self._sent += event.records
            else:
                self._round = max((time[1] for time in event.frontier if len(time) > 1), default=self._round)

    def _is_due(self) -> bool:
        if not self.is_live:
            return False
        now = clock.monotonic()
        if now < self._shown_at + PERIOD:
            return False
        self._shown_at = now
        return True

    def _show(self, **fields: Any) -> None:
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, **fields)


def _on_the_terminal() -> Progress | None:
    """Return the line on standard error, or None if that is not a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        return None
    texts = TextColumn("{task.description}"), TextColumn("{task.fields[figures]}")
    columns = SpinnerColumn(), texts[0], BarColumn(), texts[1], TimeElapsedColumn()
    return Progress(*columns, console=console, transient=True)
