"""A table of strings gives the numbers that a dictionary of Python does, whether or not it fits into the cache."""

from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import given, settings, strategies as st

from differential.data.strings import TEXT, StringTable, packed
from differential.kernels.strings import ABREAST
from tests.thorough import examples

ABSENT = -1


def names(random: Random, rows: int, distinct: int) -> list[str]:
    """Return texts of 1 to 28 bytes, some of which occur several times."""
    return [f"{number}" * (1 + number % 7) for number in (random.randrange(distinct) for _ in range(rows))]


@given(
    st.lists(st.integers(0, 3 * ABREAST + 1), min_size=1, max_size=4),
    st.sampled_from([5, 500, 5000]),
    st.sampled_from([0, 3000]),
    st.randoms(use_true_random=False),
)
@settings(deadline=None, max_examples=examples(200))
def test_numbers_are_those_of_a_dictionary(sizes: list[int], distinct: int, before: int, random: Random) -> None:
    table, numbers, top = StringTable(), dict[str, int](), 0
    for rows in (before, *sizes):
        column = names(random, rows, distinct)
        if not column:
            continue
        strings = packed(np.array(column, TEXT))
        found, missing = table.find(strings, ABSENT)
        assert found.tolist() == [numbers.get(name, ABSENT) for name in column]
        assert missing == found.tolist().count(ABSENT)
        added, used = table.add(strings, np.arange(top, top + rows))
        for name in column:
            numbers.setdefault(name, len(numbers))
        top += used
        assert added.tolist() == [numbers[name] for name in column]
    assert (len(table), top) == (len(numbers), len(numbers))
