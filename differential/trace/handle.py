"""Reading a trace, and saying what of it may be forgotten.

A handle is a reader's right to look at a trace. It holds two frontiers back, which only move forward:

- logical compaction at f: the reader asks for contents only as of times in advance of f;
- physical compaction at f: the reader cuts the trace (`batches_through`) only at frontiers not before f.

The trace merges and compacts up to the meet of all its readers' frontiers. So a handle that is kept without moving
its frontiers keeps history alive: `drop` it when done. A handle that is forgotten instead is dropped when it is
collected.

`enter` gives a handle for an inner scope, whose times have one more coordinate. The trace holds the updates at times
(t, 0) there, so a frontier of the inner scope says of the trace

- for compaction: all its elements without their last coordinate, for (s, i) ≤ (t, j) implies s ≤ t;
- for a cut: those of its elements whose last coordinate is 0, for (s, i) ≤ (t, 0) exactly if s ≤ t and i = 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from differential.kernels.compile import Ints, Table
from differential.trace.batch import Batch, entered, table_of
from differential.trace.spine import Claim, Spine
from timely.errors import TimelyError
from timely.progress.antichain import Antichain


class TraceHandle:
    """A reader of a trace."""

    def __init__(self, spine: Spine) -> None:
        """Register a reader who may see all that the trace can still tell."""
        self._open(spine, 0, spine.logical, spine.physical)

    def _open(self, spine: Spine, levels: int, logical: Antichain, physical: Antichain) -> None:
        self._spine = spine
        self._levels = levels
        self._claim = Claim(logical, physical)
        self._is_dropped = False
        self._seen: tuple[Batch, ...] = ()
        self._shown: tuple[Batch, ...] = ()
        self._cut: tuple[tuple[Batch, ...], Antichain, tuple[Batch, ...]] = ((), Antichain(), ())
        self._table: tuple[Sequence[Batch], Table] | None = None
        spine.register(self._claim)

    @property
    def depth(self) -> int:
        """The number of coordinates of a time."""
        return self._spine.depth + self._levels

    @property
    def upper(self) -> Antichain:
        """The frontier up to which the trace holds everything."""
        return self._raised(self._spine.upper)

    @property
    def logical(self) -> Antichain:
        """The reader's logical frontier."""
        return self._raised(self._claim.logical)

    @property
    def physical(self) -> Antichain:
        """The reader's physical frontier."""
        return self._raised(self._claim.physical)

    def set_logical_compaction(self, frontier: Antichain) -> None:
        """Promise to ask for contents only as of times in advance of `frontier`."""
        levels, claim = self._levels, self._claim
        if levels:
            frontier = Antichain([time[:-levels] for time in frontier.elements])
        if frontier == claim.logical:
            return
        assert claim.logical.dominates(frontier), (
            f"a reader that let go of the times before {claim.logical} cannot have those from {frontier} back"
        )
        claim.logical = frontier

    def set_physical_compaction(self, frontier: Antichain) -> None:
        """Promise to cut the trace only at frontiers not before `frontier`."""
        frontier, claim = self._lowered(frontier), self._claim
        if frontier == claim.physical:
            return
        assert claim.physical.dominates(frontier), (
            f"a reader that let go of the cuts before {claim.physical} cannot have those from {frontier} back"
        )
        claim.physical = frontier

    def allow_compaction(self, frontier: Antichain) -> None:
        """Promise both, for the same frontier."""
        claim = self._claim
        if not self._levels and claim.logical is claim.physical and claim.logical.dominates(frontier):
            claim.logical = claim.physical = frontier
        else:
            self.set_logical_compaction(frontier)
            self.set_physical_compaction(frontier)

    @property
    def readers(self) -> int:
        """How many readers, this one among them, hold the trace back."""
        return self._spine.readers

    @property
    def is_dropped(self) -> bool:
        """Whether this reader holds nothing back any more."""
        return self._is_dropped

    def batches(self) -> tuple[Batch, ...]:
        """Return all batches, oldest first; the same tuple until something changes."""
        self._check()
        return self._entered(self._spine.batches())

    def batches_through(self, frontier: Antichain) -> tuple[Batch, ...]:
        """Return the batches that hold the updates at times not in advance of `frontier`, and no others.

        `frontier` is the upper of some batch, not before the reader's physical frontier.
        """
        self._check()
        frontier = self._lowered(frontier)
        batches = self._spine.batches()
        if frontier == self._spine.upper:
            return self._entered(batches)
        known, cut, through = self._cut
        if known is not batches or cut != frontier:
            through = self._through(batches, frontier)
            self._cut = batches, frontier, through
        return self._entered(through)

    def table(self, batches: tuple[Batch, ...]) -> Table:
        """Return the addresses of `batches` as a table for kernels; kept until asked for another tuple."""
        if self._table is None or self._table[0] is not batches:
            self._table = batches, table_of(batches)
        return self._table[1]

    def clone(self) -> TraceHandle:
        """Return another reader, with the same frontiers."""
        return self._copy(self._levels)

    def enter(self) -> TraceHandle:
        """Return another reader, of the trace as the next inner scope sees it, with the same frontiers."""
        return self._copy(self._levels + 1)

    def watch(self, watch: Callable[[Ints, Ints], None]) -> None:
        """Have `watch` told the columns of keys and values of every batch that the trace takes in or makes."""
        self._spine.watch = watch

    def drop(self) -> None:
        """Stop reading: hold nothing back any more."""
        if not self._is_dropped:
            self._is_dropped = True
            self._seen = self._shown = ()
            self._cut = ((), Antichain(), ())
            self._table = None
            self._spine.forget(self._claim)

    def __del__(self) -> None:
        if hasattr(self, "_is_dropped"):
            self.drop()

    def _copy(self, levels: int) -> TraceHandle:
        self._check()
        handle = TraceHandle.__new__(TraceHandle)
        handle._open(self._spine, levels, self._claim.logical, self._claim.physical)
        return handle

    def _check(self) -> None:
        if self._is_dropped:
            raise TimelyError("this trace handle was dropped; clone it before, to go on reading")

    def _raised(self, frontier: Antichain) -> Antichain:
        for _ in range(self._levels):
            frontier = entered(frontier)
        return frontier

    def _lowered(self, frontier: Antichain) -> Antichain:
        levels = self._levels
        if not levels:
            return frontier
        return Antichain([time[:-levels] for time in frontier.elements if not any(time[-levels:])])

    def _entered(self, batches: tuple[Batch, ...]) -> tuple[Batch, ...]:
        if not self._levels:
            return batches
        if self._seen is not batches:
            self._seen = batches
            for _ in range(self._levels):
                batches = tuple([batch.enter() for batch in batches])
            self._shown = batches
        return self._shown

    def _through(self, batches: tuple[Batch, ...], frontier: Antichain) -> tuple[Batch, ...]:
        if not self._claim.physical.dominates(frontier):
            raise TimelyError(f"cannot cut the trace at {frontier}: this reader let go of cuts before {self.physical}")
        if not frontier.dominates(self._spine.upper):
            raise TimelyError(f"cannot cut the trace at {frontier}: it holds only the updates up to {self.upper}")
        through = []
        for batch in batches:
            if batch.upper.dominates(frontier):
                through.append(batch)
            elif not frontier.dominates(batch.lower) and len(batch):
                raise TimelyError(f"cannot cut the trace at {frontier}, inside {batch}")
        return tuple(through)
