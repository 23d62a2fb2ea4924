"""What a spine holds when its readers do not look."""

from __future__ import annotations

import numpy as np

from differential.trace.batch import Batch
from differential.trace.handle import TraceHandle
from differential.trace.spine import Spine
from timely.progress.antichain import Antichain

NOTHING = np.empty(0, np.int64)


def test_epochs_that_change_nothing_leave_nothing_behind_though_no_reader_looks() -> None:
    spine = Spine(1)
    reader = TraceHandle(spine)
    least = Antichain([(0,)])
    first = Batch.build(np.arange(3), NOTHING, NOTHING, NOTHING, np.array([[0]]), least, Antichain([(1,)]), least)
    spine.insert(first)
    for epoch in range(1, 100):
        spine.insert(Batch.empty(Antichain([(epoch,)]), Antichain([(epoch + 1,)]), least, 1))
        assert spine.statistics().layers <= 2
        assert reader.batches_through(Antichain([(1,)])) == (first,)
        assert reader.batches_through(Antichain([(epoch,)]))[:1] == (first,)
        spine.validate()
