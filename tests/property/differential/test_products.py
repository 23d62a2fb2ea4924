"""Products of numbers of occurrences, against Python's integers, for columns of every layout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from differential.data.overflow import multiplied
from differential.data.updates import Updates
from timely.errors import DataError

LEAST, LARGEST = -(1 << 63), (1 << 63) - 1
ends = st.sampled_from([LEAST, LARGEST, 1 << 62, -(1 << 62), (1 << 32) - 1, 1 << 32, 3037000499, 3037000500])
numbers = st.one_of(st.integers(LEAST, LARGEST), st.integers(-(1 << 33), 1 << 33), st.integers(-2, 2), ends)


def read_only(column: Any) -> Any:
    column.setflags(write=False)
    return column


LAYOUTS: list[Callable[[Any], Any]] = [lambda column: column, read_only, lambda column: np.repeat(column, 2)[::2]]


@given(st.lists(st.tuples(numbers, numbers), max_size=4), st.sampled_from(LAYOUTS))
def test_products_are_exact_or_refused_by_the_first_that_does_not_fit(
    pairs: list[tuple[int, int]], layout: Callable[[Any], Any]
) -> None:
    table = np.array(pairs, np.int64).reshape(-1, 2)
    diffs, times = layout(table[:, 0].copy()), layout(table[:, 1].copy())
    exact = [one * other for one, other in pairs]
    too_large = [row for row, product in enumerate(exact) if not LEAST <= product <= LARGEST]
    rows = np.arange(len(pairs))
    updates = Updates((rows,), rows.reshape(-1, 1), rows, diffs)
    if too_large:
        with pytest.raises(DataError, match=f"how often {too_large[0]} occurs") as caught:
            multiplied(updates, times)
        assert caught.value.time == (too_large[0],)
    else:
        assert multiplied(updates, times).tolist() == exact
