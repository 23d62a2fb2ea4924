"""The spine: all updates of a collection, as a few batches of geometrically growing size.

Batches are inserted in the order of their intervals and stay in it; the oldest is the largest. Two neighbours are
merged when the older has at most twice the rows of the newer, so there are at most logarithmically many layers, and
each row is merged logarithmically often. A merge of many rows is done a little at each insert, so that no insert takes
long: an insert of n rows pays for `EFFORT * n` rows of every merge under way. Readers read the sources of a merge until
it is done. A merge of m rows is therefore done before the batches after it have grown to m / EFFORT rows, which keeps
the sizes geometric. Batches of a few rows wait until there are `TINY_LAYERS` of them; one call merges them all.

The claims of the readers decide what a merge may do (`differential.trace.claims`):

- The logical frontier: the times as of which they may still ask for contents. A merge replaces the times of updates by
  their representatives (`differential.trace.description`), so that updates cancel: memory follows the size of the
  collection, not of its history. A layer is *compacted*, that is, merged with nothing, if half of its times or more
  coincide with others. The spine looks for such layers after as much work as the trace has rows; and, after as much as
  it has times, for layers nearly all of whose many times coincide, as when many epochs arrive at once.
- The physical frontier: where they may still ask to cut the trace. A merge takes only batches wholly before it.

Without readers the trace keeps nothing. Empty batches only widen the description of their neighbour; that of another
empty batch even where readers may ask to cut.

A trace that receives few batches is tidied all the same, a bounded piece at a time (`tend`): `LEAST_EFFORT` rows of one
merge with each empty batch and in each step in which the worker runs no operator (`wake` asks for these steps), and
`EFFORT * TINY` rows with each batch of fewer than `TINY` rows. Tending ends when the trace is *tidy*:

- no merge is under way, and each layer of more than `TINY` rows has less than the `SPREAD`-th part of the rows of the
  layer before it, or a reader may cut between the two;
- in each such layer the minority is less than the `SHARE`-th part of the rows (`differential.trace.classes`).

A tidy trace holds at most four times as many rows as readers distinguish, plus a constant. The work is logarithmic for
each row inserted, however rarely or often the readers move:

- A merge of neighbours moves at most `SPREAD` + 1 rows for each row of the newer layer, and leaves one layer fewer
  before each of these. When a row is inserted, logarithmically many layers are before it, and later never more.
- Layers of up to `TINY` rows are merged only with each other, `TINY_LAYERS` at a time, so at most `TINY` times.
- Compactions are cheap for the reason in `differential.trace.classes`.

Two things are not cut into pieces: the tables of times, and the search for layers to merge. A search costs as much as
sorting the times of the layers, and happens once after the readers have moved or the layers have changed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Final, cast

from differential.trace.batch import Batch
from differential.trace.claims import Claim, Claims
from differential.trace.classes import classes, minority
from differential.trace.merge import Merge, alone, consolidated, merge_at_once
from differential.trace.report import Observer, SpineStatistics, size_of
from differential.trace.storage import MEMORY, Storage
from timely.lowlevel import Antichain

EFFORT = 4
"""How many rows of each merge under way an inserted row pays for."""
FEW = 512
"""Up to this many rows are merged at once, whatever was inserted."""
TINY = 64
"""Layers of up to this many rows are merged only with each other, `TINY_LAYERS` or more at once."""
TINY_LAYERS: Final = 8
MANY_TIMES: Final = 64
NEARLY_ALL: Final = 8
"""A layer with at least `MANY_TIMES` times is compacted soon if readers distinguish at most one in `NEARLY_ALL`."""
LEAST_EFFORT = 4096
"""How many rows of such a layer each insert pays for while every reader of it reads more, and how many `tend` moves."""
SPREAD: Final = 4
SHARE: Final = 8
_LEAST_PAUSE = 1024


class Spine:
    """The batches of a trace.

    Invariants: layers are adjacent, from the least time to `upper`; each merge was given the meet of the readers'
    logical frontiers, and sources wholly before that of their physical ones.
    """

    def __init__(self, depth: int, storage: Storage = MEMORY) -> None:
        """A trace without updates, whose times have `depth` coordinates, and whose batches are in `storage`."""
        self.depth = depth
        self._storage = storage
        self.upper = Antichain([(0,) * depth])
        self.origin = self.upper
        self._layers: list[Batch | Merge] = []
        self._claims = Claims(self.origin)
        self._identify = threading.get_ident  # when Python exits, a handle may be freed after the names of this module
        self._owner = self._identify()
        self._is_working = False
        self._batches: tuple[Batch, ...] | None = ()
        # Work that an insert does (`exert`): whether merges are under way; how many of the newest layers have few rows;
        # whether some other neighbours may have to be merged.
        self._is_merging = False
        self._tiny = 0
        self._is_unsettled = False
        # How many rows of work until an insert looks for layers to compact: those of which half of the times coincide,
        # and, sooner, those of which nearly all do.
        self._until_compaction = self._until_look = _LEAST_PAUSE
        # Work between inserts: whether `tend` has found nothing since the layers or the claims have changed, and
        # whether it was asked for by `wake`.
        self._is_tidy = True
        self._is_awake = False
        # For statistics. `_tend` also learns from `_moved` whether a phase has found work.
        self._inserted = 0
        self._moved = 0
        self.watch: Callable[[Batch], None] | None = None
        """Called with every batch inserted or merged."""
        self.observer: Observer | None = None
        """Receives what becomes of the batches."""
        self.wake: Callable[[], None] | None = None
        """Called when there may be work for `tend`, but not again before that has returned False."""
        self.rest: Callable[[], None] | None = None
        """Called when nobody reads the trace any more, and so nothing is left to tend."""

    def insert(self, batch: Batch) -> Batch:
        """Add the batch that follows; return it as the trace keeps it, for all who read it."""
        assert batch.lower == self.upper, f"{batch} does not follow what the trace holds, up to {self.upper}"
        self._is_working = True
        try:
            return self._insert(batch)
        finally:
            self._is_working = False
            self._forget_left_behind()

    def _insert(self, batch: Batch) -> Batch:
        self.upper = batch.upper
        if self._storage.above is not None and not self._claims.is_abandoned:
            batch = self._storage.keep(batch)
        # After `keep`, which may copy the columns; also without readers, because the batch is sent on all the same.
        self._announce(batch)
        if self._claims.is_abandoned:
            return batch
        if self.observer is not None:
            self.observer.inserted(batch)
        rows = len(batch)
        if batch.time_count > 1 and rows > FEW:
            _ = batch.columns.rows_at  # counted here, where the cost is small beside that of making the batch
        self._inserted += rows
        known, self._batches = self._batches, None
        self.untidy()
        if rows > FEW:
            self._roll_up(rows)
            known = None
        layers = self._layers
        if layers and not rows and not len(layers[-1]):
            # No reader needs to allow this: a cut inside a batch without updates is as good as one at its end. And
            # readers that run only when there is something to read would never allow it.
            layers[-1] = self._merged([cast(Batch, layers[-1]), batch])  # a merge under way has rows
        else:
            layers.append(batch)
            if known is not None:
                self._batches = known + (batch,)  # noqa: RUF005 (unpacking would make a list first)
        if 0 < rows <= TINY:
            self._tiny += 1
        else:
            self._tiny = 0
            self._is_unsettled = True
        self.exert(EFFORT * max(1, rows))
        if not rows:
            self._tend()
        elif rows < TINY and self._is_merging:
            self._work_on_one(EFFORT * TINY)
        return batch

    def exert(self, fuel: int) -> bool:
        """Spend `fuel` rows of work on each merge under way; return whether there is more to do."""
        if self._is_merging:
            self._is_merging = False
            for place, layer in enumerate(self._layers):  # a merge that is done is replaced in its place
                if isinstance(layer, Merge):
                    self._is_merging |= not self._work(place, layer, fuel)
        # One more than `TINY_LAYERS`: readers have yet to release the cut before the newest.
        if self._tiny > TINY_LAYERS:
            self._merge_tiny()
        if self._is_unsettled:
            self._merge_neighbours()
        self._until_compaction -= fuel
        self._until_look -= fuel
        if self._until_look < 0:
            self._compact_layers()
        return self._is_merging

    def untidy(self) -> None:
        """Expect that there is work for `tend`: the layers have changed, or a reader has moved on."""
        self._is_tidy = False
        if not self._is_awake and self.wake is not None:
            self._is_awake = True
            self.wake()

    def tend(self) -> bool:
        """Do one bounded piece of what makes the trace tidy, if it is not; return whether to call this again."""
        self._is_working = True
        try:
            is_tended = self._tend()
        finally:
            self._is_working = False
            self._forget_left_behind()
        # A claim given up here leaves work, for which `untidy` has not called `wake`: the trace was awake.
        self._is_awake = is_tended or not self._is_tidy
        return self._is_awake

    def consolidate(self) -> None:
        """Make one layer of those that no reader cuts any more, without updates that cancel; this takes linear time."""
        self._is_working = True
        try:
            self._layers[:] = consolidated(self._layers, self.logical, self.physical, self._storage, self._made)
        finally:
            self._is_working = False
        self._batches, self._is_merging, self._tiny, self._is_unsettled = None, False, 0, True
        self._forget_left_behind()
        self.untidy()

    def _tend(self) -> bool:
        self._forget_left_behind()
        if self._is_merging and self._work_on_one(LEAST_EFFORT):
            return True
        if self._is_tidy:
            return False
        before = self._moved
        self._merge_tiny()
        if self._moved == before:
            self._merge_neighbours(SPREAD, LEAST_EFFORT)
        if self._moved == before:
            self._compact_one()
        self._is_tidy = self._moved == before
        return not self._is_tidy

    def _work_on_one(self, fuel: int) -> bool:
        """Spend `fuel` rows of work on the newest merge under way; return whether there is one."""
        for place in range(len(self._layers) - 1, -1, -1):
            layer = self._layers[place]
            if isinstance(layer, Merge):
                self._work(place, layer, fuel)
                return True
        self._is_merging = False
        return False

    def _work(self, place: int, merge: Merge, fuel: int) -> bool:
        """Spend `fuel` rows of work on the merge at a place; return whether it is done, and the result there."""
        done = merge.work(fuel)
        if done is None:
            return False
        self._layers[place] = done
        self._batches = None
        self._made(done, (merge.first, merge.second))
        self._is_unsettled = True
        self._is_tidy = False
        return True

    def batches(self) -> tuple[Batch, ...]:
        """Return all batches, oldest first; the same tuple until something changes."""
        if self._batches is None:
            found: list[Batch] = []
            for layer in self._layers:
                if isinstance(layer, Merge):
                    found += layer.first, layer.second
                else:
                    found.append(layer)
            self._batches = tuple(found)
        return self._batches

    @property
    def logical(self) -> Antichain:
        """The meet of the readers' logical frontiers: contents are known as of times in advance of it."""
        return self._claims.logical

    @property
    def physical(self) -> Antichain:
        """The meet of the readers' physical frontiers: the trace can be cut at batch boundaries from it on."""
        return self._claims.physical

    @property
    def readers(self) -> int:
        """How many readers there are."""
        return len(self._claims)

    def register(self, claim: Claim) -> None:
        """Hold back what `claim` needs, from now on."""
        self._claims.add(claim)

    def forget(self, claim: Claim) -> None:
        """Undo `register`. Without claims the trace keeps nothing."""
        if not self._claims.discard(claim):
            self.untidy()
            return
        if self.observer is not None:
            self.observer.dropped(self.batches())  # the sizes that were reported, so that they add up to 0
        self._layers.clear()
        self._batches = ()
        if self.rest is not None:
            self.rest()

    def leave_behind(self, claim: Claim) -> None:
        """Undo `register` as soon as the trace is at rest; called at any moment, in any thread."""
        self._claims.leave_behind(claim)
        # In the middle of a change of the layers, or in another thread, their list must not be cleared.
        if not self._is_working and self._identify() == self._owner:
            self._forget_left_behind()

    def _forget_left_behind(self) -> None:
        left_behind = self._claims.left_behind
        while left_behind:
            self.forget(left_behind.popleft())

    def statistics(self) -> SpineStatistics:
        """Return how many layers, merges among them and rows there are, and how many rows were inserted and moved."""
        layers = self._layers
        merging = sum(isinstance(layer, Merge) for layer in layers)
        return SpineStatistics(len(layers), merging, sum(map(len, layers)), self._inserted, self._moved)

    def size(self) -> tuple[int, int]:
        """Return how many rows and bytes there are; any thread may ask, for this notes nothing."""
        return size_of(tuple(self._layers))  # a copy, for the worker's thread may replace layers meanwhile

    def _merge_tiny(self) -> None:
        """Merge the newest layers at once if there are several of a few rows."""
        layers, first = self._layers, len(self._layers)
        rows = 0
        while first > 0:
            layer = layers[first - 1]
            size = len(layer)
            if not 0 < size <= TINY or rows + size > FEW or isinstance(layer, Merge):
                break
            first -= 1
            rows += size
        if len(layers) - first < TINY_LAYERS:
            return
        physical = self.physical
        tail = [layer for layer in layers[first:] if isinstance(layer, Batch)]
        # A reader may still cut at the upper of a batch that is not wholly before the physical frontier.
        while tail and not tail[-1].upper.dominates(physical):
            tail.pop()
        if len(tail) >= TINY_LAYERS:
            self._replace(first, first + len(tail), self._merged(tail))
            self._tiny = len(layers) - first

    def _merge_neighbours(self, spread: int = 2, most: int | None = None) -> None:
        """Merge layers of which the older has at most `spread` times the rows, beginning with the newest.

        With `most`, stop when a merge is under way, or that many rows have been moved.
        """
        layers, physical = self._layers, None
        self._is_unsettled = False
        enough = None if most is None else self._moved + most
        place = len(layers) - 1
        while place > 0:
            older, newer = layers[place - 1], layers[place]
            old, new = len(older), len(newer)
            if isinstance(newer, Batch) and (not new or not old or (new > TINY and old <= spread * new)):
                physical = self.physical if physical is None else physical
                if not newer.upper.dominates(physical):
                    self._is_unsettled = True
                elif isinstance(older, Batch):
                    self._replace(place - 1, place + 1, self._merged([older, newer]))
                    if enough is not None and (self._is_merging or self._moved >= enough):
                        return
                    # The result may now be too close to its newer neighbour.
                    place = min(place + 1, len(layers))
                elif not new:  # a merge under way covers times without updates for nothing
                    older.extend(newer.upper)
                    del layers[place]
                    self._batches = None
            place -= 1

    def _merged(self, batches: list[Batch]) -> Batch | Merge:
        """Return adjacent batches as one; as a merge under way when there are two, and many rows."""
        full = [batch for batch in batches if len(batch)]
        if len(full) <= 1:
            only = full[0] if full else batches[0]  # its times stay as they are, and so does its `since`
            return only.described(batches[0].description.through(batches[-1].description, only.since))
        rows = sum([len(batch) for batch in full])
        self._moved += rows
        if rows <= FEW:
            return self._merged_few(batches)
        return Merge(batches[0], batches[1], self.logical, self._storage)  # two: `_merge_tiny` takes few rows

    def _replace(self, first: int, after: int, layer: Batch | Merge) -> None:
        """Put a layer in the place of others."""
        self._layers[first:after] = [layer]
        self._batches = None
        self._is_unsettled = True
        self._is_merging |= isinstance(layer, Merge)

    def _merged_few(self, batches: list[Batch]) -> Batch:
        batch = self._storage.keep(merge_at_once(batches, self.logical))
        self._made(batch, batches)
        return batch

    def _made(self, batch: Batch, sources: Sequence[Batch]) -> None:
        self._announce(batch)
        if self.observer is not None:
            self.observer.merged(sources, batch)

    def _announce(self, batch: Batch) -> None:
        if self.watch is not None:
            self.watch(batch)

    def _roll_up(self, rows: int) -> None:
        """Make one of the newest layers of up to `rows` rows, before as many are inserted."""
        layers, physical = self._layers, self.physical  # `_batches` was cleared by `_insert`
        while len(layers) > 1 and len(layers[-1]) <= rows and len(layers[-2]) <= rows:
            older, newer = self._completed(layers[-2]), self._completed(layers[-1])
            layers[-2:] = [older, newer]
            if not newer.upper.dominates(physical):
                return
            layers[-2:] = [self._completed(self._merged([older, newer]))]

    def _completed(self, layer: Batch | Merge) -> Batch:
        if isinstance(layer, Batch):
            return layer
        batch = layer.complete()
        self._made(batch, (layer.first, layer.second))
        return batch

    def _compact_layers(self) -> None:
        """Compact each layer whose times are in half as many classes, or, if it has many times, in a few."""
        least = 2 if self._until_compaction < 0 else MANY_TIMES
        for place, layer in enumerate(self._layers):
            if isinstance(layer, Merge) or layer.time_count < least:
                continue
            since, now = self.logical, layer.time_count
            distinct = classes(layer, since)
            is_urgent = now >= MANY_TIMES and NEARLY_ALL * distinct <= now
            if is_urgent or (self._until_compaction < 0 and 2 * distinct <= now):
                self._compact(place, layer, since, LEAST_EFFORT if is_urgent else 0)
        if self._until_compaction < 0:
            self._until_compaction = max(_LEAST_PAUSE, sum(map(len, self._layers)))
        times = sum(layer.time_count for layer in self._layers if isinstance(layer, Batch))
        self._until_look = min(self._until_compaction, max(_LEAST_PAUSE, times))

    def _compact_one(self) -> None:
        """Compact the newest layer that has a large minority, if there is one."""
        since = None
        for place in range(len(self._layers) - 1, -1, -1):
            layer = self._layers[place]
            if isinstance(layer, Batch) and len(layer) > TINY and layer.time_count > 1:
                since = self.logical if since is None else since
                if SHARE * minority(layer, since) >= len(layer):
                    self._compact(place, layer, since)
                    return

    def _compact(self, place: int, layer: Batch, since: Antichain, effort: int = 0) -> None:
        """Merge a layer with nothing: at once if it has few rows, else beginning a merge."""
        self._moved += len(layer)
        is_few = len(layer) <= FEW
        merged = self._merged_few([layer]) if is_few else alone(layer, since, self._storage, effort)
        self._replace(place, place + 1, merged)
