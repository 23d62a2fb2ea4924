"""The contents as of any time are the sum of the updates at or before it."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from differential.trace import cursor
from differential.trace.batch import Batch
from differential.trace.cursor import accumulate, lookup
from differential.trace.description import Description
from tests.oracle.trace import as_of
from tests.strategies_batches import EXTREMES, rows_of, updates
from tests.thorough import examples
from timely.progress.antichain import Antichain

SOUGHT = np.array([2, 0, 9, -1, 2, 1])
"""Some keys, in no order, one of them twice."""


@pytest.mark.parametrize("many", [2, 1024])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_the_contents_at_every_time_are_the_sums_of_the_updates(
    depth: int, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cursor, "MANY", many)
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
            for place, key in enumerate(SOUGHT):  # one key alone
                found = zip(*(column.tolist() for column in lookup(batches, key[None], time)), strict=True)
                assert list(found) == [(0, *row[1:]) for row in counts if row[0] == place]

    check()


@pytest.mark.parametrize("short", [1, 2, 16])
@pytest.mark.parametrize("depth", [1, 2])
def test_pairs_are_found_as_often_as_they_occur(depth: int, short: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cursor, "SHORT", short)
    monkeypatch.setattr(cursor, "MANY", 4 * short)
    origin = Antichain([(0,) * depth])
    items = st.one_of(st.integers(-3, 3), st.sampled_from(EXTREMES))

    @settings(max_examples=examples(100), deadline=None)
    @given(st.lists(updates(depth), max_size=4), st.lists(st.tuples(items, items), min_size=1, max_size=20))
    def check(chunks: list[Any], others: list[tuple[int, int]]) -> None:
        batches = [Batch.build(*columns, Description(origin, Antichain(), origin)) for columns in chunks]
        rows = [row for columns in chunks for row in rows_of(columns)]
        sought = [*others, *((key, val) for key, val, _, _ in rows)]
        keys, vals = (np.array(column, np.int64) for column in zip(*sought))
        for time in itertools.product(range(4), repeat=depth):
            counts = {(key, val): count for key, val, count in as_of(rows, time)}
            found = zip(*(column.tolist() for column in lookup(batches, keys, time, vals)), strict=True)
            assert list(found) == [
                (place, pair[1], counts[pair]) for place, pair in enumerate(sought) if pair in counts
            ]
            for place, pair in enumerate(sought):  # one pair alone
                columns = lookup(batches, keys[place : place + 1], time, vals[place : place + 1])
                alone = [(0, pair[1], counts[pair])] if pair in counts else []
                assert list(zip(*(column.tolist() for column in columns), strict=True)) == alone

    check()
