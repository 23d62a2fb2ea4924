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

`as_of` gives a handle for a dataflow that imports the trace and knows nothing of the times before a frontier: it shows
every time as its representative under that frontier, takes a promise about earlier times for one about it, and ends
where the batches end that the dataflow has received.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from differential.kernels.compile import Ints, Table
from differential.trace.batch import Batch, entered, table_of
from differential.trace.spine import Claim, Spine
from timely.errors import TimelyError
from timely.progress.antichain import Antichain


class View:
    """How a dataflow that imports a trace sees it: as far as it has received it, and as of a frontier.

    Batches after `upper`, which whoever imports moves on, are still on their way: they must not be merged with those
    that have arrived, so physical frontiers stay behind it. No reader cuts before `first`, what there was to import in
    the beginning. Each batch is made once for all readers, as long as it is asked for.
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


class TraceHandle:
    """A reader of a trace."""

    def __init__(self, spine: Spine, levels: int = 0, view: View | None = None, claim: Claim | None = None) -> None:
        """Register a reader of an inner scope so many `levels` in, who may ask what `claim` says, or all that can still
        be told."""
        self._spine = spine
        self._levels = levels
        self._view = view
        self._claim = Claim(spine.logical, spine.physical) if claim is None else claim
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
    def is_entered(self) -> bool:
        """Whether this is a reader of an inner scope."""
        return self._levels > 0

    @property
    def since(self) -> Antichain | None:
        """The frontier that times are shown under, if it is not every time as it is."""
        return None if self._view is None else self._view.since

    @property
    def upper(self) -> Antichain:
        """The frontier up to which the trace holds everything."""
        return self._raised(self._upper)

    @property
    def _upper(self) -> Antichain:
        return self._spine.upper if self._view is None else self._view.upper

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
        if self._view is not None:
            frontier = frontier.join(self._view.since)
        if frontier == claim.logical:
            return
        assert claim.logical.dominates(frontier), (
            f"a reader that let go of the times before {claim.logical} cannot have those from {frontier} back"
        )
        claim.logical = frontier
        self._spine.untidy()

    def set_physical_compaction(self, frontier: Antichain) -> None:
        """Promise to cut the trace only at frontiers not before `frontier`."""
        frontier, claim = self._lowered(frontier), self._claim
        if self._view is not None:
            frontier = frontier.meet(self._view.upper).join(self._view.first)
        if frontier == claim.physical:
            return
        assert claim.physical.dominates(frontier), (
            f"a reader that let go of the cuts before {claim.physical} cannot have those from {frontier} back"
        )
        claim.physical = frontier
        self._spine.untidy()

    def allow_compaction(self, frontier: Antichain) -> None:
        """Promise both, for the same frontier."""
        claim = self._claim
        plain = not self._levels and self._view is None
        if plain and claim.logical is claim.physical and claim.logical.dominates(frontier):
            if frontier != claim.logical:
                claim.logical = claim.physical = frontier
                self._spine.untidy()
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
        batches = self._spine.batches()
        if self._view is not None and self._view.upper != self._spine.upper:
            batches = self._cut_at(batches, self._view.upper)
        return self._entered(batches)

    def batches_through(self, frontier: Antichain) -> tuple[Batch, ...]:
        """Return the batches that hold the updates at times not in advance of `frontier`, and no others.

        `frontier` is the upper of some batch, not before the reader's physical frontier.
        """
        self._check()
        frontier = self._lowered(frontier)
        batches = self._spine.batches()
        if frontier == self._spine.origin:
            return ()  # no batch need end there
        if frontier == self._spine.upper:
            return self._entered(batches)
        if not self._claim.physical.dominates(frontier):
            raise TimelyError(f"cannot cut the trace at {frontier}: this reader let go of cuts before {self.physical}")
        if not frontier.dominates(self._upper):
            raise TimelyError(f"cannot cut the trace at {frontier}: it holds only the updates up to {self.upper}")
        return self._entered(self._cut_at(batches, frontier))

    def table(self, batches: tuple[Batch, ...]) -> Table:
        """Return the addresses of `batches` as a table for kernels; kept until asked for another tuple."""
        if self._table is None or self._table[0] is not batches:
            self._table = batches, table_of(batches)
        return self._table[1]

    def clone(self) -> TraceHandle:
        """Return another reader, with the same frontiers."""
        return self._copy(self._levels, self._view)

    def enter(self) -> TraceHandle:
        """Return another reader, of the trace as the next inner scope sees it, with the same frontiers."""
        return self._copy(self._levels + 1, self._view)

    def as_of(self, since: Antichain) -> TraceHandle:
        """Return another reader, who sees every time as its representative under `since`, and cuts from now on.

        Until `receive` is called, nothing is there. `since` is not before the logical frontier, and not empty; the
        reader has not entered a scope.
        """
        reader = self._copy(0, View(since, self._spine.origin, self._upper))
        reader._claim.logical = since
        reader._claim.physical = self._upper
        return reader

    def receive(self, batch: Batch) -> Batch:
        """Let this reader, and those cloned from it, see everything up to `batch`; return it as they do.

        Only for what `as_of` returned. Batches come in their order.
        """
        assert self._view is not None
        self._view.upper = batch.upper
        return batch.as_of(self._view.since)

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
        if hasattr(self, "_is_dropped") and not self._is_dropped:
            self._spine.leave_behind(self._claim)

    def _copy(self, levels: int, view: View | None) -> TraceHandle:
        self._check()
        return TraceHandle(self._spine, levels, view, Claim(self._claim.logical, self._claim.physical))

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
        if not self._levels and self._view is None:
            return batches
        if self._seen is not batches:
            self._seen = batches
            if self._view is not None:
                batches = self._view.of(batches)
            for _ in range(self._levels):
                batches = tuple([batch.enter() for batch in batches])
            self._shown = batches
        return self._shown

    def _cut_at(self, batches: tuple[Batch, ...], frontier: Antichain) -> tuple[Batch, ...]:
        """Return the batches up to `frontier`, the same tuple for the same question."""
        known, cut, through = self._cut
        if known is not batches or cut != frontier:
            through = _through(batches, frontier)
            self._cut = batches, frontier, through
        return through


def _through(batches: tuple[Batch, ...], frontier: Antichain) -> tuple[Batch, ...]:
    through = []
    for batch in batches:
        if batch.upper.dominates(frontier):
            through.append(batch)
        elif not frontier.dominates(batch.lower) and len(batch):
            raise TimelyError(f"cannot cut the trace at {frontier}, inside {batch}")
    return tuple(through)
