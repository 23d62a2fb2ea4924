"""A column of text equals its rows."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import example, given, strategies as st

from timely.data.buffers import columns_from_buffers, columns_to_buffers
from timely.data.text import count_words, utf8
from timely.dataflow.routing import LONG, hash_column

TEXT = np.dtypes.StringDType()
CHARACTERS = st.characters(codec="utf-8")
ROWS = st.lists(st.text(CHARACTERS) | st.text("ab\0é", max_size=2 * LONG + 8))
WORDS = st.lists(st.text("abcé\0 \n\t", max_size=30) | st.sampled_from(["twelve-bytes", "x", "exactly8"]), max_size=20)


@given(ROWS)
def test_columns_of_text_are_their_rows_in_utf8(rows: list[str]) -> None:
    lengths, data = utf8(np.array(rows, TEXT))
    assert lengths.tolist() == [len(row.encode()) for row in rows]
    assert data.tobytes() == "".join(rows).encode()


@given(ROWS | st.lists(st.text(st.characters(codec="ascii", exclude_characters="\0"), max_size=9), min_size=1))
@example(["a", "ends in a zero\0"])
def test_columns_of_text_come_back_from_their_buffers(rows: list[str]) -> None:
    dtypes, buffers = columns_to_buffers([np.array(rows, TEXT)])
    (column,) = columns_from_buffers(dtypes, [memoryview(buffer) for buffer in buffers])
    assert column.dtype == TEXT
    assert column.tolist() == rows


@given(ROWS)
def test_a_row_hashes_to_the_same_alone_or_in_company_as_text_or_as_bytes(rows: list[str]) -> None:
    hashes = hash_column(np.array(rows, TEXT)).tolist()
    assert hashes == [int(hash_column(np.array([row], TEXT))[0]) for row in rows]
    encoded = [row.encode() for row in rows]
    assert hashes == hash_column(np.array([*encoded, b""], object)[:-1]).tolist()
    whole = [raw for raw in encoded if not raw.endswith(b"\0")]
    assert hash_column(np.array(whole, "S") if whole else np.empty(0, "S3")).tolist() == [
        hashes[encoded.index(raw)] for raw in whole
    ]
    narrow = [raw for raw in whole if len(raw) <= 5]
    for width in (5, 8):
        assert hash_column(np.array(narrow, f"S{width}")).tolist() == [hashes[encoded.index(raw)] for raw in narrow]


def test_rows_that_differ_by_a_byte_hash_apart() -> None:
    rows = ["", "\0", "\0\0", *("a" * length for length in range(1, 3 * LONG))]
    rows += [row[:-1] + "b" for row in rows if row.startswith("a")]
    assert len(set(hash_column(np.array(rows, TEXT)).tolist())) == len(rows)


def test_text_spreads_evenly_over_workers() -> None:
    hashes = hash_column(np.array([f"w{number}" for number in range(8000)], TEXT))
    assert np.abs(np.bincount((hashes % np.uint64(8)).astype(int)) - 1000).max() < 150


@given(WORDS)
def test_words_are_counted_as_by_hand(parts: list[str]) -> None:
    data = " ".join(parts).encode()
    words, counts = count_words(data)
    expected = Counter(data.replace(b"\0", b" ").split())
    assert dict(zip(words.tolist(), counts.tolist(), strict=True)) == expected
    assert len(words) == len(expected)
