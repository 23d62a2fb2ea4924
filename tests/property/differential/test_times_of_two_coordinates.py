"""With partially ordered outermost times, every operator is right at every time of the grid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings

from differential import Collection
from differential.graphs import bfs, weakly_connected_components
from tests.oracle.grid import Multiset, check
from tests.oracle.programs import build, meaning
from tests.strategies_updates import History, histories
from tests.thorough import examples

OPERATORS = ("distinct", "threshold", "count", "sum", "min", "max", "top", "squares")
FEW = settings(max_examples=examples(40), deadline=None)
FEWER = settings(max_examples=examples(20), deadline=None)


@pytest.mark.parametrize("name", OPERATORS)
@given(history=histories(outer=(2,)))
@FEW
def test_a_reduction_is_right_at_every_time(name: str, history: History) -> None:
    program = (name, ("input", 0))
    check(lambda one: build(program, [one]), lambda one: meaning(program, [one]), *history.inputs, **history.run)


@pytest.mark.parametrize("name", ["join", "semijoin", "antijoin", "less"])
@given(history=histories(inputs=2, outer=(2,)))
@FEW
def test_an_operator_of_two_collections_is_right_at_every_time(name: str, history: History) -> None:
    program = (name, ("input", 0), ("input", 1))
    check(lambda *both: build(program, both), lambda *both: meaning(program, both), *history.inputs, **history.run)


@given(history=histories(inputs=2, outer=(2,)))
@FEW
def test_operators_one_after_the_other_are_right_at_every_time(history: History) -> None:
    program = ("max", ("join", ("count", ("distinct", ("input", 0))), ("antijoin", ("input", 1), ("input", 0))))
    check(lambda *both: build(program, both), lambda *both: meaning(program, both), *history.inputs, **history.run)


@pytest.mark.parametrize(
    ("algorithm", "of"),
    [
        (lambda edges: bfs(edges, Collection.of(edges.scope, 0)), "distances"),
        (weakly_connected_components, "components"),
    ],
)
@given(history=histories(outer=(2,), size=10))
@FEWER
def test_a_loop_settles_to_the_right_result_at_every_time(
    algorithm: Callable[[Collection], Collection], of: str, history: History
) -> None:
    check(algorithm, {"distances": _distances, "components": _components}[of], *history.inputs, **history.run)


def _distances(edges: Multiset) -> Multiset:
    found = {0: 0}
    for distance in range(len(edges)):
        for source, target in edges:
            if found.get(source) == distance:
                found.setdefault(target, distance + 1)
    return Counter(dict.fromkeys(found.items(), 1))


def _components(edges: Multiset) -> Multiset:
    label: dict[Any, Any] = {node: node for edge in edges for node in edge}
    for _ in label:
        for source, target in edges:
            label[source] = label[target] = min(label[source], label[target])
    return Counter(dict.fromkeys(label.items(), 1))
