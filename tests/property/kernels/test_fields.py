"""Small integers in words: each word is the sum that it stands for, and its integers come back."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings, strategies as st

from differential.data.codes import MOST_PACKED, BitField, fields
from differential.kernels.fields import append_field, field

ANY = st.integers(-(1 << 40), 1 << 40)
ABOVE = 64
"""The bits of the first field, which goes on to the end of the word."""


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(-100, 100), ANY), max_size=20), st.integers(0, 20), ANY, ANY, ANY)
def test_appending_shifts_a_word_and_counts_the_items_out_of_bounds(
    rows: list[tuple[int, int]], bits: int, offset: int, least: int, most: int
) -> None:
    words, column = (np.array([row[place] for row in rows], np.int64) for place in (0, 1))
    outside = append_field(words, column, bits, offset, least, most)
    assert words.tolist() == [word * 2**bits + item + offset for word, item in rows]
    assert outside == sum(not least <= item <= most for _, item in rows)


@settings(deadline=None)
@given(
    st.lists(st.one_of(ANY, st.sampled_from([-(1 << 63), (1 << 63) - 1])), max_size=20),
    st.integers(0, 63),
    st.integers(1, 31) | st.just(ABOVE),
    ANY,
)
def test_a_field_is_bits_of_a_word_and_the_first_one_has_its_sign(
    items: list[int], shift: int, bits: int, offset: int
) -> None:
    found = field(np.array(items, np.int64) >> 1, shift, bits, offset)
    above = [(item >> 1) >> shift for item in items]
    assert found.tolist() == [(item if bits == ABOVE else item % 2**bits) - offset for item in above]


@settings(deadline=None)
@given(st.data(), st.integers(2, MOST_PACKED))
def test_what_is_packed_in_bounds_comes_back_in_the_order_of_the_rows(data: st.DataObject, count: int) -> None:
    layout = fields(count)

    def item_of(place: BitField) -> st.SearchStrategy[int]:
        return st.sampled_from([place.least, place.most, 0]) | st.integers(place.least, place.most)

    rows = data.draw(st.lists(st.tuples(*map(item_of, layout)), max_size=20))
    words = np.zeros(len(rows), np.int64)
    for place, (bits, offset, least, most) in enumerate(layout):
        column = np.array([row[place] for row in rows], np.int64)
        assert append_field(words, column, bits % ABOVE, offset, least, most) == 0
    shift = 0
    for place, (bits, offset, _, _) in reversed(list(enumerate(layout))):
        assert field(words, shift, bits, offset).tolist() == [row[place] for row in rows]
        shift += bits
    assert np.argsort(words, kind="stable").tolist() == sorted(range(len(rows)), key=rows.__getitem__)
