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
        self._loading: tuple[int, Callable[[], None]] | None = None
        """The thread that loads, and what shows how far it is."""

    def wait(self, call: Call[Any], phase: str, worker: Worker) -> None:
        """Wait until all workers have made a call, of which `worker` is the first."""
        if not self._is_shown:
            call.wait()
            return
        while not call.wait(QUIET):
            if self._loading is not None and self._loading[0] == get_ident():
                self._loading[1]()
            elif self._showing.acquire(blocking=False):
                try:
                    _show(call, phase, worker)
                finally:
                    self._showing.release()
                return

    @contextmanager
    def loading(self, measure: Callable[[], Extent | None]) -> Iterator[Callable[[], None]]:
        """Yield a function that shows how far sources are; if they do not end, `measure` returns None."""
        began, display = monotonic(), None
        before = measure() if self._is_shown else None

        def show() -> None:
            nonlocal display
            if before is None or monotonic() < began + QUIET or (now := measure()) is None:
                return
            if display is None:
                if not self._showing.acquire(blocking=False):
                    return
                display = Display(True)
                display.begin("loading", None if now.total is None else now.total - before.done, began=began)
            display.advance(now.done - before.done, now.rows - before.rows, "rows")

        self._loading = get_ident(), show
        try:
            yield show
        finally:
            self._loading = None
            if display is not None:
                display.__exit__()
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
