"""Gather updates until their times are final, and seal them into batches.

Chunks of updates arrive in any order, at any times. `seal(upper)` takes out everything not in advance of `upper` as one
batch and keeps the rest. A chunk that is wholly due is taken as it is, and one that is wholly in the future is not
touched. Where only a part of a chunk is due, the chunk is sorted by time, once. From then on each seal costs what it
takes out and a look at the times: to seal a thousand epochs of a large chunk one by one costs twice its size at most.
Times of one coordinate are in order: those due come first, and a binary search takes the place of the look.

When many chunks have piled up, between seals with twice the rows that were left the last time, or because seals keep
them, those of similar sizes are consolidated into one: each then has at least `_GROWTH` times the rows of the next
smaller one. So a seal visits a number of chunks that is logarithmic in the rows, memory follows the number of distinct
updates, and each row is sorted a logarithmic number of times, twice at most where there is no seal.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.kernels.batching import by_time, take_passed, take_times
from differential.kernels.compile import NOTHING, Ints, Table, Times
from differential.kernels.few import due_block, due_of, split_of, split_rows
from differential.kernels.times import drop_unused, in_advance, minimal
from differential.kernels.wide import Overflow
from differential.trace.batch import Batch, frontier_table
from differential.trace.columns import FEW, Rows, UpdateColumns
from differential.trace.description import NO_TIMES, Description
from differential.trace.parts import at_its_time, consolidated
from timely.lowlevel import CLOSED, Antichain, Time

_PILE = 16
_GROWTH: Final = 2
"""Chunks are consolidated when there are `_PILE` more than after the last time, unless `_GROWTH` times as large.

