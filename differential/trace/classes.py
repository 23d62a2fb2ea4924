"""Classes of times that readers no longer distinguish, and when compacting a layer pays.

Two times are in one *class* if the readers' logical frontier gives them the same representative
(`differential.trace.description`). In each class of a layer, the rows at the time with the most rows belong to the
*majority* of the layer, and the rows at the other times to its *minority*. Compacting pays if the minority is large.

**Memory.** Assume that each layer has at most a quarter of the rows of the layer before it, and that the minority of
each layer is less than an eighth of its rows. Then the trace holds at most four times as many rows as readers
distinguish. Proof: let the oldest layer have O rows, and the newer ones n <= O/3 together. Count all n newer rows as
minority, too. If j rows agree in key, value and class, at most one is in the majority. So at most 2 (j - 1) rows vanish
when they are summed: two for each row of the minority. At least O + n - 2 (n + O/8) >= 5/12 O rows are left, of at most
4/3 O.

**Work.** A compaction that waits until the minority is an eighth moves at most eight rows for each row of the minority.
The time of that row then has at least twice as many rows as before, not counting rows that vanish. So this happens to a
row logarithmically often. Rows that vanish pay for themselves: if s of r rows are left at a time, s log2(r / s) is at
most 1.45 for each of the r - s rows.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.times import advance, intern
from differential.trace.batch import Batch, frontier_table
from timely.lowlevel import Antichain


def classes(layer: Batch, since: Antichain) -> int:
    """Return how many classes the times of a layer are in, for readers with the logical frontier `since`."""
    return len(intern(advance(layer.times, frontier_table(since, layer.depth)))[0])


def minority(layer: Batch, since: Antichain) -> int:
    """Return how many rows of a layer are in its minority, for readers with the logical frontier `since`."""
    distinct, place = intern(advance(layer.times, frontier_table(since, layer.depth)))
    if len(distinct) == layer.time_count:
        return 0  # each time is in a class of its own, and counting rows by time would cost a pass over them
    most = np.zeros(len(distinct), np.int64)
    np.maximum.at(most, place, layer.columns.rows_at)
    return len(layer) - int(most.sum())
