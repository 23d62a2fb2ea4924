"""Answers of jobs, as worker 0 gathers them."""

from __future__ import annotations

import numpy as np
import pytest

from differential.jobs.gathered import Delta, added_up
from timely.errors import DataError

MOST = (1 << 63) - 1


def test_diffs_are_added_up_exactly_or_refused() -> None:
    def delta(*diffs: int) -> Delta:
        return Delta(0, (np.zeros(len(diffs), np.int64), np.arange(len(diffs)) // 3), np.array(diffs))

    assert added_up(0, [delta(MOST, 1, -1), delta(0, 0, -5)]).diffs.tolist() == [MOST - 5]
    assert added_up(0, [delta(-MOST, -1)]).diffs.tolist() == [-MOST - 1]
    with pytest.raises(DataError, match=r"how often \(0, 1\) occurs does not fit into 64 bits"):
        added_up(0, [delta(1, 2, 3, MOST, 1)])
