"""Few keys sought in large layers, however the keys of these are spread, against a look at all rows."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings, strategies as st

from differential.kernels.compile import NOTHING, Ints
from differential.kernels.count import record_changes
from differential.kernels.join import DONE, join
from differential.kernels.reduce import reduce
from differential.kernels.reduce_fold import MIN
from differential.kernels.reduce_layers import PENDING_TIME
from differential.kernels.seek import MOST_KEYS
from differential.trace.batch import Batch, table_of
from differential.trace.description import Description
from tests.strategies_batches import EXTREMES
from timely.progress.antichain import Antichain

LEAST = Antichain([(0,)])
SPREADS = [
    np.repeat(np.arange(700) * 3, 4),
    np.arange(3000) ** 3,
    np.concatenate([[EXTREMES[0]], np.arange(2000), [1 << 62]]),
    np.sort(1 << np.arange(3000) % 62),
    np.full(2000, 7),
]
sought = st.lists(st.integers(0, 1 << 62), min_size=1, max_size=MOST_KEYS + 2)


def _batch(keys: Ints, vals: Ints) -> Batch:
    return Batch.build(keys, vals, NOTHING, NOTHING, np.array([[0]]), Description(LEAST, Antichain(), LEAST))


def _few(spread: Ints, numbers: list[int]) -> Ints:
    """Return some keys in order, of which most are in the layer."""
    return np.unique([spread[number % len(spread)] + (number % 5 == 0) for number in numbers])


@settings(max_examples=25)
@given(st.sampled_from(SPREADS), sought)
def test_a_join_finds_all_pairs(spread: Ints, numbers: list[int]) -> None:
    keys, past = _few(spread, numbers), np.arange(len(spread))
    new, layers = (
        table_of([_batch(keys, NOTHING)]),
        table_of([_batch(spread, past), _batch(spread[:1500], past[:1500])]),
    )
    found, _, vals, *_, onward = join(new, 0, 1 << 18, layers)
    expected = [
        (key, val)
        for held in (spread, spread[:1500])
        for key in keys.tolist()
        for val in np.flatnonzero(held == key).tolist()
    ]
    assert onward == DONE
    assert sorted(zip(found.tolist(), vals.tolist())) == sorted(expected)


@settings(max_examples=25)
@given(st.sampled_from(SPREADS), sought)
def test_records_are_counted(spread: Ints, numbers: list[int]) -> None:
    keys = _few(spread, numbers)
    before, after = record_changes(keys, NOTHING, NOTHING, table_of([_batch(spread, NOTHING), _batch(keys, NOTHING)]))
    assert before.tolist() == [np.count_nonzero(spread == key) for key in keys]
    assert (after - before).tolist() == [1] * len(keys)


@settings(max_examples=25)
@given(st.sampled_from(SPREADS), sought)
def test_a_reduction_reads_the_rows_of_its_keys(spread: Ints, numbers: list[int]) -> None:
    keys, vals = _few(spread, numbers), np.arange(len(spread)) + 1
    new = _batch(keys, np.full(len(keys), len(spread) + 1))
    pending = np.empty((0, PENDING_TIME + 1), np.int64)
    input = table_of([_batch(spread, vals), new])
    block, rows, *_, fault = reduce(MIN, 1, table_of([new]), pending, input, table_of([]), ((1,),))
    least = [min(vals[spread == key], default=len(spread) + 1) for key in keys]
    made = block[8 : 8 + 2 * rows].tolist()
    assert not len(fault)
    assert (made[:rows], made[rows:]) == (keys.tolist(), least)
