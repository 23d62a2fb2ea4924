"""Changes to a graph: edges that appear and disappear, epoch by epoch.

A text has one change per line: an optional epoch, `+` or `-`, the source, the target, and a weight if edges have one.
Lines with the same epoch are one change; without epochs each line is one. Epochs never decrease. One worker reads all.
"""

from __future__ import annotations

import itertools
import time as clock
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from differential.jobs.input.edges import Ints, Weights, concatenated

SIGN_NAMES = ("sign", "diff", "op", "change")
"""What a header names the column of signs."""
SETTLED = 1.0
"""After how many seconds without a new line an epoch is complete, while the file is followed."""


class EpochChange(NamedTuple):
    """What changes in one epoch: columns of equal length."""

    epoch: int
    """As in the file; without epochs, the ordinal of the change, from 1."""
    line: int
    """The line of the first row, or its row, counted from 1."""
    source: Ints
    target: Ints
    weight: Weights | None
    """Present if and only if the layout has a column of weights."""
    diff: Ints
    """1 for an edge that appears, -1 for one that disappears."""


class ChangeRows(NamedTuple):
    """Successive rows of changes."""

    epoch: Ints | None
    line: Ints
    source: Ints
    target: Ints
    weight: Weights | None
    diff: Ints

    def rows(self, begin: int, end: int) -> ChangeRows:
        return ChangeRows(*(None if each is None else each[begin:end] for each in self))  # type: ignore[arg-type]

    def without(self, places: Ints) -> ChangeRows:
        if not len(places):
            return self
        return ChangeRows(*(None if each is None else np.delete(each, places) for each in self))  # type: ignore[arg-type]


class Order:
    """Checks that epochs never decrease."""

    def __init__(self) -> None:
        self._begin = self._last = int(np.iinfo(np.int64).min)

    def begin(self, time: int) -> None:
        """Refuse epochs before the last one of the graph."""
        self._begin = self._last = time

    def late(self, epoch: Ints) -> Ints:
        """Return the places of epochs that are less than one before them."""
        reached = np.maximum.accumulate(np.append(self._last, epoch))
        self._last = int(reached[-1])
        return np.flatnonzero(epoch < reached[1:])

    def fault(self, epoch: int) -> tuple[str, str]:
        """Return what is wrong with an epoch that is late, and what to do about it."""
        if epoch < self._begin:
            return (
                f"the epoch {epoch} is before the last epoch of the graph, {self._begin}",
                f"Let the epochs of changes begin at {self._begin}",
            )
        return f"the epoch {epoch} is less than one before it", "Sort the changes by epoch"


class OpenedChanges:
    """Changes that have been opened; `epochs` reads them, once. How many they are is not known before.

    `batches` yields all rows, whose epochs `order` checks, and None if there is nothing new while they are followed.
    """

    total = None

    def __init__(self, label: str, order: Order, batches: Iterator[ChangeRows | None]) -> None:
        self.label = label
        self._order = order
        self._batches = batches
        self._pending: list[ChangeRows] = []
        self._ordinal = 0
        self._arrived = 0.0

    def begin_after(self, time: int) -> None:
        """Number the changes after the last epoch of the graph; an epoch before it is a fault."""
        self._ordinal = time
        self._order.begin(time)

    def epochs(self) -> Iterator[EpochChange | None]:
        """Yield the changes in order; while a file is followed, None if there is nothing new.

        Nothing here waits. A followed epoch is complete when a later one begins, or when nothing was added for
        `SETTLED` seconds; rows of the same epoch that follow later are another change with the same label. Raises
        DataError if the file is damaged, or at the first fault if faults stop the run.
        """
        for batch in self._batches:
            if batch is not None and len(batch.line):
                self._arrived = clock.monotonic()
                yield from self._lines(batch) if batch.epoch is None else self._whole(batch, batch.epoch)
            elif batch is None:
                is_settled = clock.monotonic() - self._arrived >= SETTLED
                yield self._finished() if self._pending and is_settled else None
        if self._pending:
            yield self._finished()

    def _lines(self, batch: ChangeRows) -> Iterator[EpochChange]:
        for row in range(len(batch.line)):
            self._ordinal += 1
            each = batch.rows(row, row + 1)
            yield EpochChange(self._ordinal, int(each.line[0]), each.source, each.target, each.weight, each.diff)

    def _whole(self, batch: ChangeRows, epoch: Ints) -> Iterator[EpochChange]:
        """Yield the epochs that are complete, and keep the last one."""
        starts = [0, *(np.flatnonzero(np.diff(epoch)) + 1).tolist(), len(epoch)]
        for begin, end in itertools.pairwise(starts):
            if self._pending and self._label() != epoch[begin]:
                yield self._finished()
            self._pending.append(batch.rows(begin, end))

    def _label(self) -> int:
        epoch = self._pending[0].epoch
        assert epoch is not None
        return int(epoch[0])

    def _finished(self) -> EpochChange:
        """Return the rows kept as a change."""
        label, parts = self._label(), self._pending
        self._pending = []
        line, *columns = parts[0][1:] if len(parts) == 1 else concatenated(part[1:] for part in parts)
        return EpochChange(label, int(line[0]), *columns)
