"""Counts whose input comes in the order of times: the last output and the new rows determine the change.

If times come in order, no new row is at or before a time of the past, so no history needs a visit. The changes of a
count that were emitted for a key add up, value times diff, to its present count, because each change retracts the count
before it. So `count_changes` reads the output so far, which has few rows for a key, not the input.

`record_changes` does the same for the count of a record (key, value), on which `distinct` depends. It reads the input's
trace, and needs no output. `distinct_block` makes of it what `distinct` answers to a small batch.

*Cost.* A gallop for each key (or record) in each layer, then its rows there, then one step for each new row. A position
in each layer only moves forward, because the new rows are sorted.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.blocks import block_of
from differential.kernels.compile import Batches, Ints, Table, bare, inner, kernel
from differential.kernels.memory import DIFFS, KEYS, VALS, at, column, empty, times_of
from differential.kernels.reduce_rows import copied
from differential.kernels.seek import FAR, prefetch, seek
from differential.kernels.wide import Overflow, carry, fits


class Negative(ArithmeticError):
    """A key has a negative count. Its arguments are the code of the key, the count, and the index of the time."""


@inner
def _last_count(past: Table, places: Ints, key: int) -> int:
    """Return the last count emitted for a key, and move `places`, a row of each layer, past the key."""
    total = 0
    for layer in range(len(past)):
        keys = column(past, layer, KEYS)
        row = seek(keys, places[layer], key)
        while row < len(keys) and keys[row] == key:
            total += at(column(past, layer, VALS), row, 0) * at(column(past, layer, DIFFS), row, 1)
            row += 1
        places[layer] = row
    return total


@kernel
def count_changes(
    keys: Ints, time_index: Ints, diffs: Ints, past: Batches, is_signed: int
) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the changes of the counts due to the given new rows, as keys, counts, time index and diffs.

    The rows are sorted by (key, time), and times are indexed in their order. `past` is the trace of the counts emitted
    so far, all of them earlier. The rows emitted at one time are sorted by (key, count). Diffs are absent if all are 1.

    Raises Overflow, with the index of the time, if a count does not fit into 64 bits, and Negative if one is negative
    unless `is_signed` is 1.
    """
    rows = len(keys)
    new_keys, counts, new_diffs = empty(2 * rows), empty(2 * rows), empty(2 * rows)
    new_index = empty(2 * rows if len(time_index) != 0 else 0)
    prefetch(keys, past)
    places = np.zeros(len(past), np.int64)
    row = emitted = total = retracted = 0
    while row < rows:
        key, time = keys[row], at(time_index, row, 0)
        if row == 0 or keys[row - 1] != key:
            total = _last_count(past, places, key)
        before, high = total, total >> 63
        while row < rows and keys[row] == key and at(time_index, row, 0) == time:
            total += at(diffs, row, 1)
            high += carry(total, at(diffs, row, 1))
            row += 1
        if not fits(total, high):
            raise Overflow(key, 0, time)
        if total < 0 and is_signed == 0:
            raise Negative(key, total, time)
        # At most two rows for each (key, time): one retracts the old count, one emits the new one; 0 stands for no row.
        if total != before:
            for count in (min(before, total), max(before, total)):
                if count != 0:
                    new_keys[emitted], counts[emitted] = key, count
                    new_diffs[emitted] = 1 if count == total else -1
                    if len(time_index) != 0:
                        new_index[emitted] = time
                    retracted += count == before
                    emitted += 1
    return (
        copied(new_keys, emitted),
        copied(counts, emitted),
        copied(new_index, emitted if len(time_index) != 0 else 0),
        copied(new_diffs, emitted if retracted != 0 else 0),
    )


@kernel
def count_block(new: Batches, past: Batches, is_signed: int) -> tuple[Ints, int]:
    """Return the changes of the counts due to a batch at one time, as a block, and how many there are."""
    keys, counts, _, diffs = count_changes(
        column(new, 0, KEYS), np.empty(0, np.int64), column(new, 0, DIFFS), past, is_signed
    )
    return block_of(keys, counts, np.empty(0, np.int64), diffs, times_of(new, 0)), len(keys)


