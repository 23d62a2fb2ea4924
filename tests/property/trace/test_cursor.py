"""The contents as of any time are the sum of the updates at or before it."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from differential.trace.batch import Batch
from differential.trace.cursor import accumulate, lookup
from differential.trace.description import Description
from tests.oracle.trace import as_of
from tests.strategies_batches import rows_of, updates
from tests.thorough import examples
from timely.progress.antichain import Antichain

SOUGHT = np.array([2, 0, 9, -1, 2, 1])
"""Some keys, in no order, one of them twice."""


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_the_contents_at_every_time_are_the_sums_of_the_updates(depth: int) -> None:
    origin = Antichain([(0,) * depth])

    @settings(max_examples=examples(100), deadline=None)
    @given(st.lists(updates(depth), max_size=4))
    def check(chunks: list[Any]) -> None:
        batches = [Batch.build(*columns, Description(origin, Antichain(), origin)) for columns in chunks]
        rows = [row for columns in chunks for row in rows_of(columns)]
        for time in itertools.product(range(4), repeat=depth):
            keys, vals, diffs = accumulate(batches, time)
            expected = as_of(rows, time)
            assert list(zip(keys.tolist(), vals.tolist(), diffs.tolist(), strict=True)) == expected
            found = zip(*(column.tolist() for column in lookup(batches, SOUGHT, time)), strict=True)
            counts = [(place, *row[1:]) for place, key in enumerate(SOUGHT) for row in expected if row[0] == key]
            assert list(found) == counts

    check()
