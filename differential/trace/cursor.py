"""Reading out: the contents of a collection as of a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from differential.kernels.compile import NOTHING, Ints
from differential.kernels.consolidate import consolidate
from differential.trace.batch import Batch
from differential.trace.batcher import concatenate
from timely.order import Time


def accumulate(batches: Sequence[Batch], time: Time) -> tuple[Ints, Ints, Ints]:
    """Return the keys, values and counts of the collection made up by `batches` as of `time`, sorted, none absent.

    It is the truth when `time` is in advance of the `since` of the batches and not in advance of their upper.
    """
    parts = []
    for batch in batches:
        past = np.logical_and.reduce(batch.times <= np.array(time, np.int64), axis=1)
        if not past.any():
            continue
        if len(past) == 1:
            rows: slice | Ints = slice(None)
        else:
            rows = np.flatnonzero(past[batch.time_index])
        vals, diffs = (column[rows] if len(column) else NOTHING for column in (batch.vals, batch.diffs))
        parts.append((batch.keys[rows], vals, NOTHING, diffs, np.zeros((1, 1), np.int64)))
    if not parts:
        return NOTHING, NOTHING, NOTHING
    keys, vals, _, diffs, _ = consolidate(*concatenate(parts))
    vals = vals if len(vals) else np.zeros(len(keys), np.int64)
    return keys, vals, diffs if len(diffs) else np.ones(len(keys), np.int64)
