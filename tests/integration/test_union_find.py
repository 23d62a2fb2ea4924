"""A union-find forest over columns joins what edges join."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from tests.examples_loading import example_module
from timely import Config, execute

example = example_module("union_find")
bfs = example_module("bfs")

NODES = st.integers(0, 12)
BATCHES = st.lists(st.lists(st.tuples(NODES, NODES), max_size=30), max_size=6)


def smallest(nodes: int, source: Any, target: Any) -> list[int]:
    """Return for each node the smallest of its component, from SciPy."""
    graph = csr_matrix((np.ones(len(source), np.int8), (source, target)), shape=(nodes, nodes))
    _, labels = connected_components(graph, directed=False)
    _, first = np.unique(labels, return_index=True)
    return list(first[labels])


def root(parent: Any, node: int) -> int:
    """Return the last of a node's ancestors; no parent is larger than its child."""
    while (above := parent[node]) != node:
        assert above < node
        node = above
    return node


@given(BATCHES)
def test_the_edges_kept_join_what_all_edges_join_and_form_no_cycle(batches: list[list[tuple[int, int]]]) -> None:
    forest = example.Forest()
    edges, kept = np.empty((0, 2), np.int64), np.empty((0, 2), np.int64)
    for each in batches:
        batch = np.array(each, np.int64).reshape(-1, 2)
        joined = forest.join(*batch.T)
        edges, kept = np.append(edges, batch, axis=0), np.append(kept, batch[joined], axis=0)
        expected = smallest(13, *edges.T)
        assert smallest(13, *kept.T) == expected
        assert len(kept) == 13 - len(set(expected))
        for node in np.unique(edges):
            assert root(forest.parent, node) == expected[node]


@pytest.mark.parametrize("workers", [1, 3])
def test_workers_together_find_a_spanning_forest(workers: int) -> None:
    results = execute(lambda worker: example.program(worker, 200, 180, 13), Config(workers=workers))
    source, target, _ = results[0]
    assert not any(len(source) for source, *_ in results[1:])
    expected = smallest(200, *bfs.random_edges(0, 180, 200))
    assert smallest(200, source, target) == expected
    assert 200 - len(source) == len(set(expected)) > 10
