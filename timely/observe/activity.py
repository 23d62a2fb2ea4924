"""What a worker does now, kept as it goes.

A worker that is stuck cannot be asked: it may be inside a long operator, or in the user's program. So the worker notes
what it does in its `Activity`. Other threads read it to report on a signal, to watch for stalls, or when a test hangs.
A note costs a few assignments for each step and each wait. A dataflow keeps the operator that it runs for its own use
(`Dataflow.running`), so an activation costs nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident
from traceback import walk_stack
from typing import NamedTuple

from timely.origin import Origin, is_installed, is_ours

# What a worker does.
CONNECTING = "waits for its peers to connect"
IN_PROGRAM = "is in the program"
STEPPING = "moves messages and progress"
PARKED = "has nothing to do and waits for messages"
ASKING = "waits for its peers to report what they hold"
PARTING = "has completed its dataflows and waits for its peers to do so"


class Activity:
    """What a worker does: its own thread writes this, any thread reads it.

    >>> activity = Activity()
    >>> with activity.during(PARTING):
    ...     print(activity.doing)
    has completed its dataflows and waits for its peers to do so
    >>> activity.doing
    'is in the program'
    """

    __slots__ = ("doing", "slept", "step_began", "thread", "waits")

    def __init__(self) -> None:
        self.doing = IN_PROGRAM
        self.thread = get_ident()
        """The thread that made the worker, and steps it. If it ends, the next thread that steps the worker."""
        self.step_began = 0.0
        """When the present step began, or the last one, by the monotonic clock."""
        self.waits = 0
        """How often the program has called `step_while`."""
        self.slept = 0.0
        """For how many seconds the worker has waited without a time limit since anything moved."""

    def is_elsewhere(self) -> bool:
        """Return whether the worker belongs to another thread than this one.

        A worker whose thread has ended belongs to the next thread that asks for this.
        """
        own = get_ident()
        # In this order: the frames of all threads are gathered only for a thread that is not the worker's.
        if self.thread != own and self.thread in sys._current_frames():
            return True
        self.thread = own
        return False

    @contextmanager
    def during(self, doing: str) -> Iterator[None]:
        """Note that the worker does this inside the `with` block, and then again what it did before."""
        before, self.doing = self.doing, doing
        try:
            yield
        finally:
            self.doing = before


class WorkerStatus(NamedTuple):
    """What a worker does at one moment; `str` puts it into words.

    >>> str(WorkerStatus("worker 0 of 1", STEPPING, "operator 'map' (built at job.py:7)", None, 1.5))
    "worker 0 of 1 is in operator 'map' (built at job.py:7), in a step that began 1.5 s ago"
    """

    worker: str
    doing: str
    operator: str | None
    """The operator that runs."""
    line: Origin | None
    """The user's line, if the worker is in an operator or in the program."""
    seconds: float
    """How long ago the present step began, or the last one."""

    def __str__(self) -> str:
        at = "" if self.line is None else f", at {self.line}"
        step = f"in a step that began {self.seconds:.1f} s ago"
        if self.operator is not None:
            return f"{self.worker} is in {self.operator}{at}, {step}"
        if self.doing == STEPPING:
            return f"{self.worker} {self.doing}, {step}"
        if self.doing == PARKED:
            return f"{self.worker} {self.doing}, for {self.seconds:.1f} s"
        return f"{self.worker} {self.doing}{at}"


def user_line(thread: int) -> Origin | None:
    """Return the innermost line of the user's that a thread is at."""
    # The interpreter alone knows this line. To keep it would cost a call for each line that runs, so we read the
    # thread's frames, but only where they are: what the worker does is never inferred from them.
    frame = sys._current_frames().get(thread)
    if frame is not None:
        for inner, line in walk_stack(frame):
            file = inner.f_code.co_filename
            if not is_ours(file) and not is_installed(file):
                return Origin(file, line)
    return None
