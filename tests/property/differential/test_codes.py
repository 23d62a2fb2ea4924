"""Codes: equal exactly if the rows are, in the order of the rows if the encoder claims it, and decoded to the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from differential.data.codes import INTERNED, MOST_PACKED, ColumnKind, Encoder, fields
from differential.data.interning import ABSENT, Interner

NEAR = [
    0,
    1,
    -1,
    *(sign * (1 << bits) + more for bits in (9, 10, 14, 20, 30, 31, 62) for sign in (1, -1) for more in (-1, 0)),
]


def _codes(rows: list[tuple[int, ...]]) -> tuple[Encoder, list[int]]:
    encoder = Encoder(Interner(), "key")
    columns = tuple(np.array(column, np.int64) for column in zip(*rows))
    codes = encoder.encode(columns)
    decoded = encoder.decode(codes, len(rows))
    assert list(zip(*(column.tolist() for column in decoded))) == rows
    return encoder, codes.tolist()


@settings(deadline=None)
@given(st.data())
def test_codes_are_equal_as_rows_are_and_ordered_if_they_claim_to_be(data: Any) -> None:
    count = data.draw(st.integers(1, MOST_PACKED + 2))
    item = st.sampled_from(NEAR) if data.draw(st.booleans()) else st.integers(-4, 500)
    rows = data.draw(st.lists(st.tuples(*[item] * count), min_size=1, max_size=20))
    encoder, codes = _codes(rows)
    for row, code in zip(rows, codes):
        for other, another in zip(rows, codes):
            assert (row == other) == (code == another)
            if encoder.ordered:
                assert (row < other) == (code < another)


@pytest.mark.parametrize("count", range(2, MOST_PACKED + 1))
def test_a_word_holds_the_least_and_the_greatest_item_of_each_column(count: int) -> None:
    layout = fields(count)
    rows = [tuple(one.least for one in layout), tuple(one.most for one in layout)]
    encoder, codes = _codes(rows)
    assert encoder.ordered
    assert codes[0] < codes[1] < INTERNED
    outside = [
        (*row[:place], row[place] + step, *row[place + 1 :])
        for row, step in zip(rows, (-1, 1))
        for place in range(count)
    ]
    encoder, codes = _codes(outside)
    assert not encoder.ordered
    assert min(codes) >= INTERNED


def test_text_among_several_columns_is_packed_without_order() -> None:
    encoder = Encoder(Interner(), "value")
    columns = (np.array(["b", "a"]), np.array([1, 2]), np.array([True, False]))
    codes = encoder.encode(columns)
    assert encoder.kinds == (ColumnKind.TEXT, ColumnKind.INT, ColumnKind.BOOL)
    assert not encoder.ordered
    assert max(codes.tolist()) < 0
    assert [column.tolist() for column in encoder.decode(codes, 2)] == [["b", "a"], [1, 2], [True, False]]


ROWS = st.integers(1, 4).flatmap(lambda width: st.lists(st.tuples(*[st.sampled_from(NEAR)] * width), min_size=1))


@settings(deadline=None)
@given(batches=st.lists(st.tuples(ROWS, st.booleans()), max_size=6))
def test_a_table_of_tuples_is_a_dictionary(batches: list[tuple[list[tuple[int, ...]], bool]]) -> None:
    interner, known = Interner(), dict[Any, int]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("differential.data.interning._AT_ONCE", 3)
        for rows, has_string in batches:
            columns, strings = [np.array(column) for column in zip(*rows)], (0,) if has_string else ()
            found = interner.find_tuples(columns, strings).tolist()
            assert found == [known.get((row, strings), ABSENT) for row in rows]
            numbers = interner.encode_tuples(columns, strings)
            for row, number in zip(rows, numbers.tolist()):
                assert known.setdefault((row, strings), number) == number
            decoded = interner.decode_tuples(numbers, len(columns))
            assert list(zip(*(column.tolist() for column in decoded))) == rows
    assert len(set(known.values())) == len(known) == len(interner) - 1
