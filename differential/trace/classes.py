"""Classes of times: those that readers no longer distinguish.

Two times are in one class if the readers' logical frontier gives them the same representative
(`differential.trace.description`). The *majority* of a layer are, of each class, the rows at the time that has the most
rows; all others are its *minority*. A layer is worth compacting when the minority is large, for two reasons.

What is held. Let every layer but the oldest be a quarter of the one before it, or less, and the minority of each be
less than an eighth of its rows. Then at most four times as many rows are held as readers distinguish. Take the majority
of the oldest layer as the majority of the trace, and everything else, in newer layers too, as the minority. Of the j
rows that agree in key, value and class at most one is in the majority, so at most 2 (j - 1) vanish when they are
summed: at most two for each row of the minority. With O rows in the oldest layer the minority has at most O/3 rows in
newer layers and O/8 in the oldest, so of at most 4/3 O rows at least O - O/3 - 2 O/8 = 5/12 O are distinct.

What it costs. A compaction that waits until the minority is an eighth moves at most eight rows for each row of the
minority, whose time has at least twice as many rows afterwards, apart from those that vanish; and that happens to a row
logarithmically often. A row that vanishes makes up for it once: where s of r rows are left at a time, log2(r / s) for
each of the s is at most 1.45 (r - s).
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
        return 0
    most = np.zeros(len(distinct), np.int64)
    np.maximum.at(most, place, layer.rows_at)
    return len(layer) - int(most.sum())
