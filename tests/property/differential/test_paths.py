"""Shortest distances and transitive closure are those of brute force, at every time."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from differential import Collection
from differential.graphs import shortest_distances, transitive_closure
from tests.oracle.graphs import NODES, closure
from tests.oracle.grid import Multiset, Update, check, run
from tests.thorough import examples
from timely.errors import TimelyError


def edits(*lengths: Any) -> st.SearchStrategy[list[Update]]:
    """Return edges that appear at an epoch and may be removed later; half lead to the next node, for long paths."""
    node = st.sampled_from(NODES)
    ends = st.tuples(node, node) | node.map(lambda node: (node, (node + 1) % len(NODES)))
    edge = st.tuples(ends, *(st.sampled_from(each) for each in lengths)).map(lambda parts: (*parts[0], *parts[1:]))
    stay = st.tuples(edge, st.integers(0, 3), st.sampled_from((0, 1, 2)))

    def updates(stays: Any) -> list[Update]:
        come = [(edge, (when,), 1) for edge, when, _ in stays]
        return come + [(edge, (when + later,), -1) for edge, when, later in stays if later]

    sizes = st.sampled_from((1, 4, 8))
    return sizes.flatmap(lambda least: st.lists(stay, min_size=least, max_size=12)).map(updates)


def distances(edges: Multiset) -> dict[tuple[Any, Any], int]:
    """Return (node, distance from node 0), by relaxing all edges as often as there are nodes."""
    least: dict[Any, Any] = {0: 0}
    for _ in NODES:
        for source, target, length in edges:
            if source in least:
                least[target] = min(least.get(target, 10**6), least[source] + length)
    return dict.fromkeys(least.items(), 1)


@pytest.mark.parametrize(("lengths", "zero"), [((0, 1, 2, 7), 0), ((0.0, 0.5, 2.25), 0.0)])
@given(data=st.data(), workers=st.integers(1, 3), seed=st.integers(0, 999))
@settings(max_examples=examples(20), deadline=None)
def test_shortest_distances_are_those_of_brute_force(
    lengths: Any, zero: Any, data: st.DataObject, workers: int, seed: int
) -> None:
    def program(edges: Collection) -> Collection:
        return shortest_distances(edges, Collection.of(edges.scope, 0, zero))

    check(program, distances, data.draw(edits(lengths)), workers=workers, seed=seed)


@given(edges=edits(), workers=st.integers(1, 3), seed=st.integers(0, 999))
@settings(max_examples=examples(25), deadline=None)
def test_the_closure_is_that_of_brute_force(edges: list[Update], workers: int, seed: int) -> None:
    check(transitive_closure, closure, edges, workers=workers, seed=seed)


def test_a_negative_length_is_refused() -> None:
    edges: list[Update] = [((0, 1, 1), (0,), 1), ((0, 2, -3), (0,), 1)]
    with pytest.raises(TimelyError, match="the edge from 0 to 2 has a negative length, -3"):
        run(lambda edges: shortest_distances(edges, Collection.of(edges.scope, 0, 0)), edges)


@pytest.mark.parametrize("length", [2**62, 1e308])
def test_a_distance_of_more_than_64_bits_is_refused(length: float) -> None:
    edges: list[Update] = [((0, 1, length), (0,), 1), ((1, 2, length), (0,), 1)]
    with pytest.raises(TimelyError, match="too large for 64 bits"):
        run(lambda edges: shortest_distances(edges, Collection.of(edges.scope, 0, type(length)(0))), edges)


def test_an_infinite_length_is_an_infinite_distance() -> None:
    edges: list[Update] = [((0, 1, math.inf), (0,), 1), ((1, 2, 1e308), (0,), 1)]
    found = run(lambda edges: shortest_distances(edges, Collection.of(edges.scope, 0, 0.0)), edges)
    assert {record for record, _, _ in found} == {(0, 0.0), (1, math.inf), (2, math.inf)}
