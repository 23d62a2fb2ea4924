"""Sums and products of two words are those of Python's integers."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from differential.kernels.compile import Ints, kernel
from differential.kernels.wide import carry, fits, product_high

edges = [sign * (1 << bits) + more for bits in (0, 31, 32, 62) for sign in (1, -1) for more in (-1, 0, 1)]
words = st.one_of(
    st.sampled_from([*edges, -(1 << 63), (1 << 63) - 1]),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.integers(-100, 100),
)


@kernel
def total_of(items: Ints) -> tuple[int, int, int]:
    low, high = 0, 0
    for item in items:
        low += item
        high += carry(low, item)
    return low, high, int(fits(low, high))


@kernel
def product_of(items: Ints) -> tuple[int, int, int]:
    low, high = items[0] * items[1], product_high(items[0], items[1])
    return low, high, int(fits(low, high))


def of_two_words(low: int, high: int) -> int:
    return (int(high) << 64) + (int(low) & ((1 << 64) - 1))


def is_a_word(number: int) -> bool:
    return -(1 << 63) <= number < 1 << 63


@given(st.lists(words, max_size=20))
def test_a_sum_is_exact_in_two_words(items: list[int]) -> None:
    low, high, is_one = total_of(np.array(items, np.int64))
    assert of_two_words(low, high) == sum(items)
    assert is_one == is_a_word(sum(items))


@given(words, words)
def test_a_product_is_exact_in_two_words(one: int, other: int) -> None:
    low, high, is_one = product_of(np.array([one, other], np.int64))
    assert of_two_words(low, high) == one * other
    assert is_one == is_a_word(one * other)
