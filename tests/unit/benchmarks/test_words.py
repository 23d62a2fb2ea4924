"""The words of a text are those that Python finds."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, strategies as st

from benchmarks.words import count_words

WORDS = st.lists(st.text("abcé\0 \n\t", max_size=30) | st.sampled_from(["twelve-bytes", "x", "exactly8"]), max_size=20)


@given(WORDS)
def test_words_are_counted_as_by_hand(parts: list[str]) -> None:
    data = " ".join(parts).encode()
    words, counts = count_words(data)
    expected = Counter(data.replace(b"\0", b" ").split())
    assert dict(zip(words.tolist(), counts.tolist(), strict=True)) == expected
    assert len(words) == len(expected)
