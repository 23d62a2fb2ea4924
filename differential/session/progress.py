"""What a session shows on standard error during long work: a commit, a view, a question, files that it reads.

Nothing is shown for the first second. The display then follows the first worker of this process. Of several threads
that wait at the same time, one shows what it waits for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock, get_ident
from time import monotonic
from typing import Any

from differential.session.call import Call
from differential.session.sources.feed import Feed
from differential.session.sources.source import Extent
from timely import Worker
from timely.services import Display

Measure = Callable[[], Mapping[Feed, Extent] | None]

QUIET = 1.0
"""For how many seconds nothing is shown."""
PERIOD = 0.1
"""How often, in seconds, a display looks for something new."""


class SessionProgress:
    """The progress of one session, which is shown only if `is_shown`."""

    def __init__(self, is_shown: bool) -> None:
        self._is_shown = is_shown
        self._showing = Lock()
        self._loading: dict[int, Callable[[], bool]] = {}
        """For each thread that loads, what shows how far it is."""

    def wait(self, call: Call[Any], phase: str, worker: Worker) -> None:
        """Wait until all workers have made a call, of which `worker` is the first."""
        if not self._is_shown:
            call.wait()
            return
        while not call.wait(QUIET):
            show = self._loading.get(get_ident())
            if show is not None and show():
                continue
            if self._showing.acquire(blocking=False):
                try:
                    _show(call, phase, worker)
                finally:
                    self._showing.release()
                return  # the call is over: `_show` waits for its end

    @contextmanager
    def loading(self, measure: Measure) -> Iterator[Callable[[], bool]]:
        """Yield a function that shows how far sources are, and returns whether it does.

        `measure` returns the extents of the sources; None if they have ended, or if one of them does not end.
        """
        if not self._is_shown:
            yield lambda: False
            return
        own, loading = get_ident(), _Loading(measure, self._showing)
        around = self._loading.get(own)
        # No other thread has this key, so the dict needs no lock.
        self._loading[own] = loading.show
        try:
            yield loading.show
        finally:
            if around is None:
                del self._loading[own]
            else:
                self._loading[own] = around
            loading.end()


class _Loading:
    """A display of what sources have delivered since it began; `showing` is held while it shows something."""

    def __init__(self, measure: Measure, showing: Lock) -> None:
        self._measure = measure
        self._showing = showing
        self._display: Display | None = None
        self._began = monotonic()
        self._due = self._began + QUIET
        self._first = dict(measure() or {})
        """The extents of sources when they were first seen."""

    def show(self) -> bool:
        """Show how far sources are, unless that was just now; return whether a display shows it."""
        now = monotonic()
        if now >= self._due:
            self._due = now + PERIOD
            extents = self._measure()
            if extents is None:
                self.end()
            # From the first time on, the lock is held until `end`.
            elif self._display is not None or self._showing.acquire(blocking=False):
                self._advance(extents)
        return self._display is not None

    def _advance(self, extents: Mapping[Feed, Extent]) -> None:
        rows, done, total = 0, 0.0, 0.0
        for feed, extent in extents.items():
            first = self._first.setdefault(feed, extent)
            rows += extent.rows - first.rows
            done += extent.done - first.done
            total += math.inf if extent.total is None else extent.total - first.done
        if self._display is None:
            self._display = Display(True)
            self._display.begin("loading", None, began=self._began)
        self._due += self._display.period - PERIOD
        self._display.advance(max(done, 0.0), max(rows, 0), "rows", total=total if 0 < total < math.inf else None)

    def end(self) -> None:
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
