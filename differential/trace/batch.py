"""Batches: what a trace is made of.

A batch holds all updates of a collection in an interval of times. Its `description` says which interval, and as of
which times the updates may be read (`differential.trace.description`).

Rows are sorted by (key, value, time) and consolidated: no two agree in all three and no diff is 0. The times of the
rows are in a table, sorted, distinct and in use; columns that need not be spelled out are absent (length 0): `vals`
when all are 0, `time_index` when there is one time, `diffs` when all are 1. Batches are immutable, and share columns
freely.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from differential.kernels.compile import NOTHING, Ints, Table
from differential.kernels.consolidate import consolidate
from differential.kernels.memory import address_of
from differential.kernels.times import advance, intern
from differential.trace.description import Description
from differential.trace.table import owning
from timely.lowlevel import Antichain


class Batch:
    """Sorted, consolidated updates and the description of the interval they are all updates of."""

    __slots__ = (
        "_address",
        "_entered",
        "_rows_at",
        "description",
        "diffs",
        "keys",
        "time_index",
        "times",
        "vals",
    )

    def __init__(
        self,
        keys: Ints,
        vals: Ints,
        time_index: Ints,
        diffs: Ints,
        times: Table,
        description: Description,
        rows_at: Ints | None = None,
    ) -> None:
        """Take columns as they are, and `rows_at` where it is known."""
        self.keys = keys
        self.vals = vals
        self.time_index = time_index
        self.diffs = diffs
        self.times = times
        self.description = description
        self._address: bytes | None = None
        self._entered: Batch | None = None
        self._rows_at = rows_at

    @classmethod
    def empty(cls, description: Description, depth: int) -> Batch:
        """Return a batch without updates; its times have `depth` coordinates."""
        return cls(NOTHING, NOTHING, NOTHING, NOTHING, no_times(depth), description)

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
        return cls(*consolidate(keys, vals, time_index, diffs, times), description)

    def __len__(self) -> int:
        return len(self.keys)

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
        return int(self.times.shape[1])

    @property
    def nbytes(self) -> int:
        """The bytes of keys, values, times and diffs."""
        columns = self.keys.nbytes + self.vals.nbytes + self.time_index.nbytes
        return columns + self.diffs.nbytes + self.times.nbytes

    @property
    def rows_at(self) -> Ints:
        """How many rows there are at each time."""
        if self._rows_at is None:
            index = self.time_index if len(self.time_index) or not len(self) else np.zeros(len(self), np.int64)
            self._rows_at = np.bincount(index, minlength=len(self.times))
        return self._rows_at

    @property
    def address(self) -> bytes:
        """The row that stands for this batch in a table of batches (see `differential.kernels.memory`)."""
        if self._address is None:
            # Bytes, because a table is made of many of these at each change, and arrays are slower to join.
            self._address = address_of(self.keys, self.vals, self.time_index, self.diffs, self.times).tobytes()
        return self._address

    def described(self, description: Description) -> Batch:
        """Return the same updates, as those of another interval."""
        batch = Batch(self.keys, self.vals, self.time_index, self.diffs, self.times, description, self._rows_at)
        batch._address = self._address
        return batch

    def as_of(self, since: Antichain) -> Batch:
        """Return the same updates with their times replaced by their representatives under `since`.

        Columns are shared, but that of times where `since` cuts the interval. Rows may then agree in key, value and
        time, and be out of the order of times: this is for who reads rows, not for traces.
        """
        if since.dominates(self.lower) or not len(self):
            return self
        times = advance(self.times, frontier_table(since, self.depth))
        if np.array_equal(times, self.times):
            return self
        times, place = intern(times)
        index = place[self.time_index] if len(times) > 1 else NOTHING
        return Batch(self.keys, self.vals, index, self.diffs, times, self.description.as_of(since))

    def enter(self) -> Batch:
        """Return this batch as an inner scope sees it, with one more coordinate, 0, in each time."""
        if self._entered is None:
            times = np.zeros((len(self.times), self.depth + 1), np.int64)
            times[:, :-1] = self.times
            description = self.description.enter()
            self._entered = Batch(self.keys, self.vals, self.time_index, self.diffs, times, description)
        return self._entered

    def validate(self) -> None:
        """Raise AssertionError, in words, if an invariant does not hold."""
        self.description.validate()
        rows, distinct = len(self.keys), len(self.times)
        for name in ("vals", "time_index", "diffs"):
            assert len(getattr(self, name)) in (0, rows), f"{name} has neither 0 nor {rows} rows"
        times = [tuple(time) for time in self.times.tolist()]
        index = self.time_index.tolist() or [0] * rows
        assert times == sorted(set(times)), "the times are not sorted and distinct"
        assert set(index) == set(range(distinct)), "the times are not those in use"
        assert len(self.time_index) == 0 or distinct > 1, "one time is spelled out"
        assert len(self.vals) == 0 or bool(self.vals.any()), "values that are all 0 are spelled out"
        assert len(self.diffs) == 0 or bool((self.diffs != 1).any()), "diffs that are all 1 are spelled out"
        assert bool((self.diffs != 0).all()), "a diff is 0"
        data = list(zip(self.keys.tolist(), self.vals.tolist() or [0] * rows, index))
        assert all(a < b for a, b in itertools.pairwise(data)), "the rows are not sorted and consolidated"
        if self.since == Antichain([(0,) * self.depth]):
            outside = [time for time in times if self.upper.less_equal(time) or not self.lower.less_equal(time)]
            assert not outside, f"times outside the interval: {outside}"
        at = [index.count(time) for time in range(distinct)]
        assert self.rows_at.tolist() == at, f"{self.rows_at} rows at each time are {at}"

    def __repr__(self) -> str:
        return f"Batch({len(self)} rows, {len(self.times)} times, {self.description})"


def no_times(depth: int) -> Table:
    """Return a table of no times."""
    return np.empty((0, depth), np.int64)


def frontier_table(frontier: Antichain, depth: int) -> Table:
    """Return the elements of a frontier as a table of times of `depth` coordinates, not to be changed."""
    global _latest
    latest, table = _latest
    if latest is not frontier or not frontier.elements:
        table = np.array(frontier.elements, np.int64) if frontier.elements else no_times(depth)
        _latest = frontier, table
    return table


def table_of(batches: Sequence[Batch]) -> Table:
    """Return the addresses of `batches` as a table for kernels, which keeps the batches alive."""
    return owning([batch.address for batch in batches], tuple(batches)) if batches else _NO_ADDRESSES


_NO_ADDRESSES: Table = np.empty((0, 8), np.int64)
_latest: tuple[Antichain, Table] = (Antichain(), no_times(1))
"""The latest frontier and its table: mostly the next call is for the same frontier."""
