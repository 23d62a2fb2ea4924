"""What a session shows on standard error while something takes long: a commit, a view, a question, files that it reads.

Nothing is shown for the first second. The display then follows the first worker of this process. Of several threads
that wait at the same time, one shows what it waits for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock, get_ident
from time import monotonic
from typing import Any

from differential.session.call import Call
from differential.session.sources.source import Extent
from timely import Worker
from timely.lowlevel import Display

QUIET = 1.0
"""For how many seconds nothing is shown."""
PERIOD = 0.1
"""How often, in seconds, a display looks for something new."""


class Progress:
    """The progress of one session; nothing of it unless `is_shown`."""

    def __init__(self, is_shown: bool) -> None:
        self._is_shown = is_shown
        self._showing = Lock()
        self._loading: dict[int, Callable[[], None]] = {}
        """For each thread that loads, what shows how far it is."""

    def wait(self, call: Call[Any], phase: str, worker: Worker) -> None:
        """Wait until all workers have made a call, of which `worker` is the first."""
        if not self._is_shown:
            call.wait()
            return
        while not call.wait(QUIET):
            show = self._loading.get(get_ident())
            if show is not None:
                show()
            elif self._showing.acquire(blocking=False):
                try:
                    _show(call, phase, worker)
                finally:
                    self._showing.release()
                return

    @contextmanager
    def loading(self, measure: Callable[[], Extent | None]) -> Iterator[Callable[[], None]]:
        """Yield a function that shows how far sources are; `measure` returns None if they do not end, or have ended."""
        before = measure() if self._is_shown else None
        if before is None:
            yield _nothing
            return
        loading = _Loading(measure, before, self._showing)
        self._loading[get_ident()] = loading.show
        try:
            yield loading.show
        finally:
            del self._loading[get_ident()]
            loading.end()


class _Loading:
    """A display of what sources have delivered since it began; `showing` is held while it shows something."""

    def __init__(self, measure: Callable[[], Extent | None], before: Extent, showing: Lock) -> None:
        self._measure = measure
        self._before = before
        self._showing = showing
        self._display: Display | None = None
        self._began = monotonic()
        self._due = self._began + QUIET

    def show(self) -> None:
        """Show how far sources are, unless that was just now."""
        now = monotonic()
        if now < self._due:
            return
        self._due = now + PERIOD
        extent = self._measure()
        if extent is None:
            self.end()
        elif self._display is not None or self._showing.acquire(blocking=False):
            self._advance(extent)

    def _advance(self, extent: Extent) -> None:
        before = self._before
        if self._display is None:
            self._display = Display(True)
            total = None if extent.total is None else extent.total - before.done
            self._display.begin("loading", total, began=self._began)
        self._due += self._display.period - PERIOD
        self._display.advance(extent.done - before.done, extent.rows - before.rows, "rows")

    def end(self) -> None:
        """Show nothing more."""
        display, self._display = self._display, None
        if display is not None:
            display.end()
            self._showing.release()


def _show(call: Call[Any], phase: str, worker: Worker) -> None:
    """Show how far a call is until it is over."""
    with Display(True) as display:
        display.begin(phase, None, began=monotonic() - QUIET)
        end = display.listen(worker, is_own=False)
        try:
            while not call.wait(PERIOD):
                display.computing()
        finally:
            end()


def _nothing() -> None:
    pass
