"""The dataflows of one worker."""

from __future__ import annotations

from collections import deque

from timely.dataflow.dataflow import Dataflow
from timely.worker.garbage import thaw

REMEMBERED = 1024
"""A worker remembers the numbers of this many dropped dataflows, so that it can report to its peers that they were."""


class Dataflows:
    """The dataflows that run on a worker, by number, and which have run. Numbers are in the order of building."""

    def __init__(self) -> None:
        self.running: dict[int, Dataflow] = {}
        self.built = 0
        """How many dataflows have been built."""
        self._abandoned: deque[int] = deque(maxlen=REMEMBERED)

    def add(self, dataflow: Dataflow) -> None:
        """Add the dataflow that was built last."""
        self.built += 1
        self.running[dataflow.index] = dataflow

    def step(self) -> tuple[bool, bool]:
        """Step each dataflow once.

        Return whether an operator ran, and whether the program may see a change though none ran: a frontier has moved,
        or a dataflow is complete.
        """
        has_run = has_changed = False
        running = self.running
        for dataflow in list(running.values()):
            if dataflow.index not in running:
                continue  # dropped by what ran in another one
            if dataflow.step():
                has_run = True
            elif dataflow.has_moved:
                has_changed = True
            if dataflow.is_complete:
                self.drop(dataflow.index)
                has_changed = True
        return has_run, has_changed

    def drop(self, index: int) -> None:
        """Forget a dataflow, complete or not; do nothing if it does not run."""
        dropped = self.running.pop(index, None)
        if dropped is not None:
            if not dropped.is_complete:
                self._abandoned.append(index)
            dropped.close()
            thaw()

    def was_abandoned(self, index: int) -> bool:
        """Return whether a dataflow was dropped before it was complete, and not long ago."""
        return index in self._abandoned

    @property
    def is_idle(self) -> bool:
        """Whether no operator of any dataflow is scheduled."""
        return all(dataflow.is_idle for dataflow in self.running.values())

    @property
    def may_be_woken(self) -> bool:
        """Whether something outside may activate an operator."""
        return any(dataflow.may_be_woken for dataflow in self.running.values())
