"""A receiver examines the times of a batch in the same way, however many there are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from differential.data.updates import FEW_TIMES, Updates
from timely.order import LIMIT, less_equal

numbers = st.integers(0, 4)
tables = st.integers(1, 3).flatmap(
    lambda width: st.lists(st.lists(numbers, min_size=width, max_size=width), min_size=1, max_size=2 * FEW_TIMES)
)


def batch(times: list[list[int]], rows: list[int]) -> Updates:
    """Return a batch with a row at each of these places of a table of times."""
    return Updates((np.arange(len(rows)),), np.array(times), np.array(rows, np.int64))


@settings(max_examples=60, deadline=None)
@given(tables, st.data())
def test_a_batch_is_in_advance_of_a_time_if_each_of_its_rows_is(times: list[list[int]], data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(0, len(times) - 1), min_size=1, max_size=4))
    time = tuple(data.draw(st.lists(st.integers(0, 3), min_size=len(times[0]), max_size=len(times[0]))))
    assert batch(times, rows).is_in_advance_of(time) == all(less_equal(time, tuple(times[row])) for row in rows)
    assert not batch(times, rows).is_in_advance_of((*time, 0))


@pytest.mark.parametrize("count", [1, FEW_TIMES, 2 * FEW_TIMES])
@pytest.mark.parametrize("coordinate", [-1, 0, LIMIT, LIMIT + 1])
@pytest.mark.parametrize("at_end", [False, True])
def test_a_batch_with_a_time_that_no_scope_has_is_refused(count: int, coordinate: int, at_end: bool) -> None:
    times = [[5, 5] for _ in range(count)]
    times[-1 if at_end else 0][at_end] = coordinate
    meta, buffers = batch(times, list(range(count))).to_buffers()
    views = [memoryview(buffer).cast("B") for buffer in buffers]
    if 0 <= coordinate <= LIMIT:
        assert Updates.from_buffers(meta, views).times.tolist() == times
    else:
        with pytest.raises(ValueError, match=r"a time that no scope has"):
            Updates.from_buffers(meta, views)