Before the next seal, which may take most of them, they also wait for `_GROWTH` times the rows.
"""


class Batcher:
    """Updates that wait for their times to be final.

    Invariant: every update held is in advance of `upper`, that of the latest batch. So the batches follow one another,
    whichever way makes them:

        push, then seal    any updates; what is not due stays held
        seal_at_once       few updates at one time, all due or none
        sealed             updates that a kernel has sealed, all due

    The last two ways need nothing to be held, and skip the chunks.
    """

    __slots__ = ("_chunks", "_last", "_most", "_origin", "_pile", "_rows", "depth", "upper")

    def __init__(self, depth: int) -> None:
        """For times of `depth` coordinates."""
        self.depth = depth
        self._origin = Antichain([(0,) * depth])
        self.upper = self._origin
        self._chunks: list[_Chunk] = []
        # From `_pile` chunks on, a push consolidates them if the rows are `_GROWTH` times `_last`, and otherwise waits
        # for `_PILE` more chunks. A seal of many rows consolidates what it keeps if that is `_most` chunks.
        self._pile = _PILE
        self._most = _PILE
        self._rows = 0
        """How many rows are held."""
        self._last = 0
        """How many rows were left by the last seal or consolidation."""

    def __len__(self) -> int:
        """The number of rows held."""
        return self._rows

    def columns(self) -> list[tuple[Ints, Ints]]:
        """Return the columns of keys and values held."""
        return [chunk.columns.rows[:2] for chunk in self._chunks]

    def push(self, keys: Ints, vals: Ints, times: Table, time_index: Ints, diffs: Ints) -> None:
        """Hold the given updates, all in advance of `upper`. The batcher does not write to the arrays, nor may others.

        Read-only and strided arrays, which messages may have, are copied: kernels do not accept them.
        """
        if len(keys):
            rows = _writable(keys), _writable(vals), _writable(time_index), _writable(diffs), _writable(times)
            self.push_columns(UpdateColumns.of(rows))

    def push_columns(self, columns: UpdateColumns) -> None:
        """Hold the given updates, which a kernel made and which are at least one, all in advance of `upper`."""
        self._chunks.append(_Chunk(columns))
        self._rows += len(columns)
        if len(self._chunks) >= self._pile:
            if self._rows >= _GROWTH * self._last:
                self._consolidate()
            else:
                self._pile += _PILE

    def seal_at_once(self, keys: Ints, vals: Ints, times: Table, diffs: Ints, upper: Antichain) -> Batch | None:
        """Return few updates at one time as a batch, None if they cancel, while no others are held.

        Return `NOT_DUE`, and do nothing, where their time is in advance of `upper`. This is `push` and `seal` in one.
        """
        lower, frontier = self.upper, frontier_table(upper, self.depth)
        assert not self._chunks, "updates are held already"
        try:
            block, rows = due_block(keys, vals, diffs, times, frontier)
        except TypeError:  # kernels do not accept read-only and strided arrays, which messages may have
            copies = keys.copy(), vals.copy(), diffs.copy(), times.copy()
            return self.seal_at_once(*copies, upper)
        except Overflow as fault:
            raise at_its_time(fault, [(keys, vals, NOTHING, diffs, times)]) from None
        if rows < 0:
            return NOT_DUE
        if not rows:
            return None
        self.upper = upper
        return Batch(UpdateColumns(rows, 1, self.depth, block, None), Description(lower, upper, self._origin))

    def sealed(self, columns: UpdateColumns, upper: Antichain) -> Batch:
        """Return updates that are sealed already, none in advance of `upper`, as a batch, while no others are held."""
        lower, self.upper = self.upper, upper
        return Batch(columns, Description(lower, upper, self._origin))

    def seal(self, upper: Antichain) -> Batch | None:
        """Return the updates not in advance of `upper` as a batch, which follows the one before.

        Return None when there are no such updates: the next batch then covers this interval, too.
        """
        lower = self.upper
        assert lower.dominates(upper), f"sealing up to {upper} after sealing up to {lower} would go back"
        if self._rows <= FEW:
            try:
                due = self._few_due(upper)
            except Overflow as fault:
                # The chunks are as they were: they are cleared only after the kernel has returned.
                raise at_its_time(fault, [chunk.rows() for chunk in self._chunks], upper) from None
        else:
            due = self._many_due(upper)
            if len(self._chunks) >= self._most:  # loops, which push once a seal, reach this and never the pile
                self._consolidate()
        if due is None:
            return None  # `upper` stays, so that the next batch begins where the one before has ended
        self.upper = upper
        return Batch(due, Description(lower, upper, self._origin))

    def _few_due(self, upper: Antichain) -> UpdateColumns | None:
        """Take out what is not in advance of `upper`, and return it consolidated; None if there is nothing."""
        chunks = self._chunks
        if not chunks:
            return None
        if len(chunks) == 1 and chunks[0].columns.time_count == 1:
            return self._all_due(upper)
        frontier = frontier_table(upper, self.depth)
        if len(chunks) == 1 and chunks[0].columns.is_block and chunks[0].runs is None:
            due, due_rows, due_times, block, rows, times, least = split_of(chunks[0].columns.head, frontier)
        elif len(chunks) == 1:
            due, due_rows, due_times, block, rows, times, least = split_rows(*chunks[0].rows(), frontier)
        else:
            table = tuple([chunk.whole().head for chunk in chunks])
            due, due_rows, due_times, block, rows, times, least = take_passed(table, frontier)
        chunks.clear()
        self._rows = self._last = rows
        self._pile = _PILE
        if rows:
            # At one time, the kernel returns no least times, and the chunk finds its own at no cost.
            minimum = least.reshape(-1, self.depth) if len(least) else None
            chunks.append(_Chunk(UpdateColumns(rows, times, self.depth, block, None), least=minimum))
        return self._block(due, due_rows, due_times)

    def _all_due(self, upper: Antichain) -> UpdateColumns | None:
        """Do the same for one chunk at one time, which is due or not as a whole."""
        (chunk,) = self._chunks
        columns, frontier = chunk.whole(), frontier_table(upper, self.depth)
        if columns.is_sealed:  # rows consolidated already need no kernel
            if upper.admits(columns.time()):
                return None
            block, rows = columns.head, len(columns)
        elif columns.is_block:
            block, rows = due_of(columns.head, frontier)
        else:
            keys, vals, _, diffs, times = columns.rows
            block, rows = due_block(keys, vals, diffs, times, frontier)
        if rows < 0:
            return None
        self._chunks.clear()
        self._rows = self._last = 0
        self._pile = _PILE
        return self._block(block, rows, 1)

    def _block(self, block: Ints, rows: int, times: int) -> UpdateColumns | None:
        return UpdateColumns(rows, times, self.depth, block, None) if rows else None

    def _many_due(self, upper: Antichain) -> UpdateColumns | None:
        """Do the same where looking at all rows would cost too much."""
        due: list[Rows] = []
        rests = [chunk.split(upper, due) for chunk in self._chunks]
        self._chunks = kept = [rest for rest in rests if rest is not None]
        self._rows = self._last = sum(map(len, kept))
        self._pile = len(kept) + _PILE
        if not due:
            return None
        rows = consolidated(due)
        return UpdateColumns.of(rows) if len(rows[0]) else None

    def frontier(self) -> Antichain:
        """Return the least times of the updates held."""
        chunks = self._chunks
        if not chunks:
            return CLOSED
        if len(chunks) == 1:
            return Antichain.of_minimal(chunks[0].least())
        return Antichain([time for chunk in chunks for time in chunk.least()])

    def _consolidate(self) -> None:
        """Make one chunk of each group of chunks of similar sizes.

        A chunk joins the smaller ones if it has less than `_GROWTH` times their rows. So each row that is sorted ends
        in a chunk that is half as large again as its own, unless rows cancel.
        """
        waiting = sorted(self._chunks, key=len)
        self._chunks.clear()
        while waiting:
            group = [waiting.pop(0)]
            rows = len(group[0])
            while waiting and len(waiting[0]) < _GROWTH * rows:
                rows += len(waiting[0])
                group.append(waiting.pop(0))
            self._chunks += _together(group)
        self._rows = self._last = sum(map(len, self._chunks))
        self._pile = self._most = max(len(self._chunks) - 1, 0) + _PILE


class _Chunk:
    """Updates held: as they came or, once it has been taken from, in the order of times.

    In the order of times, those at `times[i]` are the rows `runs[i, 0]` to `runs[i, 1]`, and rows in no run are gone.
    """

    __slots__ = ("_least", "_length", "columns", "runs")

    def __init__(self, columns: UpdateColumns, runs: Table | None = None, least: Table | None = None) -> None:
        self.columns = columns
        self.runs = runs
        self._least = None if least is None else tuple([tuple(time) for time in least.tolist()])
        if runs is None:
            self._length = len(columns)
        elif columns.depth == 1:  # the runs follow one another
            self._length = int(runs[-1, 1] - runs[0, 0])
        else:
            self._length = int((runs[:, 1] - runs[:, 0]).sum())

    def __len__(self) -> int:
        return self._length

    def least(self) -> tuple[Time, ...]:
        """Return the least times of the rows; those in the table that no row is at are dropped from it."""
        if self._least is None:
            columns = self.columns
            if columns.time_count > 1:
                if self.runs is None:
                    keys, vals, index, diffs, times = columns.rows
                    self.columns = columns = UpdateColumns.of((keys, vals, *_used(index, times, diffs)))
                self._least = tuple([tuple(time) for time in minimal(columns.rows[4]).tolist()])
            else:
                self._least = (columns.time(),)
        return self._least

    def rows(self) -> Rows:
        if self.runs is None:
            return self.columns.rows
        keys, vals, _, diffs, times = self.columns.rows
        return take_times(keys, vals, diffs, times, self.runs)

    def whole(self) -> UpdateColumns:
        """Return the updates in columns of their own."""
        return self.columns if self.runs is None else UpdateColumns.of(self.rows())

    def split(self, upper: Antichain, due: list[Rows]) -> _Chunk | None:
        """Add what is not in advance of `upper` to `due`, and return the rest."""
        if all(map(upper.less_equal, self.least())):
            return self
        columns = self.columns  # after `least`, which replaces them if some times are not in use
        if columns.time_count > 1:
            if columns.depth == 1 and self.runs is not None:
                return self._take_first(upper, due)
            frontier = frontier_table(upper, columns.depth)
            if in_advance(columns.rows[4], frontier).any():
                return self._in_order_of_time()._take(frontier, due)
        due.append(self.rows())
        return None

    def _in_order_of_time(self) -> _Chunk:
        # No run is empty, so the least times of runs are those in the table: `least` has dropped times not in use.
        if self.runs is not None:
            return self
        keys, vals, diffs, times, runs = by_time(*self.columns.rows)
        return _Chunk(UpdateColumns.of((keys, vals, NOTHING, diffs, times)), runs)

    def _take_first(self, upper: Antichain, due: list[Rows]) -> _Chunk | None:
        """Do what `split` does where the times are of one coordinate, in order, and those due come first."""
        assert self.runs is not None
        keys, vals, _, diffs, times = self.columns.rows
        count = int(times[:, 0].searchsorted(upper.elements[0][0])) if upper.elements else len(times)
        due.append(take_times(keys, vals, diffs, times[:count].copy(), self.runs[:count]))
        return self._rest(times[count:], self.runs[count:], times[count : count + 1]) if count < len(times) else None

    def _take(self, frontier: Times, due: list[Rows]) -> _Chunk:
        assert self.runs is not None
        keys, vals, _, diffs, times = self.columns.rows
        waits = in_advance(times, frontier) != 0
        passed = ~waits
        due.append(take_times(keys, vals, diffs, times[passed], self.runs[passed]))
        return self._rest(times[waits], self.runs[waits], None)

    def _rest(self, times: Table, runs: Table, least: Table | None) -> _Chunk:
        """Return the rows of `runs`, with columns of their own where they are at most half."""
        keys, vals, _, diffs, _ = self.columns.rows
        rest = _Chunk(UpdateColumns.of((keys, vals, NOTHING, diffs, times)), runs, least)
        # So each copy is paid for by as many rows taken out, and columns are at most twice as long as needed.
        if 2 * len(rest) > len(keys):
            return rest
        keys, vals, _, diffs, _ = rest.rows()
        after = np.cumsum(runs[:, 1] - runs[:, 0])  # `rows` puts the runs one after the other
        bounds = np.column_stack((after - (runs[:, 1] - runs[:, 0]), after))
        return _Chunk(UpdateColumns.of((keys, vals, NOTHING, diffs, times.copy())), bounds, least)


def _together(chunks: list[_Chunk]) -> list[_Chunk]:
    """Return one chunk of all, or none if their updates cancel. The list is emptied, which frees each in time."""
    if len(chunks) == 1:
        return chunks
    parts = [chunk.rows() for chunk in chunks]
    chunks.clear()
    rows = consolidated(parts)
    return [_Chunk(UpdateColumns.of(rows))] if len(rows[0]) else []


def _writable(array: Ints) -> Ints:
    """Return an array that kernels accept."""
    return array if array is NOTHING or array.flags.carray else array.copy()


def _used(index: Ints, times: Table, diffs: Ints) -> tuple[Ints, Ints, Table]:
    """Return time index, diffs and times, without unused times."""
    index, times = drop_unused(index, times)
    return index, diffs, times


NOT_DUE: Final = Batch.empty(NO_TIMES, 1)
"""Stands for updates that are not due yet."""
