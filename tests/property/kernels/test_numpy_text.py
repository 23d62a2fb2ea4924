"""Kernels read NumPy's columns of text as Python does, write them as NumPy does, and put texts one after the other."""

from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import given, settings, strategies as st

from differential.data.strings import TEXT, TEXT_TAG, StringTable, packed
from differential.kernels.numpy_text import as_bytes
from differential.kernels.strings import TAGS
from tests.thorough import examples

CHARACTERS = st.sampled_from(["a", "\0", "é", "€", "\U0001f600", "z"])
LENGTHS = st.one_of(st.integers(0, 20), st.sampled_from([63, 64, 65, 255, 256, 300, 1000]))
"""Around the ends of words, of what NumPy keeps in an item, and of the lengths that it keeps in one byte."""
TEXTS = st.builds(
    lambda length, character, end: (character * length)[: max(length, 1)] + end, LENGTHS, CHARACTERS, CHARACTERS
)
COLUMNS = st.lists(st.one_of(st.just(""), CHARACTERS, TEXTS), max_size=40)


def contents(column: np.ndarray) -> list[bytes]:
    """Return the bytes of the rows as the words of `packed` have them."""
    words, starts, sizes = packed(column)
    assert (sizes % TAGS == TEXT_TAG).all()
    found = []
    for start, size in zip(starts.tolist(), sizes.tolist()):
        length = size // TAGS
        row = words[start : start + (length + 7) // 8].tobytes()
        assert not any(row[length:]), "what follows a text in its last word is not zero"
        found.append(row[:length])
    return found


@given(COLUMNS, st.sampled_from([1, 2, -1, -3]))
@settings(deadline=None, max_examples=examples(300))
def test_texts_are_read_wherever_numpy_keeps_them(texts: list[str], step: int) -> None:
    column = np.array(texts, TEXT)
    assert contents(column[::step]) == [text.encode() for text in texts[::step]]


@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS), min_size=1, max_size=20))
@settings(deadline=None, max_examples=examples(100))
def test_texts_are_read_where_others_have_been(rows: list[tuple[str, str, str]]) -> None:
    column = np.array([before for before, _, _ in rows], TEXT)
    for place in (1, 2):
        for position, row in enumerate(rows):
            column[position] = row[place]
    assert contents(column) == [row[2].encode() for row in rows]
    assert contents(column.copy()) == [row[2].encode() for row in rows]


@given(COLUMNS, st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=examples(200))
def test_texts_of_a_table_are_written_as_numpy_writes_them(texts: list[str], random: Random) -> None:
    if not texts:
        return
    table = StringTable()
    numbers, _ = table.add(packed(np.array(texts, TEXT)), np.arange(len(texts)))
    chosen = [random.randrange(len(texts)) for _ in range(2 * len(texts))]
    column = table.text(numbers[chosen])
    assert column.tolist() == [texts[place] for place in chosen]
    column[0] = "another, longer than what fits into an item"  # the memory is NumPy's own
    assert column.tolist()[1:] == [texts[place] for place in chosen[1:]]
    assert contents(column)[1:] == [texts[place].encode() for place in chosen[1:]]


@given(COLUMNS)
@settings(deadline=None, max_examples=examples(200))
def test_the_bytes_of_texts_follow_each_other(texts: list[str]) -> None:
    expected = "".join(texts).encode()
    assert as_bytes(*packed(np.array(texts, TEXT))).tobytes()[: len(expected)] == expected
