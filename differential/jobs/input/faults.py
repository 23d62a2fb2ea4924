"""Faults: lines of an input that cannot be read, and what happens when one is found.

A fault is never dropped silently: it ends the run, or it is counted, or it is counted and kept. A file that is damaged
as a whole is not a fault but a `DataError`, whatever the policy.
"""

from __future__ import annotations

import threading
from typing import Literal, NamedTuple, get_args

from timely.errors import BuildError, DataError

Policy = Literal["stop", "skip", "report"]

SHOWN = 120
"""How many characters of a line an error shows."""


class Fault(NamedTuple):
    """A line of a file that cannot be read, or a row, and why."""

    file: str
    line: int
    """Counted from 1."""
    text: str
    """The line as it is in the file, without its end; bytes that are not UTF-8 are escaped."""
    reason: str
    remedy: str = ""
    """What to do about it besides skipping the line: a sentence, or nothing."""
    unit: str = "line"
    """What `line` counts: lines of text, or rows of a table."""

    def __str__(self) -> str:
        text = self.text if len(self.text) <= SHOWN else f"{self.text[:SHOWN]}..."
        return f"{self.file}, {self.unit} {self.line}: {self.reason}: {text!r}"


class Faults:
    """The faults found by this process, and the policy: `stop`, `skip` or `report`.

    All workers of a process share it. With `stop` the first fault raises DataError. With `skip` faults are counted, and
    with `report` they are also kept.
    """

    def __init__(self, policy: Policy = "stop") -> None:
        if policy not in get_args(Policy):
            raise BuildError(f"a policy for faults is one of {', '.join(get_args(Policy))}, not {policy!r}")
        self.policy = policy
        self.count = 0
        """How many faults were found so far."""
        self._untaken = 0
        self._kept: list[Fault] = []
        self._lock = threading.Lock()

    def add(self, fault: Fault) -> None:
        """Count a fault, and keep it if faults are reported.

        Raises DataError, with the policy `stop`, that names the file, the line, its text and what to do.
        """
        if self.policy == "stop":
            remedy = f"{fault.remedy}. " if fault.remedy else ""
            raise DataError(f"{fault}. {remedy}`--on-error skip` leaves out such {fault.unit}s")
        with self._lock:
            self.count += 1
            self._untaken += 1
            if self.policy == "report":
                # The name of a file may have bytes that are not UTF-8, and what is kept goes into columns of text.
                file = fault.file.encode(errors="backslashreplace").decode()
                self._kept.append(fault._replace(file=file))

    def take(self) -> list[Fault]:
        """Return the faults kept since the last call."""
        with self._lock:
            kept, self._kept = self._kept, []
        return kept

    def take_count(self) -> int:
        """Return how many faults were found since the last call."""
        with self._lock:
            count, self._untaken = self._untaken, 0
        return count
