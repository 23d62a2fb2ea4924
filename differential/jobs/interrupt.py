"""Ctrl-C, as a job that follows its input takes it: the end of the input.

The first one ends the input: the job makes the changes that it has read, prints its summary and completes its files,
and then ends with the status of an interrupted program. A second one ends the job at once, as does the first one
before the job follows anything. A terminal sends the signal to every process, so processes without worker 0 only wait
for the end that worker 0 makes.

SIGTERM, by which service managers end programs, and SIGHUP do the same in a single process, but for the status. Among
several, SIGTERM ends a process at once, because the launcher also sends it when a peer has failed.
"""

from __future__ import annotations

import signal
import time as clock
from threading import current_thread, main_thread
from types import FrameType
from typing import Any, Self

from timely import Config
from timely.services import begin_to_end

SAME = 1.0
"""Seconds within which a further signal is the same Ctrl-C: a terminal and the launcher both send it."""
PATIENCE = 3.0
"""Seconds after Ctrl-C in which a job still begins to make changes that it has read; it then ends in time for the
launcher, which ends processes after ten seconds."""
ENDING = (signal.SIGTERM, signal.SIGHUP)
GLANCE = 0.05
"""Seconds between two checks for Ctrl-C while a job waits."""


class Interrupt:
    """Whether Ctrl-C has come. Use in a `with` block, which raises KeyboardInterrupt at its end if it has.

    Without `is_followed` Ctrl-C raises KeyboardInterrupt at once, as in any program. SIGTERM and SIGHUP raise
    SystemExit instead, so that what is incomplete is removed.
    """

    def __init__(self, is_followed: bool = False) -> None:
        config = Config.from_environ()
        self._has_come = False
        self._is_followed = is_followed
        self._is_alone = config.processes == 1
        self._is_expected = config.process > 0
        self._former: dict[int, Any] = {}
        """The handlers of the program, whose places this has taken."""
        self._status = 0
        self._came_at = 0.0

    def __enter__(self) -> Self:
        if current_thread() is main_thread():
            former = {signum: signal.getsignal(signum) for signum in (signal.SIGINT, *ENDING)}
            takes = {signum for signum in ENDING if former[signum] is signal.SIG_DFL}
            if self._is_followed:
                # Among several processes, the other signals that the program handles may concern a peer.
                own = former if self._is_alone else (signal.SIGINT,)
                takes |= {signum for signum in own if callable(former[signum])}
            self._former = {signum: former[signum] for signum in takes}
            for signum in takes:
                signal.signal(signum, self._take if signum == signal.SIGINT else self._end)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for signum, former in self._former.items():
            signal.signal(signum, former)
        if kind is None and self._has_come:
            raise SystemExit(self._status) if self._status else KeyboardInterrupt

    def expect(self) -> None:
        """Make Ctrl-C end the input from now on: the job has begun to follow it."""
        self._is_expected = True

    def has_come(self) -> bool:
        return self._has_come

    def is_overdue(self) -> bool:
        """Return whether Ctrl-C came so long ago that the job leaves out what it has read and not yet begun."""
        return self._has_come and clock.monotonic() > self._came_at + PATIENCE

    def wait(self, seconds: float) -> None:
        """Sleep for some seconds, or until Ctrl-C if that comes first."""
        end = clock.monotonic() + seconds
        while not self._has_come and (left := end - clock.monotonic()) > 0:
            clock.sleep(min(left, GLANCE))

    def _take(self, signum: int, frame: FrameType | None) -> None:
        now = clock.monotonic()
        if self._has_come and now < self._came_at + SAME:
            return
        if self._has_come or not self._is_expected:
            self._former[signum](signum, frame)
        self._come(now)

    def _end(self, signum: int, frame: FrameType | None) -> None:
        if self._has_come or not (self._is_followed and self._is_expected):
            if callable(former := self._former[signum]):
                former(signum, frame)
            raise SystemExit(128 + signum)
        self._status = 128 + signum
        self._come(clock.monotonic())

    def _come(self, now: float) -> None:
        begin_to_end()  # or the launcher would end this process before its files are complete
        # In this order: a worker on another thread reads `_came_at` as soon as `_has_come` is set.
        self._came_at, self._has_come = now, True
