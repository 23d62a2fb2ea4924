"""Batches: what a trace is made of.

A batch holds all updates of a collection in an interval of times. Its `description` states which interval, and as of
which times the updates may be read (`differential.trace.description`).

Rows are sorted by (key, value, time) and consolidated: no two agree in all three and no diff is 0. The times of the
rows are in a table, sorted, distinct and in use; columns that need not be spelled out are absent (length 0): `vals`
when all are 0, `time_index` when there is one time, `diffs` when all are 1. Batches are immutable, and share columns
freely.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from differential.kernels.blocks import consolidated_block
from differential.kernels.compile import NOTHING, Batches, Ints, Table, Times
from differential.kernels.consolidate import consolidate
from differential.kernels.times import advance, intern
from differential.trace.columns import FEW, UpdateColumns, nothing
from differential.trace.description import Description
from timely.lowlevel import Antichain, Time


class Batch:
    """All updates of a collection in an interval of times, sorted and consolidated, with the interval's description."""

    kind: ClassVar[str] = "arranged"
    __slots__ = ("_entered", "columns", "description")

    def __init__(self, columns: UpdateColumns, description: Description) -> None:
        """Take columns as they are."""
        self.columns = columns
        self.description = description
        self._entered: Batch | None = None

    @classmethod
    def empty(cls, description: Description, depth: int) -> Batch:
        """Return a batch without updates; its times have `depth` coordinates."""
        return cls(nothing(depth), description)

    @classmethod
    def build(
        cls,
        keys: Ints,
        vals: Ints,
        time_index: Ints,
        diffs: Ints,
        times: Table,
        description: Description,
    ) -> Batch:
        """Return a batch of updates in any order, under any table of times."""
        if len(keys) > FEW:
            return cls(UpdateColumns.of(consolidate(keys, vals, time_index, diffs, times)), description)
        block, rows, count = consolidated_block(keys, vals, time_index, diffs, times)
        return cls(UpdateColumns(rows, count, times.shape[1], block, None), description)

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def keys(self) -> Ints:
        """The key of each row."""
        return self.columns.rows[0]

    @property
    def vals(self) -> Ints:
        """The value of each row; absent if all are 0."""
        return self.columns.rows[1]

    @property
    def time_index(self) -> Ints:
        """The place of each row's time in the table of times; absent if there is one time."""
        return self.columns.rows[2]

    @property
    def diffs(self) -> Ints:
        """The diff of each row; absent if all are 1."""
        return self.columns.rows[3]

    @property
    def times(self) -> Table:
        """The table of times."""
        return self.columns.rows[4]

    @property
    def time_count(self) -> int:
        """The number of times."""
        return self.columns.time_count

    @property
    def lower(self) -> Antichain:
        """The frontier at which the interval begins."""
        return self.description.lower

    @property
    def upper(self) -> Antichain:
        """The frontier at which the interval ends."""
        return self.description.upper

    @property
    def since(self) -> Antichain:
        """The frontier from which on the contents may be read."""
        return self.description.since

    @property
    def depth(self) -> int:
        """The number of coordinates of a time."""
        return self.columns.depth

    @property
    def nbytes(self) -> int:
        """The bytes of keys, values, times and diffs."""
        columns = self.keys.nbytes + self.vals.nbytes + self.time_index.nbytes
        return columns + self.diffs.nbytes + self.times.nbytes

    def described(self, description: Description) -> Batch:
        """Return the same updates, as those of another interval."""
        return Batch(self.columns, description)

    def as_of(self, since: Antichain) -> Batch:
        """Return the same updates with their times replaced by their representatives under `since`.

        Columns are shared, but that of times where `since` cuts the interval. Rows may then agree in key, value and
        time, and be out of the order of times: the result may be read, but not inserted into a trace.
        """
        # In that case every time is in advance of `lower`, so of `since`, and is its own representative.
        if since.dominates(self.lower) or not len(self):
            return self
        times = advance(self.times, frontier_table(since, self.depth))
        if np.array_equal(times, self.times):
            return self
        times, place = intern(times)
        index = place[self.time_index] if len(times) > 1 else NOTHING
        columns = UpdateColumns.of((self.keys, self.vals, index, self.diffs, times))
        return Batch(columns, self.description.as_of(since))

    def enter(self) -> Batch:
        """Return this batch as an inner scope sees it, with one more coordinate, 0, in each time."""
        if self._entered is None:
            # Kept: all readers in the scope share it, and recognise it by its identity.
            self._entered = Batch(self.columns.entered(), self.description.enter())
        return self._entered

    def __repr__(self) -> str:
        return f"Batch({len(self)} rows, {self.time_count} times, {self.description})"


def entering(more: int) -> Callable[[Time, Any], tuple[Time, Any]]:
    """Return the function that gives batches and their times `more` coordinates, as an inner scope sees them."""
    suffix = (0,) * more

    def enter(time: Time, batch: Any) -> tuple[Time, Any]:
        for _ in range(more):
            assert isinstance(batch, Batch)
            batch = batch.enter()
        return time + suffix, batch

    return enter


def no_times(depth: int) -> Table:
    """Return a table of no times."""
    return np.empty((0, depth), np.int64)


def frontier_table(frontier: Antichain, depth: int) -> Times:
    """Return the elements of a frontier as kernels take a table of times of `depth` coordinates."""
    return frontier.elements or no_times(depth)


def table_of(batches: Sequence[Batch]) -> Batches:
    """Return `batches` as kernels take a table of them. It keeps their columns alive."""
    return tuple([batch.columns.head for batch in batches])
