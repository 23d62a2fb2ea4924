"""The table of strings returns the bytes of strings of any lengths, in time and memory proportional to them."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, strategies as st

import differential.data.strings as strings_module
from differential.data.strings import StringTable, packed


def column_of(contents: list[bytes]) -> np.ndarray:  # type: ignore[type-arg]
    column = np.empty(len(contents), np.object_)
    column[:] = contents
    return column


@given(st.lists(st.tuples(st.binary(max_size=3), st.sampled_from([0, 1, 30, 400, 5000])), max_size=20), st.data())
def test_bytes_of_any_lengths_come_back(parts: list[tuple[bytes, int]], data: st.DataObject) -> None:
    contents = list({part * times + part: None for part, times in parts})
    table = StringTable()
    if contents:
        table.add(packed(column_of(contents)), np.arange(len(contents)))
    places = data.draw(st.lists(st.integers(0, len(contents) - 1), max_size=40)) if contents else []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strings_module, "_MOST_PADDED", data.draw(st.sampled_from([0, 10, 1 << 14])))
        assert table.contents(np.array(places, np.int64)) == [contents[place] for place in places]


def test_one_long_string_among_many_short_ones_costs_its_length_once() -> None:
    contents = [b"%d" % number for number in range(2_000)] + [b"x" * 1_000_000]
    table = StringTable()
    numbers, _ = table.add(packed(column_of(contents)), np.arange(len(contents)))
    tracemalloc.start()
    try:
        assert table.contents(numbers) == contents
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()
