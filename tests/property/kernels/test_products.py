"""Products and opposites of numbers of occurrences, against Python's integers, which have any number of bits."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings, strategies as st

from differential.kernels.compile import NOTHING
from differential.kernels.products import multiply, opposite

LEAST, LARGEST = -(1 << 63), (1 << 63) - 1
ENDS = st.sampled_from([LEAST, LEAST + 1, LARGEST, 1 << 62, -(1 << 62), 1 << 32, 3037000499, 3037000500])
NUMBERS = st.one_of(st.integers(-2, 2), st.integers(LEAST, LARGEST), ENDS)


@settings(deadline=None)
@given(st.lists(NUMBERS, max_size=8))
def test_opposites_have_the_other_sign_and_the_least_number_has_none(diffs: list[int]) -> None:
    exact = [-diff for diff in diffs]
    found = opposite(np.array(diffs, np.int64), len(diffs))
    assert found.tolist() == (exact if max(exact, default=0) <= LARGEST else [])


@settings(deadline=None)
@given(st.integers(0, 8))
def test_absent_diffs_are_ones(rows: int) -> None:
    assert opposite(NOTHING, rows).tolist() == [-1] * rows


@settings(deadline=None)
@given(st.lists(st.tuples(NUMBERS, NUMBERS), max_size=8))
def test_products_are_exact_up_to_the_first_that_is_too_large(pairs: list[tuple[int, int]]) -> None:
    exact = [one * other for one, other in pairs]
    large = next((row for row, product in enumerate(exact) if not LEAST <= product <= LARGEST), -1)
    columns = np.array(pairs, np.int64).reshape(-1, 2).T.copy()
    products = np.zeros(len(pairs), np.int64)
    assert multiply(columns[0], columns[1], products) == large
    written = len(pairs) if large < 0 else large
    assert products[:written].tolist() == exact[:written]
