"""Read a trace in a dataflow that imports it: as of a frontier, and as far as its batches have arrived there.

The importing dataflow knows nothing of the times before the frontier `since`. Its readers see every time as its
representative under `since`, so a promise about earlier times is one about `since`.

They see the trace only up to the last batch that the importing operator has sent. Otherwise a join could find a batch
in the past of one of its sides, and match it again when it arrives on the input.
"""

from __future__ import annotations

from differential.trace.batch import Batch
from differential.trace.claims import Claim
from differential.trace.handle import TraceHandle
from differential.trace.spine import Spine
from timely.errors import TimelyError
from timely.lowlevel import Antichain


class SharedView:
    """What all readers of one import see: batches as of `since`, up to `upper`, which the importing operator moves.

    Batches after `upper` have yet to arrive. They must not be merged with those that have, so physical frontiers stay
    at or before it. No reader cuts before `first`, the upper of the trace when it was imported. Each batch is made
    once for all readers, and kept as long as it is asked for.
    """

    def __init__(self, since: Antichain, origin: Antichain, first: Antichain) -> None:
        self.since = since
        self.upper = origin
        self.first = first
        self._shown: dict[Batch, Batch] = {}

    def of(self, batches: tuple[Batch, ...]) -> tuple[Batch, ...]:
        """Return the batches as of `since`."""
        known = self._shown
        shown = [known[batch] if batch in known else batch.as_of(self.since) for batch in batches]
        self._shown = dict(zip(batches, shown))
        return tuple(shown)


class AsOf(TraceHandle):
    """A reader of a trace as a dataflow that imports it sees it."""

    is_advanced = True

    def __init__(self, spine: Spine, view: SharedView, claim: Claim) -> None:
        super().__init__(spine, claim)
        self._view = view
        self._seen: tuple[Batch, ...] = ()
        self._shown: tuple[Batch, ...] = ()

    @classmethod
    def of(cls, trace: TraceHandle, since: Antichain) -> AsOf:
        """Return a reader of what `trace` reads, as of `since`, that cuts from now on. Nothing has arrived yet.

        `since` is not before the logical frontier of `trace`, and not empty.
        """
        trace.check()
        first = trace.upper
        return cls(trace.spine, SharedView(since, trace.spine.origin, first), Claim(since, first))

    @property
    def upper(self) -> Antichain:
        return self._view.upper

    def receive(self, batch: Batch) -> Batch:
        """Let this reader, and all cloned from it or from the same, see everything up to `batch`; return it as they do.

        Batches come in their order.
        """
        self._view.upper = batch.upper
        return batch.as_of(self._view.since)

    def set_logical_compaction(self, frontier: Antichain) -> None:
        super().set_logical_compaction(frontier.join(self._view.since))

    def set_physical_compaction(self, frontier: Antichain) -> None:
        # Not beyond the view's upper, as what follows has yet to arrive; not before `first`, where the claim began.
        super().set_physical_compaction(frontier.meet(self._view.upper).join(self._view.first))

    def allow_compaction(self, frontier: Antichain) -> None:
        self.set_logical_compaction(frontier)
        self.set_physical_compaction(frontier)

    def batches(self) -> tuple[Batch, ...]:
        # The trace can be cut at the view's upper: at first that is the origin, and after the history has been emitted,
        # in one run of the importing operator, it is at or after the physical frontier.
        return self._as_seen(super().batches_through(self._view.upper))

    def batches_through(self, frontier: Antichain) -> tuple[Batch, ...]:
        if not frontier.dominates(self.upper):
            raise TimelyError(f"cannot cut the trace at {frontier}: it holds only the updates up to {self.upper}")
        return self._as_seen(super().batches_through(frontier))

    def clone(self) -> AsOf:
        self.check()
        return AsOf(self.spine, self._view, Claim(self._claim.logical, self._claim.physical))

    def uncut(self) -> AsOf:
        return self.clone()  # what it reads ends at a cut, that of the view

    def drop(self) -> None:
        self._seen = self._shown = ()
        super().drop()

    def _as_seen(self, batches: tuple[Batch, ...]) -> tuple[Batch, ...]:
        """Return batches as of the view's frontier, the same tuple for the same."""
        if self._seen is not batches:
            self._seen, self._shown = batches, self._view.of(batches)
        return self._shown
