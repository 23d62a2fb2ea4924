"""Texts receive the numbers that a dictionary gives them, in the order in which they appear."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from differential.jobs.input import distinct
from differential.jobs.input.distinct import Distinct

BYTES = st.binary(max_size=3).map(lambda text: text.decode("latin-1"))
LONG = st.builds(
    lambda start, end, length: start + "x" * length + end, BYTES, BYTES, st.sampled_from([0, 5, 9, 14, 40])
)
TEXT = st.one_of(BYTES, LONG, st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
COLUMNS = st.lists(st.lists(st.lists(TEXT, max_size=30), max_size=3), max_size=4)


def numbered(columns: list[list[list[str]]], skip: int = 0) -> None:
    """Compare the numbers of columns with a dictionary's. They are in chunks, whose first rows are cut off."""
    found, expected = Distinct(), dict[str, int]()
    for chunks in columns:
        column = pa.chunked_array([pa.array(rows, pa.string()).slice(skip) for rows in chunks], pa.string())
        numbers = [expected.setdefault(text, len(expected)) for rows in chunks for text in rows[skip:]]
        assert found.number(column).tolist() == numbers
    assert found.names().to_pylist() == list(expected)


@settings(deadline=None)
@given(COLUMNS, st.integers(0, 2))
def test_numbers_are_those_of_a_dictionary(columns: list[list[list[str]]], skip: int) -> None:
    numbered(columns, skip)


def test_a_text_and_the_same_one_with_zeros_after_it_differ() -> None:
    texts = ["a" * length + "\0" * zeros for length in (0, 7, 8, 15, 16, 17, 24) for zeros in range(3)]
    numbered([[texts, texts[::-1]]])


def test_a_table_grows_with_the_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distinct, "AT_ONCE", 100)
    texts = [f"{'node' * (number % 9)}{number % 4000}" for number in range(9000)]
    numbered([[texts], [texts[500:900], texts[::7]]])


def test_texts_with_the_same_hash_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    # The hash of up to 16 bytes mixes both words without loss only if these are the same up to a known multiple.
    factor = 0x9E3779B97F4A7C15
    low, high = int.from_bytes(b"abcdefgh", "little"), int.from_bytes(b"ijklmnop", "little")
    found = []
    for more in range(1, 200_000):
        other = low ^ ((high + 16) * factor ^ (high + more + 16) * factor) & 0xFFFFFFFFFFFFFFFF
        text = other.to_bytes(8, "little") + (high + more).to_bytes(8, "little")
        if text.isascii():
            found.append(text.decode())
    assert len(found) > 3
    numbered([[["abcdefghijklmnop", *found, *found]]])
