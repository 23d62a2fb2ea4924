"""Parts: updates as they arrived, to be put together and consolidated.

Many rows are packed into words part by part, and each part is freed as soon as it is packed. So the memory needed is
that of the parts and half as much again, not three times theirs.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.compile import Batches, Table
from differential.kernels.consolidate import consolidate, consolidate_parts, plan_words, unpack_words
from differential.kernels.memory import address_of
from differential.kernels.words import UNFIT, pack_part
from differential.trace.columns import Columns, Rows

MANY = 1 << 20
"""From so many rows on the parts are packed one by one."""

_AS_THEY_ARE: Table = np.empty((0, 0), np.int64)


def consolidated(parts: list[Rows]) -> Rows:
    """Return the rows of all parts, consolidated. The list is emptied."""
    if sum([len(part[0]) for part in parts]) >= MANY:
        together = _piecemeal(parts)
        if together is not None:
            return together
    if len(parts) == 1:
        return consolidate(*parts.pop())
    together = consolidate_parts(table_of_parts(parts), _AS_THEY_ARE)
    parts.clear()
    return together


def _piecemeal(parts: list[Rows]) -> Rows | None:
    """Return the same, and free each part once it is packed. Return None where rows do not fit, or are sorted."""
    # This table owns nothing: each part is freed as soon as it is packed, and no row before `number` is read again.
    table = np.concatenate([address_of(*part) for part in parts]).reshape(-1, 8)
    words, first, second, is_by_row, layout, diffs, times, place = plan_words(table)
    if words == UNFIT:
        return None
    start = base = 0
    for number in range(len(table)):
        part = parts[0]
        pack_part(table[number:], 0, start, first, second, place[base:], is_by_row, layout)
        start += len(part[0])
        base += len(part[4])
        parts.pop(0)
    return unpack_words(first, second, layout, is_by_row, diffs, times)


def table_of_parts(parts: list[Rows]) -> Batches:
    """Return the parts as kernels take a table of them. It keeps the parts alive."""
    return tuple([Columns.of(part).head for part in parts])
