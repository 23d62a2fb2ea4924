"""Cores, colours, communities, independent sets, ranks and grammars are those of brute force, at every time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import networkx
import pytest
from hypothesis import given, settings, strategies as st

from differential import Collection, example
from differential.graphs import (
    colouring,
    core_numbers,
    grammar_reachability,
    independent_set,
    k_core,
    label_propagation,
    pagerank,
)
from tests.oracle.graphs import closure, communities, core, independent, ranks
from tests.oracle.grid import Multiset, check
from tests.property.differential.test_paths import edits
from tests.thorough import examples
from timely import Scope
from timely.errors import BuildError


def cores(edges: Multiset) -> dict[Any, int]:
    proper = networkx.Graph([(a, b) for a, b in edges if a != b])
    return dict.fromkeys(networkx.core_number(proper).items(), 1)


def colours(edges: Multiset) -> dict[Any, int]:
    graph = networkx.Graph([*edges])
    graph.remove_edges_from([(node, node) for node in graph])
    return dict.fromkeys(networkx.greedy_color(graph, lambda graph, _: sorted(graph)).items(), 1)


def closed(edges: Collection) -> Collection:
    return grammar_reachability({"edge": edges}, [("path", ["edge"]), ("path", ["path", "path"])])["path"]


def even(edges: Collection) -> Collection:
    return grammar_reachability(
        {"edge": edges}, [("odd", ["edge"]), ("odd", ["even", "edge"]), ("even", ["odd", "edge"])]
    )["even"]


def even_paths(edges: Multiset) -> dict[Any, int]:
    twice = {(a, d) for a, b in edges for c, d in edges if b == c}
    return closure(dict.fromkeys(twice, 1))  # type: ignore[arg-type]


CASES: list[tuple[Callable[[Collection], Collection], Callable[[Multiset], dict[Any, int]]]] = [
    (lambda edges: k_core(edges, 2), core),
    (core_numbers, cores),
    (colouring, colours),
    (lambda edges: label_propagation(edges, rounds=3), communities),
    (independent_set, independent),
    (lambda edges: pagerank(edges, rounds=4, unit=600), ranks),
    (lambda edges: pagerank(edges, rounds=4, unit=600, tolerance=0.05), lambda edges: ranks(edges, 30)),
    (closed, closure),
    (even, even_paths),
]


NAMES = ["core", "core numbers", "colours", "communities", "independent", "ranks", "about ranks", "closed", "even"]


@pytest.mark.parametrize(("program", "meaning"), CASES, ids=NAMES)
@given(edges=edits(), workers=st.integers(1, 3), seed=st.integers(0, 999))
@settings(max_examples=examples(20), deadline=None)
def test_the_answer_is_that_of_brute_force_at_every_time(
    program: Any, meaning: Any, edges: Any, workers: int, seed: int
) -> None:
    check(program, meaning, edges, workers=workers, seed=seed)


@pytest.mark.parametrize(
    ("production", "problem"),
    [
        (("a", ["b"]), "label 'b'"),
        (("a", []), "no body"),
        (("a", "edge"), r"a list of labels, as \('points', \['new'\]\), not \('a', 'edge'\)"),
        (("a", ["edge"], 1), "a production is a label and a list of labels"),
        (("a", 5), "a production is a label and a list of labels, .*, not .'a', 5"),
        (("a", [["edge"]]), "a production is a label and a list of labels"),
        (([], ["edge"]), "a production is a label and a list of labels"),
    ],
)
def test_a_production_that_cannot_be_used_is_refused(production: Any, problem: str) -> None:
    def program(edges: Collection) -> Collection:
        return grammar_reachability({"edge": edges}, [production])["a"]

    with pytest.raises(BuildError, match=problem):
        check(program, closure, [], workers=1, seed=0)


def test_a_grammar_without_edges_is_refused() -> None:
    with pytest.raises(BuildError, match="`edges` must have at least one label"):
        grammar_reachability({}, [("a", ["a"])])


def test_a_grammar_refuses_what_is_no_dictionary_of_collections() -> None:
    def program(edges: Any) -> Callable[[Scope], Collection]:
        return lambda scope: grammar_reachability(edges(scope), [("a", ["a"])])["a"]

    with pytest.raises(BuildError, match="`edges` must be a dictionary of edges by label, not <collection"):
        example(program(lambda scope: Collection.of(scope, 1, 2)))
    with pytest.raises(BuildError, match=r"`edges\['a'\]` must be a collection, not 3"):
        example(program(lambda _: {"a": 3}))
