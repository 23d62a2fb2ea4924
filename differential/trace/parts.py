"""Parts: updates as they arrived, to be put together and consolidated.

Many rows are packed into words part by part, and each part is freed as soon as it is packed. So the memory needed is
that of the parts and half as much again, not three times theirs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import product

import numpy as np

from differential.kernels.compile import Batches, Table
from differential.kernels.consolidate import consolidate, consolidate_parts, plan_words, unpack_words
from differential.kernels.memory import address_of
from differential.kernels.wide import Overflow
from differential.kernels.words import UNFIT, pack_part
from differential.trace.columns import Rows, UpdateColumns
from timely.lowlevel import CLOSED, Antichain, Time

MANY = 1 << 20
"""From this many rows on, the parts are packed one by one."""

_AS_THEY_ARE: Table = np.empty((0, 0), np.int64)


def consolidated(parts: list[Rows]) -> Rows:
    """Return the rows of all parts, consolidated. The list is emptied."""
    if sum([len(part[0]) for part in parts]) >= MANY:
        together = _piecemeal(parts)
        if together is not None:
            return together
    try:
        together = consolidate(*parts[0]) if len(parts) == 1 else consolidate_parts(table_of_parts(parts), _AS_THEY_ARE)
    except Overflow as fault:
        raise at_its_time(fault, parts) from None
    parts.clear()
    return together


def at_its_time(fault: Overflow, parts: Iterable[Rows], upper: Antichain = CLOSED) -> Overflow:
    """Return the fault with the time, not in advance of `upper`, at which its record occurs too often in the parts."""
    key, val = fault.args[:2]
    counts: Counter[Time] = Counter()
    for found, time, diff in updates_at(key, parts):
        if found == val and not upper.admits(time):
            counts[time] += diff
    fault.time = min([time for time, count in counts.items() if not -(1 << 63) <= count < 1 << 63], default=None)
    return fault


def first_wide_pair(key: int, left: Iterable[Rows], right: Iterable[Rows]) -> tuple[Time, int, int]:
    """Return the least time, and the values, at which a pair of records of a key occurs too often."""
    pairs = product(updates_at(key, left), updates_at(key, right))
    wide = [
        (tuple(map(max, time, other)), val, value)
        for (val, time, diff), (value, other, factor) in pairs
        if not -(1 << 63) <= diff * factor < 1 << 63
    ]
    return min(wide)


def updates_at(key: int, parts: Iterable[Rows]) -> list[tuple[int, Time, int]]:
    """Return the value, time and diff of each row of a key. It takes a pass over all rows, and is for errors."""
    found: list[tuple[int, Time, int]] = []
    for keys, vals, index, diffs, times in parts:
        for row in np.flatnonzero(keys == key).tolist():
            time = tuple(times[index[row] if len(index) else 0].tolist())
            found.append((int(vals[row]) if len(vals) else 0, time, int(diffs[row]) if len(diffs) else 1))
    return found


def _piecemeal(parts: list[Rows]) -> Rows | None:
    """Return the same, and free each part once it is packed. Return None where rows do not fit, or are sorted."""
    # This table owns nothing: each part is freed as soon as it is packed, and no row before `number` is read again.
    table = np.concatenate([address_of(*part) for part in parts]).reshape(-1, 8)
    words, first, second, is_by_row, layout, diffs, times, place = plan_words(table)
    if words == UNFIT:
        return None  # all parts are still there for the caller
    start = base = 0
    for number in range(len(table)):
        part = parts[0]  # the list is shortened from the front, so this is the part of row `number`
        pack_part(table[number:], 0, start, first, second, place[base:], is_by_row, layout)
        start += len(part[0])
        base += len(part[4])
        parts.pop(0)
    try:
        return unpack_words(first, second, layout, is_by_row, diffs, times)
    except Overflow as fault:
        # The parts are gone, so `at_its_time` could not find the record in them.
        fault.time = tuple(times[fault.args[2]].tolist())
        raise


def table_of_parts(parts: list[Rows]) -> Batches:
    """Return the parts as kernels take a table of them. It keeps the parts alive."""
    return tuple([UpdateColumns.of(part).head for part in parts])
