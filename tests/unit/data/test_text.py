"""A column of text equals its rows."""

from __future__ import annotations

import sys
from random import Random

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from timely.data import text as text_module
from timely.data.buffers import columns_from_buffers, columns_to_buffers
from timely.data.text import text_column, utf8
from timely.dataflow.routing import LONG, hash_column

TEXT = np.dtypes.StringDType()
CHARACTERS = st.characters(codec="utf-8")
ROWS = st.lists(st.text(CHARACTERS) | st.text("ab\0é", max_size=2 * LONG + 8))


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


@pytest.mark.parametrize("is_known", [True, False])
@given(st.lists(st.text(st.sampled_from("aé😀\0z"), max_size=20), max_size=12), st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_a_column_of_text_has_the_rows_that_its_bytes_have(is_known: bool, rows: list[str], chance: Random) -> None:
    contents = [row.encode() for row in rows]
    order = list(range(len(rows)))
    chance.shuffle(order)
    at = np.cumsum([0, *(len(contents[place]) for place in order)])
    starts = np.zeros(len(rows), np.int64)
    starts[order] = at[:-1]
    lengths = np.array([len(content) for content in contents], np.int64)
    data = np.frombuffer(b"".join(contents[place] for place in order), np.uint8)
    with pytest.MonkeyPatch.context() as patch:
        if not is_known:
            patch.setattr(text_module, "_inline_flags", lambda: None)
        column = text_column(lengths, data, starts)
        assert column.tolist() == rows
        together = np.frombuffer(b"".join(contents), np.uint8)
        assert text_column(lengths, together).tolist() == rows
    made = np.array(rows, np.dtypes.StringDType())
    assert (column == made).all()
    assert np.sort(column).tolist() == np.sort(made).tolist()
    column[:] = [f"{row} and more than fits into a row" for row in rows]
    assert column.tolist() == [f"{row} and more than fits into a row" for row in rows]


@given(st.lists(st.text(st.sampled_from("aé😀z"), max_size=20) | st.none(), max_size=12), st.sampled_from(["", "\0é"]))
@settings(max_examples=60, deadline=None)
def test_what_stands_for_a_missing_row_does_not_depend_on_its_bytes(rows: list[str | None], stands: str) -> None:
    contents = [b"\xa9\xff" if row is None else row.encode() for row in rows]
    lengths = np.array([len(content) for content in contents], np.int64)
    missing = np.array([row is None for row in rows], bool)
    column = text_column(lengths, np.frombuffer(b"".join(contents), np.uint8), None, missing, stands)
    assert column.tolist() == [stands if row is None else row for row in rows]


def test_this_numpy_keeps_short_texts_in_their_rows() -> None:
    if sys.byteorder == "little":
        assert text_module._inline_flags() is not None, "columns of text are made at a third of the rate"


@pytest.mark.parametrize(
    ("data", "lengths"), [(b"ab\xff", [2, 1]), ("aé".encode(), [2, 1]), ("é😀".encode(), [3, 3]), (b"a\xc3", [1, 1])]
)
def test_bytes_that_are_not_text_are_refused(data: bytes, lengths: list[int]) -> None:
    with pytest.raises(UnicodeDecodeError):
        text_column(np.array(lengths), np.frombuffer(data, np.uint8))
