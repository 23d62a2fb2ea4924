"""At every time, a delta query gives the changes of its join."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from differential import Collection
from differential.delta import AltNeu, Prefixes, extend_locally, half_join
from differential.graphs.motifs import cliques4, motif, triangles, triangles_by_joins
from tests.oracle.grid import Multiset, Update, check
from tests.thorough import examples

PATTERNS = (
    [(0, 1)],
    [(0, 1), (1, 0)],
    [(0, 1), (0, 1)],
    [(0, 1), (1, 2)],
    [(1, 0), (2, 1), (2, 0)],
    [(0, 1), (1, 2), (2, 3), (3, 0)],
    [(0, 1), (0, 2), (0, 3)],
)


def updates(outer: int, nodes: int, most: int) -> st.SearchStrategy[list[Update]]:
    node = st.integers(0, nodes - 1)
    time = st.tuples(*[st.integers(0, 2)] * outer)
    return st.lists(st.tuples(st.tuples(node, node), time, st.sampled_from((1, 1, -1))), max_size=most)


def occurrences(edges: Multiset, pattern: Any) -> Multiset:
    """Return how often each choice of nodes is an occurrence of the pattern, by trying all."""
    nodes = {node for edge in edges for node in edge}
    found: Multiset = Counter()
    for chosen in product(nodes, repeat=1 + max(map(max, pattern))):
        found[chosen] = int(np.prod([edges[chosen[a], chosen[b]] for a, b in pattern]))
    return found


def three_way(first: Collection, second: Collection, third: Collection) -> Collection:
    """Return (a, b, c, d) for (a, b), (b, c) and (c, d) in the three collections, by a delta query."""
    back, back_of_second = (one.map(lambda a, b: (b, a)) for one in (first, second))
    alt, neu = AltNeu.ALT, AltNeu.NEU
    of_first = (
        Prefixes.of(back)
        .half_join(second.arrange_by_key(), lambda b, a, c: (c, a, b), alt)
        .half_join(third.arrange_by_key(), lambda c, a, b, d: (a, b, c, d), alt)
    )
    of_second = (
        Prefixes.of(second)
        .half_join(back.arrange_by_key(), lambda b, c, a: (c, a, b), neu)
        .half_join(third.arrange_by_key(), lambda c, a, b, d: (a, b, c, d), alt)
    )
    of_third = (
        Prefixes.of(third)
        .half_join(back_of_second.arrange_by_key(), lambda c, d, b: (b, c, d), neu)
        .half_join(back.arrange_by_key(), lambda b, c, d, a: (a, b, c, d), neu)
    )
    return of_first.concat(of_second, of_third).results()


def three_way_meaning(first: Multiset, second: Multiset, third: Multiset) -> Multiset:
    found: Multiset = Counter()
    for ((a, b), m), ((c, d), n), ((e, f), k) in product(first.items(), second.items(), third.items()):
        if b == c and d == e:
            found[a, b, d, f] += m * n * k
    return found


@pytest.mark.timeout(300)
@pytest.mark.parametrize("outer", [1, 2])
@given(data=st.data(), workers=st.integers(1, 4), seed=st.integers(0, 1 << 16))
@settings(max_examples=examples(40), deadline=None)
def test_a_delta_query_equals_the_join_at_every_time(outer: int, data: st.DataObject, workers: int, seed: int) -> None:
    inputs = [data.draw(updates(outer, 2, 6)) for _ in range(3)]
    check(three_way, three_way_meaning, *inputs, workers=workers, outer=outer, seed=seed)


@given(edits=updates(1, 3, 12), pattern=st.sampled_from(PATTERNS), workers=st.integers(1, 4), seed=st.integers(0, 999))
@settings(max_examples=examples(60), deadline=None)
def test_every_occurrence_of_a_motif_is_found(edits: list[Update], pattern: Any, workers: int, seed: int) -> None:
    check(
        lambda edges: motif(edges, pattern),
        lambda edges: occurrences(edges, pattern),
        edits,
        workers=workers,
        seed=seed,
    )


@pytest.mark.parametrize("algorithm", [triangles, triangles_by_joins])
@pytest.mark.parametrize("outer", [1, 2])
@given(data=st.data(), workers=st.integers(1, 4), seed=st.integers(0, 999))
@settings(max_examples=examples(25), deadline=None)
def test_triangles_are_those_of_brute_force(
    algorithm: Any, outer: int, data: st.DataObject, workers: int, seed: int
) -> None:
    pattern = [(0, 1), (1, 2), (0, 2)]
    edits = data.draw(updates(outer, 4, 14))
    check(algorithm, lambda edges: occurrences(edges, pattern), edits, workers=workers, outer=outer, seed=seed)


of_cliques = given(
    edges=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2)), min_size=8, max_size=10),
    workers=st.integers(1, 3),
    seed=st.integers(0, 999),
)
"""Edges among five nodes, each with the time it appears and how long it stays."""


def check_cliques(edges: list[tuple[int, int]], workers: int, seed: int) -> None:
    pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3), (0, 4), (1, 4), (2, 4), (3, 4)]
    edits: list[Update] = [(pair, (when,), 1) for pair, (when, _) in zip(pairs, edges)]
    edits += [(pair, (when + later,), -1) for pair, (when, later) in zip(pairs, edges) if later]
    check(cliques4, lambda held: occurrences(held, pairs[:6]), edits, workers=workers, seed=seed)


@pytest.mark.lengthy
@of_cliques
@settings(max_examples=4, deadline=None)
def test_cliques_of_four_appear_and_disappear(edges: list[tuple[int, int]], workers: int, seed: int) -> None:
    check_cliques(edges, workers, seed)


@pytest.mark.slow
@pytest.mark.timeout(300)
@of_cliques
@settings(max_examples=examples(40), deadline=None)
def test_cliques_of_four_appear_and_disappear_in_many_histories(
    edges: list[tuple[int, int]], workers: int, seed: int
) -> None:
    check_cliques(edges, workers, seed)


@given(edits=updates(1, 3, 20))
@settings(max_examples=examples(20), deadline=None)
def test_pieces_may_be_as_small_as_a_row(edits: list[Update]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(half_join, "PIECE", 1)
        patch.setattr(extend_locally, "PIECE", 1)
        for workers in (1, 2):
            check(triangles, lambda edges: occurrences(edges, [(0, 1), (1, 2), (0, 2)]), edits, workers=workers)


@pytest.mark.parametrize("workers", [1, 2])
@given(seed=st.integers(0, 999))
@settings(max_examples=examples(5), deadline=None)
def test_many_epochs_are_compacted_without_changing_which_updates_meet(workers: int, seed: int) -> None:
    edits: list[Update] = [((epoch % 3, (epoch + 1) % 3), (epoch,), 1) for epoch in range(24)]
    check(triangles, lambda edges: occurrences(edges, [(0, 1), (1, 2), (0, 2)]), edits, workers=workers, seed=seed)
    check(three_way, three_way_meaning, edits, edits, edits, workers=workers, seed=seed)
