"""Reading out: the contents of a collection as of a time.

The contents at a time are the sums of the diffs of all updates at or before it, so all rows at such times are put
together, their times forgotten, and consolidated. That costs a sort of these rows; rows at later times cost a look at
their time, and batches wholly later only one at their tables of times.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from differential.kernels.compile import NOTHING, Ints
from differential.trace.batch import Batch
from differential.trace.batcher import consolidated
from timely.order import Time


def accumulate(batches: Sequence[Batch], time: Time) -> tuple[Ints, Ints, Ints]:
    """Return the keys, values and counts of the collection made up by `batches` as of `time`, sorted, none absent.

    `time` must be in advance of the `since` of every batch. The contents are final when it is not in advance of the
    upper of the last; before, they are what is known so far. The columns are the caller's own.
    """
    parts = []
    for batch in batches:
        assert batch.since.less_equal(time), (
            f"the contents as of {time} cannot be told any more: the trace is compacted up to {batch.since}; "
            "a reader holds compaction back by its logical frontier"
        )
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
    keys, vals, _, diffs, _ = consolidated(parts)
    vals = vals if len(vals) else np.zeros(len(keys), np.int64)
    return keys, vals, diffs if len(diffs) else np.ones(len(keys), np.int64)