@bare
def _is_before(keys: Ints, vals: Ints, row: int, key: int, val: int) -> bool:
    """Return whether a row's (key, value) is before the given one."""
    return keys[row] < key or (keys[row] == key and at(vals, row, 0) < val)


@bare
def _seek_record(keys: Ints, vals: Ints, start: int, key: int, val: int) -> int:
    """Return the first row from `start` on that is not before (key, val); costs the logarithm of the distance."""
    rows = len(keys)
    if start >= rows or not _is_before(keys, vals, start, key, val):
        return start
    far = start + FAR
    if far < rows and keys[far] < key:
        # The row before the first one of the key is before the record.
        start = seek(keys, far, key) - 1
    low, step = start, 1
    while low + step < rows and _is_before(keys, vals, low + step, key, val):
        low += step
        step *= 4
    high = min(low + step, rows)
    while high - low > 1:
        middle = (low + high) >> 1
        if _is_before(keys, vals, middle, key, val):
            low = middle
        else:
            high = middle
    return high


@inner
def _occurrences(past: Table, places: Ints, key: int, val: int) -> int:
    """Return the count of a record, and move `places`, a row of each layer, past the record."""
    total = 0
    for layer in range(len(past)):
        keys, vals = column(past, layer, KEYS), column(past, layer, VALS)
        row = _seek_record(keys, vals, places[layer], key, val)
        while row < len(keys) and keys[row] == key and at(vals, row, 0) == val:
            total += at(column(past, layer, DIFFS), row, 1)
            row += 1
        places[layer] = row
    return total


@kernel
def record_changes(keys: Ints, vals: Ints, diffs: Ints, through: Batches) -> tuple[Ints, Ints]:
    """Return the count of each row's record before and after the row.

    The rows are new and sorted by (key, value, time). `through` is the input's trace with these rows, and
    no later ones. Raises Overflow, with the row, if a count does not fit into 64 bits.
    """
    rows = len(keys)
    before, after = empty(rows), empty(rows)
    prefetch(keys, through)
    places = np.zeros(len(through), np.int64)
    total = 0
    for row in range(rows):
        key, val = keys[row], at(vals, row, 0)
        if row == 0 or _is_before(keys, vals, row - 1, key, val):
            # The trace has the new rows too: the count before the first of them is the trace's count less theirs.
            total = _occurrences(through, places, key, val)
            own = row
            while own < rows and keys[own] == key and at(vals, own, 0) == val:
                total -= at(diffs, own, 1)
                own += 1
        before[row], diff = total, at(diffs, row, 1)
        total += diff
        if not fits(total, (before[row] >> 63) + carry(total, diff)):
            raise Overflow(key, val, row)
        after[row] = total
    return before, after


@kernel
def distinct_block(new: Batches, through: Batches) -> tuple[Ints, int]:
    """Return the changes of which records occur, due to a batch at one time, as a block, and how many there are.

    `through` is the input's trace with this batch, and no later one. Raises Overflow as `record_changes` does, and
    Negative, with the row in place of the time, if a record occurs a negative number of times.
    """
    keys, vals = column(new, 0, KEYS), column(new, 0, VALS)
    before, after = record_changes(keys, vals, column(new, 0, DIFFS), through)
    rows = changed = valued = retracted = 0
    for row in range(len(keys)):
        if after[row] < 0:
            raise Negative(keys[row], after[row], row)
        if (after[row] != 0) != (before[row] != 0):
            changed += 1
            valued += at(vals, row, 0) != 0
            retracted += after[row] == 0
    new_keys = empty(changed)
    new_vals, diffs = empty(changed if valued != 0 else 0), empty(changed if retracted != 0 else 0)
    for row in range(len(keys)):
        if (after[row] != 0) != (before[row] != 0):
            new_keys[rows] = keys[row]
            if valued != 0:
                new_vals[rows] = vals[row]
            if retracted != 0:
                diffs[rows] = 1 if after[row] != 0 else -1
            rows += 1
    return block_of(new_keys, new_vals, np.empty(0, np.int64), diffs, times_of(new, 0)), rows
