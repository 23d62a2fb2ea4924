"""Values are sorted as Python sorts the records that their codes stand for, whatever columns these have."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings, strategies as st

from differential.data.codes import Encoder
from differential.data.interning import Interner
from differential.data.strings import TEXT
from differential.kernels.reduce_rows import SORTED
from differential.kernels.value_order import CODE, PLACE, in_value_order, sort_values
from differential.trace.columns import UpdateColumns
from tests.strategies_batches import rows_of
from tests.thorough import examples

SMALL = st.integers(-2, 2)
LARGE = st.one_of(SMALL, st.sampled_from([-(2**62), -(2**31), 2**31, 2**40, 2**62]))
"""Numbers of which some do not fit into a packed word: their records are interned."""
NAMES = st.one_of(
    st.sampled_from(["", "a", "b", "name 1", "name 10", "name 2", "a long name 1", "a long name 10", "é", "€", "a\0"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
)
KINDS: dict[str, tuple[Any, Any]] = {
    "small numbers": (SMALL, np.int64),
    "large numbers": (LARGE, np.int64),
    "floats": (st.sampled_from([-1e300, -0.5, 0.0, 0.25, 7.0]), np.float64),
    "text": (NAMES, TEXT),
}


class Values:
    """Records of drawn columns, their codes, and the order of these for kernels."""

    def __init__(self, data: Any, most: int) -> None:
        kinds = data.draw(st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=7))
        row = st.tuples(*[KINDS[kind][0] for kind in kinds])
        some = data.draw(st.lists(row, min_size=1, max_size=most // 3))
        self.records = data.draw(st.lists(st.sampled_from(some) | row, min_size=1, max_size=most))
        columns = [
            np.array([record[place] for record in self.records], KINDS[kind][1]) for place, kind in enumerate(kinds)
        ]
        self.encoder = Encoder(Interner(), "value")
        self.codes = self.encoder.encode(tuple(columns))
        self.order = np.array(self.encoder.order())

    def ranks(self) -> list[Any]:
        """Return what Python compares of each record; texts compare as their UTF-8 does."""
        return [tuple(each.encode() if isinstance(each, str) else each for each in row) for row in self.records]


@settings(deadline=None, max_examples=examples(300))
@given(st.data())
def test_values_are_sorted_as_their_records_and_equal_ones_keep_their_order(data: Any) -> None:
    values = Values(data, 90)
    count, room = len(values.codes), len(values.codes) + data.draw(st.integers(0, 3))
    rows = np.full((2 * SORTED, room), -7, np.int64)
    rows[CODE, :count], rows[PLACE, :count] = values.codes, np.arange(count)
    sort_values(values.order.ctypes.data, rows, count)
    ranks = values.ranks()
    expected = sorted(range(count), key=ranks.__getitem__)
    assert rows[PLACE, :count].tolist() == expected
    assert rows[CODE, :count].tolist() == values.codes[expected].tolist()
    assert (rows[[CODE, PLACE], count:] == -7).all()


@settings(deadline=None, max_examples=examples(300))
@given(st.data())
def test_the_rows_of_each_key_are_in_the_order_of_their_values(data: Any) -> None:
    values = Values(data, 30)
    count = len(values.codes)
    keys = np.sort(np.array(data.draw(st.lists(st.integers(0, 3), min_size=count, max_size=count)), np.int64))
    is_plain, is_timed = data.draw(st.booleans()), data.draw(st.booleans())
    index = np.arange(count) % 2 if is_timed else np.empty(0, np.int64)
    diffs = np.empty(0, np.int64) if is_plain else np.arange(1, count + 1)
    times = np.array([[3], [5]]) if is_timed else np.array([[3]])
    head = UpdateColumns.of((keys, values.codes, index, diffs, times)).head
    ranks = values.ranks()
    expected = sorted(range(count), key=lambda row: (keys[row], ranks[row]))
    vals, new_index, new_diffs, is_sorted = in_value_order((head,), values.order.ctypes.data)
    assert is_sorted == (expected == list(range(count)))
    if is_sorted:
        assert (len(vals), len(new_index), len(new_diffs)) == (0, 0, 0)
        return
    before = rows_of((keys, values.codes, index, diffs, times))
    assert rows_of((keys, vals, new_index, new_diffs, times)) == [before[row] for row in expected]
    assert (len(new_index), len(new_diffs)) == (len(index), len(diffs))
