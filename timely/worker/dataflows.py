"""The dataflows of one worker."""

from __future__ import annotations

from collections import deque

from timely.dataflow.dataflow import Dataflow
from timely.progress.due import Agenda
from timely.worker.garbage import thaw

REMEMBERED = 1024
"""A worker remembers the numbers of this many dropped dataflows, so that it can report to its peers that they were."""


class Dataflows:
    """The dataflows that run on a worker, by number, and which have run. Numbers are in the order of building."""

    def __init__(self, agenda: Agenda) -> None:
        """Step the dataflows that are on an agenda."""
        self._agenda = agenda
        self.running: dict[int, Dataflow] = {}
        self.built = 0
        """How many dataflows have been built."""
        self.abandoned: deque[int] = deque(maxlen=REMEMBERED)
        """The dataflows that were dropped before they were complete, the last of them."""

    def add(self, dataflow: Dataflow) -> None:
        """Add the dataflow that was built last."""
        self.built += 1
        self.running[dataflow.index] = dataflow
        self._agenda.add(dataflow.index)

    def step(self) -> tuple[bool, bool]:
        """Step each dataflow in which something is due.

        Return whether an operator ran, and whether the program may see a change though none ran: a frontier has moved,
        or a dataflow is complete.
        """
        has_run = has_changed = False
        agenda = self._agenda
        agenda.begin()
        while (index := agenda.next()) >= 0:
            dataflow = self.running.get(index)
            if dataflow is None:  # dropped
                agenda.remove(index)
                continue
            if dataflow.step():
                has_run = True
            elif dataflow.has_moved:
                has_changed = True
            if dataflow.is_complete:
                self.drop(index)
                has_changed = True
            # An error in `step` skips this: the dataflow stays on the agenda, so that the next step finds what it has
            # lost.
            dataflow.due.end_turn(not dataflow.is_idle)
        return has_run, has_changed

    def flush_to_peers(self) -> None:
        """Send what has changed in the dataflows since the last step."""
        for index in self._agenda.numbers():
            dataflow = self.running.get(index)
            if dataflow is not None:
                dataflow.flush_to_peers()

    def drop(self, index: int) -> None:
        """Forget a dataflow, complete or not; do nothing if it does not run."""
        # Removed first: a callback of `close` that drops the dataflow again finds nothing to do.
        dropped = self.running.pop(index, None)
        if dropped is not None:
            # Only then may a peer wait for what was dropped: of a complete dataflow nothing is held anywhere.
            if not dropped.is_complete:
                self.abandoned.append(index)
            dropped.close()
            thaw()

    @property
    def is_idle(self) -> bool:
        """Whether no operator of any dataflow is scheduled."""
        # A dataflow that is not on the agenda has nothing due (`timely.progress.due`), so it need not be looked at.
        found = [self.running.get(index) for index in self._agenda.numbers()]
        return all(dataflow is None or dataflow.is_idle for dataflow in found)

    @property
    def may_be_woken(self) -> bool:
        """Whether something outside may activate an operator."""
        return any(dataflow.may_be_woken for dataflow in self.running.values())
