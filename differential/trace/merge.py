"""Merging two adjacent batches into one, a little at a time."""

from __future__ import annotations

import numpy as np

from differential.kernels.compile import NOTHING, Ints
from differential.kernels.consolidate import merge_few
from differential.kernels.merge import DONE, FIRST, NEEDS_DIFFS, SECOND, STATE_WIDTH, merge, plan
from differential.kernels.times import drop_unused
from differential.trace.batch import Batch, frontier_table, table_of
from timely.progress.antichain import Antichain

_PIECE = 4096
"""Rows for which it pays to call the kernel."""


class Merge:
    """A merge in progress. The sources stand for the result until it is done."""

    __slots__ = ("_columns", "_credit", "_place", "_rows", "_since", "_state", "_table", "_times", "first", "second")

    def __init__(self, first: Batch, second: Batch, since: Antichain) -> None:
        """Merge `first` and the batch that follows it, with times advanced to `since`."""
        assert first.upper == second.lower, f"{first} is not followed by {second}"
        self.first = first
        self.second = second
        self._since = since
        self._credit = 0
        self._rows = rows = len(first) + len(second)
        self._state = np.zeros(STATE_WIDTH, np.int64)
        self._table = table_of((first, second))
        self._times, self._place = plan(first.times, second.times, frontier_table(since, first.depth))
        self._columns: list[Ints] = [
            np.empty(rows, np.int64),
            np.empty(rows, np.int64) if len(first.vals) or len(second.vals) else NOTHING,
            np.empty(rows, np.int64) if len(self._times) > 1 else NOTHING,
            np.empty(rows, np.int64) if len(first.diffs) or len(second.diffs) else NOTHING,
        ]

    def __len__(self) -> int:
        return self._rows

    @property
    def remaining(self) -> int:
        """The number of rows still to be read."""
        return self._rows - int(self._state[FIRST]) - int(self._state[SECOND])

    def extend(self, upper: Antichain) -> None:
        """Take note that there are no updates from the upper of the second batch up to `upper`."""
        self.second = self.second.described(self.second.lower, upper, self.second.since)

    def work(self, fuel: int) -> Batch | None:
        """Earn `fuel` rows of work, done when there is enough to be worth a call; return the result when it is done."""
        self._credit += fuel
        if self._credit < min(_PIECE, self.remaining):
            return None
        status = self._continue()
        if status == NEEDS_DIFFS:
            self._columns[3] = np.ones(self._rows, np.int64)
            status = self._continue()
        self._credit = 0
        return self._finish() if status == DONE else None

    def complete(self) -> Batch:
        """Do all the work that is left, and return the result."""
        result = None
        while result is None:
            result = self.work(self.remaining + _PIECE)
        return result

    def _continue(self) -> int:
        keys, vals, index, diffs = self._columns
        return merge(self._table, self._place, keys, vals, index, diffs, self._state, self._credit)

    def _finish(self) -> Batch:
        _, _, rows, has_vals, has_diffs = self._state.tolist()
        keys, vals, index, diffs = self._columns
        columns = [keys, vals if has_vals else NOTHING, index, diffs if has_diffs else NOTHING]
        # What was given too long is cut when it is much too long; else its end was never touched.
        is_loose = 4 * rows < 3 * self._rows
        columns = [column[:rows].copy() if is_loose else column[:rows] for column in columns]
        keys, vals, index, diffs = columns
        index, times = drop_unused(index, self._times if rows else self._times[:0])
        return Batch(keys, vals, index, diffs, times, self.first.lower, self.second.upper, self._since)


def merge_at_once(batches: list[Batch], since: Antichain) -> Batch:
    """Return adjacent batches of few rows, not none, merged into one, with times advanced to `since`."""
    rows = merge_few(table_of(batches), frontier_table(since, batches[0].depth))
    return Batch(*rows, batches[0].lower, batches[-1].upper, since)
