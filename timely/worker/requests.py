"""What a worker is asked to do beside running dataflows: calls, at once or later, and chores."""

from __future__ import annotations

import os
import time as clock
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from math import isfinite

from timely.arguments import check_functions
from timely.config import Config

QUIET_SECONDS = 100e-6
"""For so long a worker with peers in other processes does no chores: their next message may be on its way."""


class Requests:
    """Functions that a worker is to call. Any thread may `call`; `wake` then ends the worker's sleep."""

    def __init__(self, wake: Callable[[], None], config: Config) -> None:
        self._wake = wake
        # Workers that share an interpreter would wait for it in vain.
        self._quiet = QUIET_SECONDS if config.processes > 1 and config.workers == 1 else 0.0
        self.busy_at = 0.0
        """The moment of the monotonic clock at which the worker last did anything but a chore."""
        self.calls: deque[Callable[[], None]] = deque()
        self.timers: list[tuple[float, int, Callable[[], None]]] = []
        self.chores: deque[Callable[[], bool]] = deque()
        self._numbers = count()

    def call(self, function: Callable[[], None]) -> None:
        """Call `function` in the worker's next step."""
        if not callable(function):
            check_functions("call", function=function)
        # In this order: a worker that is woken too early finds no call, and sleeps again.
        self.calls.append(function)
        self._wake()

    def call_after(self, seconds: float, function: Callable[[], None]) -> None:
        """Call `function` in the worker's first step after `seconds`."""
        if not isfinite(seconds):
            raise ValueError(f"call_after takes a finite number of seconds, not {seconds}")
        check_functions("call_after", function=function)
        # The number orders timers of one moment, since functions do not compare.
        timer = (clock.monotonic() + seconds, next(self._numbers), function)
        self.call(lambda: heappush(self.timers, timer))  # only the worker's thread may change the heap

    def run(self, now: float) -> bool:
        """Call what is due at a moment of the monotonic clock; return whether anything was."""
        has_run = False
        left = len(self.calls)  # a call that these make is for the next step
        while self.calls and left:  # a function that steps the worker runs the others meanwhile
            left -= 1
            self.calls.popleft()()
            has_run = True
        # This ends: a timer that one of these sets enters the heap by a call, in a later step.
        while self.timers and self.timers[0][0] <= now:
            heappop(self.timers)[2]()
            has_run = True
        return has_run

    def tend(self, now: float) -> None:
        """Call the next chore, and keep it for another turn unless it is done; not if the worker was busy just now."""
        if now - self.busy_at < self._quiet:
            os.sched_yield()  # a peer may need this processor
            return
        # Removed first, so a chore that raises is not called again.
        chore = self.chores.popleft()
        if chore():
            self.chores.append(chore)

    def limit(self, timeout: float | None) -> float | None:
        """Return for how long the worker may sleep, given how long it would."""
        if not self.timers:
            return timeout
        due = max(0.0, self.timers[0][0] - clock.monotonic())
        return due if timeout is None else min(timeout, due)

    @property
    def is_empty(self) -> bool:
        """Whether no call is due, now or later."""
        return not (self.calls or self.timers)
