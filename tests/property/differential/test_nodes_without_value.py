"""Algorithms about graphs treat NaN, nulls and lists as any other node: in their order as keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from differential import Collection, example
from differential.frames import typed
from differential.graphs import (
    colouring,
    core_numbers,
    cyclic_edges,
    independent_set,
    k_core,
    label_propagation,
    strongly_connected_components,
    transitive_closure,
    triangles,
    weakly_connected_components,
)
from tests.thorough import examples

NODES = 6
ALGORITHMS: list[Callable[[Collection], Collection]] = [
    strongly_connected_components,
    cyclic_edges,
    weakly_connected_components,
    transitive_closure,
    triangles,
    colouring,
    independent_set,
    core_numbers,
    lambda edges: k_core(edges, 2),
    label_propagation,
]
COUNTS = {colouring, core_numbers}
"""The algorithms whose second column is a number, and no node."""

NAMES: dict[str, tuple[list[Any], str]] = {
    "NaN": ([0.5, 1.5, 2.5, 3.5, 4.5, np.nan], "float64"),
    "a number or null": ([1, 2, 3, 5, 8, None], "int64?"),
    "text or null": (["a", "b", "c", "d", "e", None], "text?"),
    "NaN or null": ([0.5, 1.5, 2.5, 3.5, np.nan, None], "float64?"),
    "a day or null": ([*np.arange("2026-01-01", "2026-01-06", dtype="datetime64[D]").tolist(), None], "date"),
    "a list or null": ([(), (True,), (1,), (1, 2), (1.0,), None], "value"),
}


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@given(edges=st.lists(st.tuples(*[st.integers(0, NODES - 1)] * 2), min_size=1, max_size=12))
@settings(max_examples=examples(30))
def test_the_answer_is_that_for_numbered_nodes(
    algorithm: Callable[[Collection], Collection], kind: str, edges: list[tuple[int, int]]
) -> None:
    values, name = NAMES[kind]

    def answer(column: Callable[[list[int]], Any]) -> list[Any]:
        source, target = zip(*edges)
        return example(lambda scope: algorithm(Collection.of(scope, column([*source]), column([*target]))))

    def named(record: tuple[int, ...]) -> list[Any]:
        nodes = len(record) - (algorithm in COUNTS)
        return [*(values[node] for node in record[:nodes]), *record[nodes:]]

    expected = [(named(record), diff) for record, diff in answer(np.array)]
    found = [([*record], diff) for record, diff in answer(lambda nodes: typed([values[node] for node in nodes], name))]
    assert sorted(map(repr, found)) == sorted(map(repr, expected))
