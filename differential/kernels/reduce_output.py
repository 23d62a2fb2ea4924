"""The result of a call of a reduction as it grows: the updates that it emits, and the times that stay pending.

The updates are one chunk (keys, values, times, time index, diffs), ordered by key as groups are. The distinct times are
a hash set, whose members are numbered in the order in which they come. Emitting a row costs four writes; a time that
differs from that of the row before costs a look-up.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from differential.kernels.blocks import block_of
from differential.kernels.compile import Ints, Table, bare, inner
from differential.kernels.reduce_layers import KEY, PENDING_KEY, PENDING_TIME, PENDING_VAL, VAL
from differential.kernels.reduce_rows import ROW_DIFF, ROW_VAL, Rows, with_room
from differential.kernels.reduce_times import enlarged, is_full, put_distinct, same_entry, sort_entries

OUT_KEY, OUT_VAL, OUT_TIME, OUT_DIFF, OUT_WIDTH = range(5)
"""The columns of the rows emitted; the time is a number in the set of times."""

ROW_COUNT, TIME_COUNT, WITH_VALS, WITH_DIFFS, POSTPONED, COUNTS = range(6)
"""How many rows, distinct times and pending times there are; WITH_VALS is not 0 if some value is not 0, WITH_DIFFS if
some diff is not 1."""


class Emitted(NamedTuple):
    """What a call has emitted: its rows; the set of their times, with its hash table; and how many there are."""

    rows: Table
    times: Ints
    slots: Ints
    counts: Ints


@inner
def nothing_emitted() -> Emitted:
    """Return the record of a call that has emitted nothing yet."""
    nothing = np.empty(0, np.int64)
    return Emitted(np.empty((OUT_WIDTH, 0), np.int64), nothing, nothing, np.zeros(COUNTS, np.int64))


@bare
def must_grow(emitted: Emitted, n: int) -> bool:
    """Whether there is no room for `n` rows more, or for one more time.

    The caller asks before it calls `grown`: to assign arrays, changed or not, counts references, which costs more than
    emitting a row does.
    """
    counts = emitted.counts
    return counts[ROW_COUNT] + n > emitted.rows.shape[1] or is_full(emitted.slots, counts[TIME_COUNT])


@inner
def grown(emitted: Emitted, n: int, depth: int) -> Emitted:
    """Return what is emitted, with room for `n` more rows and one more time."""
    rows, times, slots, counts = emitted
    if is_full(slots, counts[TIME_COUNT]):
        slots, times = enlarged(slots, times, counts[TIME_COUNT], depth)
    return Emitted(with_room(rows, counts[ROW_COUNT] + n), times, slots, counts)


@bare
def emit(emitted: Emitted, key: int, rows: Rows, n: int, times: Ints, time: int, depth: int) -> None:
    """Emit `n` rows of a key, at least one, at an entry of `times`; there must be room (see `must_grow`)."""
    output, table, slots, counts = emitted
    count = counts[ROW_COUNT]
    # Groups often emit at the same time, so the last row's time is compared before the hash table is searched.
    index = output[OUT_TIME, count - 1] if count > 0 else 0
    if count == 0 or not same_entry(table, index, times, time, depth):
        index = put_distinct(slots, table, counts[TIME_COUNT], times, time, depth)
        # A time that is new has got the number of members before it.
        counts[TIME_COUNT] = max(counts[TIME_COUNT], index + 1)
    for row in range(n):
        output[OUT_KEY, count + row] = key
        output[OUT_VAL, count + row] = rows[ROW_VAL, row]
        output[OUT_TIME, count + row] = index
        output[OUT_DIFF, count + row] = rows[ROW_DIFF, row]
        counts[WITH_VALS] |= rows[ROW_VAL, row]
        # A diff less 1 is 0 exactly if the diff is 1.
        counts[WITH_DIFFS] |= rows[ROW_DIFF, row] - 1
    counts[ROW_COUNT] = count + n


@inner
def chunk_block(emitted: Emitted, depth: int) -> Ints:
    """Return the rows as a block, in which columns of nothing but defaults are absent."""
    output, table, _, counts = emitted
    n, times = counts[ROW_COUNT], counts[TIME_COUNT]
    return block_of(
        output[OUT_KEY][:n],
        output[OUT_VAL][: n if counts[WITH_VALS] != 0 else 0],
        output[OUT_TIME][: n if times > 1 else 0],
        output[OUT_DIFF][: n if counts[WITH_DIFFS] != 0 else 0],
        table[: times * depth].reshape((times, depth)),
    )


@bare
def is_sealed(emitted: Emitted) -> bool:
    """Return whether the rows are at one time, in the order of keys and values, and no two agree in both."""
    output, counts = emitted.rows, emitted.counts
    if counts[TIME_COUNT] != 1:
        return False
    for row in range(1, counts[ROW_COUNT]):
        before, here = output[OUT_KEY, row - 1], output[OUT_KEY, row]
        if before > here or (before == here and output[OUT_VAL, row - 1] >= output[OUT_VAL, row]):
            return False
    return True


@inner
def add_postponed(postponed: Table, counts: Ints, group: Ints, pending: Ints, pending_count: int, depth: int) -> Table:
    """Return `postponed` (columns: key, value, the time's coordinates) with the pending times of a group added."""
    count = counts[POSTPONED]
    postponed = with_room(postponed, count + pending_count)
    order, spare = np.empty(pending_count, np.int64), np.empty(pending_count, np.int64)
    # Groups come in order, on which `next_group` relies in the next call. The times of a group come in order too.
    sort_entries(pending, pending_count, order, spare, depth)
    for place in range(pending_count):
        row = count + place
        postponed[PENDING_KEY, row] = group[KEY]
        postponed[PENDING_VAL, row] = group[VAL]
        for d in range(depth):
            postponed[PENDING_TIME + d, row] = pending[order[place] * depth + d]
    counts[POSTPONED] = count + pending_count
    return postponed
