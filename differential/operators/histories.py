"""Join the long histories of a few keys without letting every update of one meet every update of the other.

A join pairs each update of a key at a time t with each at a time s, at the lattice join of both. If a thousand epochs
are sent at once, a key that changes in each has a thousand updates on both sides, and a million pairs, although it may
have few records at any time. So both histories are cut at a value m of one coordinate, into what comes before (1) and
what does not (2):

    new x past = new1 x past1 + new2 x past2 + new2 x onward(past1) + onward(new1) x past2

where `onward` replaces that coordinate by m. This changes no lattice join with a time of part 2. Updates that cancel
are then gone: what is left of a part is what the key has at m. The first two products are cut again, until one side has
few values of each coordinate. With totally ordered times there are about as many pairs as there are updates, times the
records that a key has at one time, times the logarithm of the updates.

Only keys with many updates on both sides are joined in this way, and only those batches that have many times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from differential.kernels.compile import NOTHING, Ints, Table
from differential.kernels.wide import Overflow
from differential.trace.batch import Batch
from differential.trace.columns import Rows
from differential.trace.cursor import rows_within
from differential.trace.parts import consolidated
from timely.lowlevel import starts_of_runs

SHORT = 32
"""A history of no more updates, or times, is short."""

Product = tuple[Batch, tuple[Batch, ...]]
"""Updates of one side, and batches of the other that they are to be joined with."""

Watch = Callable[[Batch], object]


class CodeWatchers(NamedTuple):
    """Functions that keep what the codes of a batch mean for as long as the batch exists (`arranged.watcher`)."""

    new: Watch
    past: Watch


def products(new: Batch, past: tuple[Batch, ...], watches: CodeWatchers) -> Iterator[Product] | None:
    """Return what to join instead of `new` with each batch of `past`; None if no key has a long history in both.

    It is None as well where rows to be added up have a sum that does not fit into 64 bits.

    The batches are made as they are asked for, and watched.

    >>> from differential.trace.description import Description
    >>> from timely.lowlevel import Antichain
    >>> whole = Description(Antichain([(0,)]), Antichain(), Antichain([(0,)]))
    >>> epochs = np.arange(100)
    >>> batch = Batch.build(epochs * 0, epochs % 2, epochs, 1 - epochs % 3, epochs[:, None], whole)
    >>> pairs = products(batch, (batch,), CodeWatchers(len, len))
    >>> sum(len(new) * sum(map(len, past)) for new, past in pairs) < len(batch) ** 2 / 2
    True
    """
    long = [batch for batch in past if batch.time_count > SHORT]
    if new.time_count <= SHORT or not long:
        return None
    starts = starts_of_runs((new.keys,))
    keys, lengths = new.keys[starts], np.diff(starts, append=len(new))
    spans = [(batch.keys.searchsorted(keys), batch.keys.searchsorted(keys, "right")) for batch in long]
    matches = np.sum([end - first for first, end in spans], axis=0)
    are_hot = (lengths > SHORT) & (matches > SHORT)
    if not are_hot.any():
        return None
    is_hot = are_hot.repeat(lengths)
    try:
        hot, rest = _some(new, is_hot), _some(new, ~is_hot)
        held = _together(
            [_some(batch, rows_within(first[are_hot], end[are_hot])) for batch, (first, end) in zip(long, spans)]
        )
    except Overflow:
        # Batches of an imported trace may have rows that agree in key, value and time. The pairs of each are joined by
        # themselves, and whoever adds them up names the record.
        return None
    # They may be joined over several activations, in between which codes that nothing announces are reclaimed.
    watches.new(rest)
    watches.new(hot)
    watches.past(held)
    others = tuple(batch for batch in past if batch.time_count <= SHORT)
    return chain([(rest, past), (hot, others)], _cut(hot, held, watches))


def _cut(new: Batch, past: Batch, watches: CodeWatchers) -> Iterator[Product]:
    """Yield what to join instead of two histories."""
    if not len(new) or not len(past):
        return
    found = _middle(new.times, past.times)
    if found is None:
        yield new, (past,)
        return
    coordinate, middle = found
    early, late = _divided(new, coordinate, middle, watches.new)
    before, after = _divided(past, coordinate, middle, watches.past)
    yield from _cut(late, _onward(before, coordinate, middle, watches.past), watches)
    yield from _cut(_onward(early, coordinate, middle, watches.new), after, watches)
    yield from _cut(early, before, watches)
    yield from _cut(late, after, watches)


def _middle(times: Table, others: Table) -> tuple[int, int] | None:
    """Return the coordinate of which both sides have the most values, and the middle one; None if these are few."""
    values = [(np.unique(times[:, each]), np.unique(others[:, each])) for each in range(times.shape[1])]
    few = [min(len(mine), len(theirs)) for mine, theirs in values]
    if not few or max(few) <= SHORT:
        return None
    coordinate = few.index(max(few))
    # Both sides have more than `SHORT` values, so some of all are before the middle one, and each cut makes progress.
    both = np.union1d(*values[coordinate])
    return coordinate, int(both[len(both) // 2])


def _divided(batch: Batch, coordinate: int, middle: int, watch: Watch) -> tuple[Batch, Batch]:
    """Return the updates before `middle` in a coordinate, and the others."""
    is_before = batch.times[:, coordinate] < middle
    rows = is_before[batch.time_index] if len(batch.time_index) else is_before.repeat(len(batch))
    parts = _some(batch, rows), _some(batch, ~rows)
    for part in parts:
        watch(part)
    return parts


def _onward(batch: Batch, coordinate: int, middle: int, watch: Watch) -> Batch:
    """Return the updates with `middle` as the coordinate of their times, which were before, without those that cancel.

    Where a sum would not fit into 64 bits, all of them are left as they are: each may still meet others.
    """
    keys, vals, time_index, diffs, times = batch.columns.rows
    times = times.copy()
    times[:, coordinate] = middle
    try:
        batch = Batch.build(keys, vals, time_index, diffs, times, batch.description)
    except Overflow:
        return batch  # equally right: a join with a time of the other part has that one's coordinate in any case
    watch(batch)
    return batch


def _some(batch: Batch, rows: Ints | NDArray[np.bool_]) -> Batch:
    """Return some updates of a batch: a mask of its rows, or their places, ascending."""
    keys, vals, time_index, diffs, times = batch.columns.rows
    vals, time_index, diffs = (column[rows] if len(column) else NOTHING for column in (vals, time_index, diffs))
    return Batch.build(keys[rows], vals, time_index, diffs, times, batch.description)


def _together(batches: Sequence[Batch]) -> Batch:
    """Return the updates of several batches as one."""
    if len(batches) == 1:
        return batches[0]
    parts: list[Rows] = [batch.columns.rows for batch in batches if len(batch)]
    return Batch.build(*consolidated(parts), batches[0].description)
