"""Start a run again after a process of it has died: how often, and after which pause.

The pause before the first restart is half a second, and doubles with each further one, up to half a minute; after a run
of a minute it is half a second again. A signal that ends runs ends the pause, too.
"""

from __future__ import annotations

import select
import socket
import time as clock
from collections.abc import Callable, Collection
from typing import NamedTuple

from timely.observe.notices import notify
from timely.run.failure import USAGE_ERROR

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
HEALTHY_SECONDS = 60.0


class RunOutcome(NamedTuple):
    """How a run ended: its exit status, and whether that is because a process of it died."""

    status: int
    has_died: bool


def with_restarts(run: Callable[[], RunOutcome], restarts: int, signals: socket.socket, ending: Collection[int]) -> int:
    """Run, and run again after each death of a process, `restarts` times at most; return the exit status.

    The numbers of signals are read from `signals` during a pause, and those in `ending` end it.
    """
    pause = FIRST_PAUSE
    for attempt in range(restarts + 1):
        began = clock.monotonic()
        status, has_died = run()
        if not has_died or status == USAGE_ERROR or attempt == restarts:
            break
        if clock.monotonic() - began >= HEALTHY_SECONDS:
            pause = FIRST_PAUSE
        notify(f"restart {attempt + 1} of {restarts} in {pause:g} s")
        signum = _signal_within(pause, signals, ending)
        if signum is not None:
            return 128 + signum
        # For the next restart, unless the run until then lasts long.
        pause = min(2 * pause, LONGEST_PAUSE)
    return status


def _signal_within(seconds: float, signals: socket.socket, ending: Collection[int]) -> int | None:
    """Return the first signal of `ending` that arrives within some seconds, None if there is none."""
    end = clock.monotonic() + seconds
    while (remaining := end - clock.monotonic()) > 0:
        if select.select([signals], [], [], remaining)[0]:
            for signum in signals.recv(256):
                if signum in ending:
                    return signum
    return None
