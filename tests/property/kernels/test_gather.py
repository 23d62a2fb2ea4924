"""Looking keys up in all layers of a trace, against lists."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from differential.kernels.gather import gather
from differential.trace.batch import Batch, table_of
from tests.strategies_batches import EXTREMES, batches, rows_of_batches


def _layers(data: Any, depth: int, most: int = 4) -> list[Batch]:
    return [batch for batch in data.draw(st.lists(batches(depth), max_size=most)) if len(batch)]


@settings(deadline=None)
@given(st.data())
def test_all_rows_of_the_keys_are_gathered_layer_by_layer(data: Any) -> None:
    depth = data.draw(st.integers(1, 3))
    layers = _layers(data, depth)
    keys = sorted(data.draw(st.sets(st.one_of(st.integers(-4, 4), st.sampled_from(EXTREMES)), max_size=8)))
    offsets, vals, times, diffs = gather(np.array(keys, np.int64), table_of(layers), depth)
    rows = rows_of_batches(layers)
    for place, key in enumerate(keys):
        span = slice(offsets[place], offsets[place + 1])
        found = list(zip(vals[span].tolist(), map(tuple, times[span].tolist()), diffs[span].tolist()))
        assert found == [(value, time, diff) for own, value, time, diff in rows if own == key]
    assert offsets[-1] == len(vals) == len(times) == len(diffs)
