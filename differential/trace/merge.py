"""Merge two adjacent batches into one, a little at a time.

A merge first writes the rows of its sources into columns long enough for all of them. Then, if many rows have cancelled
or a time is no longer in use, it copies the result into columns that fit, as gradually.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from differential.kernels.blocks import merged_block
from differential.kernels.compile import NOTHING, Ints
from differential.kernels.merge import DONE, FIRST, NEEDS_DIFFS, SECOND, USED, WRITTEN, merge, plan
from differential.trace.batch import Batch, frontier_table, no_times, table_of
from differential.trace.columns import UpdateColumns
from differential.trace.description import Description
from differential.trace.storage import MEMORY, Storage
from timely.lowlevel import Antichain

_PIECE = 4096
"""Rows for which it pays to call the kernel."""


class Merge:
    """A merge in progress. The sources stand for the result until it is done."""

    __slots__ = (
        "_columns",
        "_credit",
        "_effort",
        "_place",
        "_rows",
        "_settling",
        "_since",
        "_state",
        "_storage",
        "_table",
        "_times",
        "first",
        "second",
    )

    def __init__(
        self, first: Batch, second: Batch, since: Antichain, storage: Storage = MEMORY, effort: int = 0
    ) -> None:
        """Merge `first` and the batch that follows it, with times advanced to `since`, into columns of `storage`.

        Each call to work earns `effort` rows at least.
        """
        assert first.description.precedes(second.description), f"{first} is not followed by {second}"
        self.first = first
        self.second = second
        self._since = since
        self._storage = storage
        self._credit = 0
        self._effort = effort
        self._rows = rows = len(first) + len(second)
        self._table = table_of((first, second))  # of the sources as they are now; `extend` changes no rows
        self._times, self._place = plan(first.times, second.times, frontier_table(since, first.depth))
        self._state = np.zeros(USED + len(self._times), np.int64)
        has_vals, has_diffs = len(first.vals) or len(second.vals), len(first.diffs) or len(second.diffs)
        has_index = len(self._times) > 1
        lengths = [rows, rows if has_vals else 0, rows if has_index else 0, rows if has_diffs else 0]
        self._columns = storage.empty(lengths)
        self._settling: _Settling | None = None

    def __len__(self) -> int:
        return self._rows

    @property
    def remaining(self) -> int:
        """The number of rows still to be read, or to be settled."""
        if self._settling is not None:
            return self._settling.remaining
        return self._rows - int(self._state[FIRST]) - int(self._state[SECOND])

    def extend(self, upper: Antichain) -> None:
        """Extend the interval to `upper`; there are no updates from the upper of the second batch on."""
        self.second = self.second.described(self.second.description.up_to(upper))

    def work(self, fuel: int) -> Batch | None:
        """Earn `fuel` rows of work, done once they are worth a call; return the result when it is complete."""
        self._credit += max(fuel, self._effort)
        if self._credit < min(_PIECE, self.remaining):
            return None  # the credit stays for the next call
        credit, self._credit = self._credit, 0
        if self._settling is None:
            status = self._merge(credit)
            if status == NEEDS_DIFFS:
                # From now on the kernel writes the diff of every row; those written so far had the diff 1.
                # The kernel has left its positions in the state, so the second call goes on where the first stopped.
                (self._columns[3],) = self._storage.empty([self._rows])
                self._columns[3][: self._state[WRITTEN]] = 1
                status = self._merge(credit)
            if status != DONE:
                return None
            columns = self._finish()
        elif self._settling.work(credit):
            columns = self._settling.columns
        else:
            return None
        return None if columns is None else self._result(columns)

    def complete(self) -> Batch:
        """Do all the work that is left, and return the result."""
        result = None
        while result is None:
            result = self.work(self.remaining + _PIECE)
        return result

    def _merge(self, fuel: int) -> int:
        keys, vals, index, diffs = self._columns
        return merge(self._table, self._place, keys, vals, index, diffs, self._state, fuel)

    def _finish(self) -> list[Ints] | None:
        """Return the columns of the result, or None when they are yet to be settled."""
        _, _, rows, has_vals, has_diffs = self._state[:USED].tolist()
        keys, vals, index, diffs = self._columns
        columns = [keys, vals if has_vals else NOTHING, index, diffs if has_diffs else NOTHING]
        columns = [column[:rows] for column in columns]
        used = self._state[USED:] != 0
        is_all_used = len(index) == 0 or bool(used.all())
        # Memory beyond the rows written was never touched, and costs nothing unless it is much.
        if is_all_used and 4 * rows >= 3 * self._rows:
            return columns
        place = NOTHING
        if not is_all_used:
            self._times, place = self._times[used], np.cumsum(used) - 1
            columns[2] = index[:rows] if len(self._times) > 1 else NOTHING
        self._settling = _Settling(columns, place, self._storage)
        return self._settling.columns if self._settling.work(_PIECE) else None

    def _result(self, columns: list[Ints]) -> Batch:
        keys, vals, index, diffs = columns
        times = self._times if len(keys) else no_times(self.first.depth)
        at = self._state[USED:]
        # The state counts the rows at each time of the plan, and `_finish` has removed just the times that no row has.
        description = self.first.description.through(self.second.description, self._since)
        made = UpdateColumns.of((keys, vals, index, diffs, times)).with_rows_at(at[at != 0] if len(index) else None)
        return Batch(made, description)


class _Settling:
    """Copies columns into others of just their length, with time indices replaced by their items in `place`."""

    __slots__ = ("_done", "_place", "_sources", "columns")

    def __init__(self, sources: list[Ints], place: Ints, storage: Storage) -> None:
        self._sources = sources
        self._place = place
        self._done = 0
        self.columns = storage.empty([len(source) for source in sources])

    @property
    def remaining(self) -> int:
        return len(self._sources[0]) - self._done

    def work(self, fuel: int) -> bool:
        """Copy `fuel` rows; return whether those were the last."""
        piece = slice(self._done, self._done + fuel)
        for which, (source, target) in enumerate(zip(self._sources, self.columns)):
            if len(target):
                target[piece] = self._place[source[piece]] if which == 2 and len(self._place) else source[piece]
        self._done = min(self._done + fuel, len(self._sources[0]))
        return not self.remaining


def alone(layer: Batch, since: Antichain, storage: Storage = MEMORY, effort: int = 0) -> Merge:
    """Return a merge of a batch with nothing, which only advances times."""
    # Its interval is empty, so it follows the layer, and the result covers the interval of the layer.
    nothing = Batch.empty(Description(layer.upper, layer.upper, layer.since), layer.depth)
    return Merge(layer, nothing, since, storage, effort)


def consolidated(
    layers: Sequence[Batch | Merge],
    since: Antichain,
    physical: Antichain,
    storage: Storage,
    made: Callable[[Batch, Sequence[Batch]], object],
) -> list[Batch]:
    """Return layers with those before the frontier `physical` as one, in which times are advanced to `since`.

    `made` is called with the result of each merge and its sources. The newest layers, which are the smallest, are
    merged first.
    """

    def done(merge: Merge) -> Batch:
        batch = merge.complete()
        made(batch, (merge.first, merge.second))
        return batch

    found = [done(layer) if isinstance(layer, Merge) else layer for layer in layers]
    # Each upper dominates the next, so the batches before the physical frontier are the first ones.
    whole = sum(batch.upper.dominates(physical) for batch in found)
    while whole > 1:
        whole -= 1
        found[whole - 1 : whole + 1] = [done(Merge(found[whole - 1], found[whole], since, storage))]
    if whole and found[0].time_count > 1:
        found[0] = done(alone(found[0], since, storage))
    return found


def merge_at_once(batches: list[Batch], since: Antichain) -> Batch:
    """Return adjacent batches of few rows, not none, merged into one, with times advanced to `since`."""
    depth = batches[0].depth
    block, rows, times = merged_block(table_of(batches), frontier_table(since, depth))
    return Batch(
        UpdateColumns(rows, times, depth, block, None), batches[0].description.through(batches[-1].description, since)
    )
