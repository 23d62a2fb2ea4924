"""How many rows have a key, against counting them; and so seeking in a column, from its beginning and to its end."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, strategies as st

from differential.kernels.compile import NOTHING, Ints
from differential.kernels.seek import occurrences
from differential.trace.batch import Batch, table_of
from differential.trace.description import Description
from tests.strategies_batches import EXTREMES
from timely.progress.antichain import Antichain

LEAST = Antichain([(0,)])


@given(st.lists(st.lists(st.integers(0, 30) | st.sampled_from(EXTREMES), min_size=1, max_size=60), max_size=3))
def test_the_rows_of_all_batches_are_counted(columns: list[list[int]]) -> None:
    sought = [*range(-1, 32), *EXTREMES]
    batches = [_batch(column) for column in columns]
    held = Counter(key for column in columns for key in column)
    assert occurrences(np.array(sought), table_of(batches)).tolist() == [held[key] for key in sought]


def test_a_key_is_found_however_far_it_is() -> None:
    keys = np.repeat(np.arange(500) * 2, 3)
    sought = np.arange(-1, 1001)
    expected = [3 * (key % 2 == 0 and 0 <= key < 1000) for key in sought.tolist()]
    assert occurrences(sought, table_of([_batch(keys.tolist())])).tolist() == expected


@pytest.mark.parametrize(
    "keys",
    [
        np.arange(4000) ** 3,
        np.concatenate([[-(1 << 63)], np.arange(4000), [(1 << 63) - 1]]),
        np.concatenate([np.arange(2000), np.full(2000, 1 << 40), (1 << 41) + np.arange(2000)]),
        np.sort(1 << np.arange(4000) % 62),
        np.zeros(4000, np.int64),
    ],
    ids=["cubes", "extremes", "two clusters and a run", "powers", "one key"],
)
def test_a_key_is_found_however_unevenly_keys_are_spread(keys: Ints) -> None:
    sought = np.unique(np.concatenate([keys, keys[1:] - 1, keys[:-1] + 1, EXTREMES]))
    expected = np.searchsorted(keys, sought, "right") - np.searchsorted(keys, sought, "left")
    assert occurrences(sought, table_of([_batch(keys.tolist())])).tolist() == expected.tolist()


def _batch(column: list[int]) -> Batch:
    """Return a batch with as many rows of a key as the column has of it."""
    keys, vals = np.array(column, np.int64), np.arange(len(column))
    return Batch.build(keys, vals, NOTHING, NOTHING, np.array([[0]]), Description(LEAST, Antichain(), LEAST))
