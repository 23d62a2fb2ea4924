"""A table of strings numbers and sorts strings as a dictionary and `sorted` of Python do, even beyond the cache."""

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


@given(st.lists(st.integers(0, 60), min_size=1, max_size=8), st.sampled_from([30, 3000]), st.randoms())
@settings(deadline=None, max_examples=examples(100))
def test_removed_strings_are_gone_and_the_others_keep_their_numbers(
    sizes: list[int], distinct: int, random: Random
) -> None:
    table, numbers, top = StringTable(), dict[str, int](), 0
    for rows in sizes:
        column = names(random, rows, distinct)
        if column:
            added, used = table.add(packed(np.array(column, TEXT)), np.arange(top, top + rows))
            numbers |= zip(column, added.tolist())
            top += used
        going = random.sample(sorted(numbers), len(numbers) // 2)
        sought = [numbers.pop(name) for name in going]
        removed = table.remove(np.array([*sought, top, top + 1000], np.int64))
        assert sorted(removed.tolist()) == sorted(sought)
        assert len(table) == len(numbers)
        everything = [*numbers, *going]
        if everything:
            found, _ = table.find(packed(np.array(everything, TEXT)), ABSENT)
            assert found.tolist() == [numbers.get(name, ABSENT) for name in everything]
        kept = random.sample(list(numbers.values()), len(numbers))
        assert table.text(np.array(kept, np.int64)).tolist() == [
            {n: name for name, n in numbers.items()}[n] for n in kept
        ]
        assert table.sorted(np.array(kept, np.int64)).tolist() == [numbers[name] for name in sorted(numbers)]
