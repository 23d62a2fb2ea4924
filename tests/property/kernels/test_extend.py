"""The values that several relations all have for a prefix, compared with a scan of their rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from differential.kernels.extend import DONE, extend
from tests.oracle.layers import Ints, Layers, Update, consolidated
from tests.thorough import examples

LARGEST = 2**63 - 1

Relation = list[list[Update]]
Question = tuple[list[list[int]], list[int], list[bool]]
"""The keys of each prefix, their bounds (one for all, or one each), and which relations are excluded at these."""


def extending(relations: list[Relation], question: Question, limit: int) -> Iterator[tuple[Ints, Ints, Ints, int]]:
    """Yield the result of each call."""
    prefixes, bounds, is_excluded = question
    layers = [Layers(relation, 1) for relation in relations]
    firsts = np.cumsum([0, *(len(relation) for relation in relations)])
    past = np.concatenate([each.table for each in layers])
    keys = np.array(prefixes, np.int64).T.copy()
    position = 0
    while position != DONE:
        result = extend(keys, np.array(bounds), np.array(is_excluded, np.int64), firsts, past, position, limit)
        yield result
        position = result[3]


def extended(relations: list[Relation], question: Question, limit: int) -> list[tuple[int, int, int]]:
    """Return (prefix, value, count) of all calls; check the guarantees of each."""
    prefixes = question[0]
    found: list[tuple[int, int, int]] = []
    position = 0
    for rows, vals, occurs, onward in extending(relations, question, limit):
        assert onward == DONE or position < onward < len(prefixes)
        assert limit > 1 or onward in (position + 1, DONE)
        assert limit > 1 or (onward == DONE) == (position + 1 == len(prefixes))
        assert all(position <= row < (len(prefixes) if onward == DONE else onward) for row in rows.tolist())
        found += zip(rows.tolist(), vals.tolist(), occurs.tolist())
        position = onward
    return found


def by_looking(relations: list[Relation], question: Question) -> list[tuple[int, int, int]]:
    """Return the same from the definition, in order of prefix and value."""
    prefixes, bounds, is_excluded = question
    found = []
    for number, keys in enumerate(prefixes):
        bound = bounds[number] if len(bounds) > 1 else bounds[0]
        seen = []
        for relation, key, excluded in zip(relations, keys, is_excluded):
            values: Counter[int] = Counter()
            for held, value, (time,), diff in [row for layer in relation for row in layer]:
                if held == key and time <= bound - excluded:
                    values[value] += diff
            seen.append(values)
        for value in sorted(seen[0]):
            if occurs := math.prod(values[value] for values in seen):
                found.append((number, value, occurs))
    return found


@st.composite
def relations(draw: st.DrawFn, keys: st.SearchStrategy[int]) -> Relation:
    """Layers with columns present and absent, few values or many, and values at the ends of int64."""
    vals = draw(
        st.sampled_from([st.just(0), st.integers(0, 3), st.integers(0, 40), st.sampled_from([-(2**63), 0, LARGEST])])
    )
    diffs = st.just(1) if draw(st.booleans()) else st.sampled_from([-2, -1, 1, 3])
    times = st.tuples(st.integers(0, draw(st.sampled_from([0, 3]))))
    rows = st.lists(st.tuples(keys, vals, times, diffs), max_size=draw(st.sampled_from([3, 40])))
    return [consolidated(layer) for layer in draw(st.lists(rows, min_size=1, max_size=3))]


@given(st.data())
@settings(max_examples=examples(120), deadline=None)
def test_a_prefix_has_the_values_that_all_relations_have(data: st.DataObject) -> None:
    keys = st.sampled_from([-(2**63), 0, 1, 2, LARGEST])
    number = data.draw(st.integers(2, 4))
    held = data.draw(st.lists(relations(keys), min_size=number, max_size=number))
    prefixes = data.draw(st.lists(st.lists(keys, min_size=number, max_size=number), min_size=1, max_size=8))
    every = data.draw(st.booleans())
    bounds = data.draw(st.lists(st.integers(-1, 4), min_size=len(prefixes), max_size=len(prefixes)))
    is_excluded = data.draw(st.lists(st.booleans(), min_size=number, max_size=number))
    question = prefixes, bounds if every else bounds[:1], is_excluded
    limit = data.draw(st.sampled_from([1, 5, 1000]))
    assert extended(held, question, limit) == by_looking(held, question)


@pytest.mark.parametrize("sizes", [(2000, 1500), (3000, 20), (20, 3000), (700, 40, 900)])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_lists_that_are_long_or_of_very_different_sizes_are_intersected(sizes: tuple[int, ...], layers: int) -> None:
    random = np.random.default_rng(len(sizes) + layers)
    held = []
    for size in sizes:
        rows = [(int(random.integers(0, 3)), int(random.integers(0, 4000)), (0,), 1) for _ in range(3 * size)]
        held.append([consolidated(rows[start::layers]) for start in range(layers)])
    prefixes = [random.integers(0, 3, len(sizes)).tolist() for _ in range(12)]
    question = prefixes, [0], [False] * len(sizes)
    assert extended(held, question, 1 << 19) == by_looking(held, question)


def test_each_of_two_prefixes_has_its_own_bound() -> None:
    held: list[Relation] = [[[(1, 5, (0,), 1), (1, 6, (2,), 1)]], [[(1, 5, (0,), 1), (1, 6, (1,), 1)]]]
    question: Question = [[1, 1], [1, 1]], [0, 2], [False, False]
    assert extended(held, question, 100) == [(0, 5, 1), (1, 5, 1), (1, 6, 1)]


def test_a_key_is_found_after_a_missing_one() -> None:
    held: list[Relation] = [[[(0, 5, (0,), 1), (2, 5, (0,), 1)]]] * 2
    question: Question = [[1, 1], [0, 0], [3, 3], [2, 2]], [0], [False, False]
    assert extended(held, question, 100) == [(1, 5, 1), (3, 5, 1)]


@pytest.mark.parametrize(
    "held",
    [
        pytest.param([[[0]], [[0, 5]]], id="the proposer's"),
        pytest.param([[[0, 5]], [[0]]], id="the other's"),
        pytest.param([[[1], [0]], [[0, 1, 2]]], id="one of two layers'"),
    ],
)
def test_an_absent_column_of_values_reads_as_zeros(held: list[list[list[int]]]) -> None:
    relations: list[Relation] = [[[(1, val, (0,), 1) for val in layer] for layer in each] for each in held]
    question: Question = [[1, 1]], [0], [False, False]
    assert extended(relations, question, 100) == by_looking(relations, question)


def test_layers_without_the_key_hide_none_that_have_it() -> None:
    held: list[Relation] = [[[(1, 5, (0,), 1)], [(2, 5, (0,), 1)]]] * 2
    question: Question = [[1, 1], [2, 2]], [0], [False, False]
    assert extended(held, question, 100) == [(0, 5, 1), (1, 5, 1)]


def test_the_cost_of_a_prefix_is_that_of_the_relation_with_the_fewest_rows() -> None:
    many: list[Update] = [(key, val, (0,), 1) for key in range(20) for val in range(50)]
    few: list[Update] = [(key, 7, (0,), 1) for key in range(0, 20, 2)]
    question: Question = [[key, key] for key in range(20)], [0], [False, False]
    for held in ([[many], [few]], [[few], [many]]):
        ends = [onward for *_, onward in extending(held, question, 15)]
        assert ends == [10, DONE]  # an even key costs two, the prefix and a row, an odd one the prefix
