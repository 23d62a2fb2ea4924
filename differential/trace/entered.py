"""Read a trace in an inner scope, whose times have one more coordinate.

The trace holds the updates at times `(t, 0)` there. So a frontier of the inner scope states of the trace outside

- for compaction: all its elements without their last coordinate, for `(s, i) ≤ (t, j)` implies `s ≤ t`;
- for a cut: those of its elements whose last coordinate is 0, for `(s, i) ≤ (t, 0)` exactly if `s ≤ t` and `i = 0`.
"""

from __future__ import annotations

from differential.trace.batch import Batch
from differential.trace.description import entered
from differential.trace.reader import TraceReader
from timely.lowlevel import Antichain


class Entered(TraceReader):
    """A reader of what another reads, as the next inner scope sees it."""

    def __init__(self, outside: TraceReader) -> None:
        """Take over `outside`, a reader of the scope around."""
        super().__init__(outside.depth + 1)
        self.is_advanced = outside.is_advanced
        self._outside = outside
        self._seen: tuple[Batch, ...] = ()
        self._shown: tuple[Batch, ...] = ()

    @property
    def upper(self) -> Antichain:
        return entered(self._outside.upper)

    @property
    def logical(self) -> Antichain:
        return entered(self._outside.logical)

    @property
    def physical(self) -> Antichain:
        return entered(self._outside.physical)

    def set_logical_compaction(self, frontier: Antichain) -> None:
        self._outside.set_logical_compaction(_outside(frontier))

    def set_physical_compaction(self, frontier: Antichain) -> None:
        self._outside.set_physical_compaction(_cut_outside(frontier))

    def batches(self) -> tuple[Batch, ...]:
        return self._entered(self._outside.batches())

    def batches_through(self, frontier: Antichain) -> tuple[Batch, ...]:
        return self._entered(self._outside.batches_through(_cut_outside(frontier)))

    def clone(self) -> Entered:
        return Entered(self._outside.clone())

    def drop(self) -> None:
        self._seen = self._shown = ()
        self._table = None
        self._outside.drop()

    def _entered(self, batches: tuple[Batch, ...]) -> tuple[Batch, ...]:
        """Return batches as the inner scope sees them, the same tuple for the same."""
        seen = self._seen
        if seen is not batches:
            self._seen = batches
            if len(batches) == len(seen) + 1 and batches[:-1] == seen:
                self._shown = (*self._shown, batches[-1].enter())
            else:
                self._shown = tuple([batch.enter() for batch in batches])
        return self._shown


def _outside(frontier: Antichain) -> Antichain:
    """Return what a frontier inside states of times outside: its elements without their last coordinate."""
    elements = frontier.elements
    if len(elements) == 1 or (elements and len(elements[0]) == 2):
        return Antichain.of_minimal((elements[0][:-1],))  # elements are sorted, so the first has the least outer time
    return Antichain([time[:-1] for time in elements])


def _cut_outside(frontier: Antichain) -> Antichain:
    """Return where a cut inside is outside: where a frontier inside has times of round 0."""
    return Antichain([time[:-1] for time in frontier.elements if not time[-1]])
