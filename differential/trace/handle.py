"""Read a trace as it is."""

from __future__ import annotations

from differential.trace.batch import Batch
from differential.trace.claims import Claim
from differential.trace.reader import TraceReader
from differential.trace.spine import Spine
from timely.errors import TimelyError
from timely.lowlevel import CLOSED, Antichain


class TraceHandle(TraceReader):
    """A reader of a trace as it is. One that is forgotten instead of dropped is dropped when it is collected."""

    def __init__(self, spine: Spine, claim: Claim | None = None) -> None:
        """Register a reader, who may ask what `claim` states, or for all that the trace still answers."""
        super().__init__(spine.depth)
        self.spine = spine
        self._claim = Claim(spine.logical, spine.physical) if claim is None else claim
        self._cut: tuple[tuple[Batch, ...], Antichain, tuple[Batch, ...]] = ((), Antichain(), ())
        # In this order: `__del__` gives up the claim of a handle that has `is_dropped`, so that must be registered.
        spine.register(self._claim)
        self.is_dropped = False
        """Whether this reader holds nothing back any more; not set if Ctrl-C struck while it was made."""

    @property
    def upper(self) -> Antichain:
        return self.spine.upper

    @property
    def logical(self) -> Antichain:
        return self._claim.logical

    @property
    def physical(self) -> Antichain:
        return self._claim.physical

    def set_logical_compaction(self, frontier: Antichain) -> None:
        claim = self._claim
        if frontier == claim.logical:
            return
        # The trace may have given these times the same representatives already (`differential.trace.description`).
        assert claim.logical.dominates(frontier), (
            f"a reader that released the times before {claim.logical} cannot read as of {frontier} again"
        )
        claim.logical = frontier
        self.spine.untidy()

    def set_physical_compaction(self, frontier: Antichain) -> None:
        claim = self._claim
        if frontier == claim.physical:
            return
        assert claim.physical.dominates(frontier), (
            f"a reader that released the cuts before {claim.physical} cannot cut at {frontier} again"
        )
        claim.physical = frontier
        self.spine.untidy()

    def allow_compaction(self, frontier: Antichain) -> None:
        claim = self._claim
        # Readers that move both frontiers together compare one of them.
        if claim.logical is claim.physical and claim.logical.dominates(frontier):
            if frontier != claim.logical:
                claim.logical = claim.physical = frontier
                self.spine.untidy()
        else:
            self.set_logical_compaction(frontier)
            self.set_physical_compaction(frontier)

    def batches(self) -> tuple[Batch, ...]:
        self.check()
        return self.spine.batches()

    def batches_through(self, frontier: Antichain) -> tuple[Batch, ...]:
        self.check()
        spine = self.spine
        if frontier == spine.origin:
            return ()  # no batch need end there
        batches = spine.batches()
        if frontier == spine.upper:
            return batches
        # Batches wholly before the physical frontier may have been merged across any cut.
        if not self._claim.physical.dominates(frontier):
            raise TimelyError(f"cannot cut the trace at {frontier}: this reader released cuts before {self.physical}")
        if not frontier.dominates(spine.upper):
            raise TimelyError(f"cannot cut the trace at {frontier}: it holds only the updates up to {spine.upper}")
        # The spine returns the same tuple while nothing changes, and so a cut of it stays the same.
        known, cut, through = self._cut
        if known is not batches or cut != frontier:
            through = _through(batches, frontier)
            self._cut = batches, frontier, through
        return through

    def clone(self) -> TraceHandle:
        self.check()
        # A claim of its own, because each reader moves its frontiers. This one's still hold, so it may begin at them.
        return TraceHandle(self.spine, Claim(self._claim.logical, self._claim.physical))

    def uncut(self) -> TraceHandle:
        """Return another reader, which reads all there is and asks for no cut, so that it keeps no batches apart."""
        self.check()
        return Uncut(self.spine, self.logical, self.physical)

    def drop(self) -> None:
        if not self.is_dropped:
            self.is_dropped = True
            self._cut = ((), Antichain(), ())
            self._table = None
            self.spine.forget(self._claim)

    def check(self) -> None:
        """Raise TimelyError if this reader was dropped."""
        if self.is_dropped:
            raise TimelyError("this trace handle was dropped; clone it first to continue reading")

    def __del__(self) -> None:
        if hasattr(self, "is_dropped") and not self.is_dropped:
            self.spine.leave_behind(self._claim)


class Uncut(TraceHandle):
    """A reader that asks for no cut of the trace: it holds back times, and no batches, which are merged as they come.

    `physical` is where it would stand if it asked for cuts, and moves as that of other readers does.
    """

    def __init__(self, spine: Spine, logical: Antichain, physical: Antichain) -> None:
        super().__init__(spine, Claim(logical, CLOSED))
        self._released = physical

    @property
    def physical(self) -> Antichain:
        return self._released

    def set_physical_compaction(self, frontier: Antichain) -> None:
        self._released = frontier

    def clone(self) -> TraceHandle:
        return self.uncut()


def _through(batches: tuple[Batch, ...], frontier: Antichain) -> tuple[Batch, ...]:
    through = []
    for batch in batches:
        if batch.upper.dominates(frontier):
            through.append(batch)
        # A batch without rows may lie across: the spine widens such a batch even where readers may ask to cut.
        elif not frontier.dominates(batch.lower) and len(batch):
            raise TimelyError(f"cannot cut the trace at {frontier}, inside {batch}")
    return tuple(through)
