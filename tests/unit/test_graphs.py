"""Graph algorithms: nodes that are numbers of all sizes, and records that are refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from differential import Collection, Variable, example
from differential.graphs import (
    bfs,
    colouring,
    grammar_reachability,
    independent_set,
    label_propagation,
    pagerank,
    shortest_distances,
    strongly_connected_components,
    weakly_connected_components,
)
from tests.oracle.grid import contents, run
from timely import Scope
from timely.data.typed import typed
from timely.errors import BuildError, OperatorError

FAR = 2**63 - 1


@pytest.mark.parametrize("definition", [weakly_connected_components, strongly_connected_components])
def test_labels_of_any_magnitude_settle_before_a_loop_is_reported(definition: object) -> None:
    nodes = [FAR, FAR - 2**61, 2**40, 5, -7, -FAR]
    ring = [((one, other), (0,), 1) for one, other in zip(nodes, [*nodes[1:], nodes[0]])]
    pair = [((FAR - 1, FAR - 2), (0,), 1), ((FAR - 2, FAR - 1), (0,), 1)]
    labels = dict.fromkeys([(node, -FAR) for node in nodes] + [(FAR - 1, FAR - 2), (FAR - 2, FAR - 2)], 1)
    assert contents(run(definition, ring + pair), (0,)) == labels  # type: ignore[arg-type]


def test_a_unit_of_ranks_may_be_a_short_integer_of_numpy() -> None:
    def ranks(unit: Any) -> list[Any]:
        return example(lambda scope: pagerank(Collection.of(scope, [1, 2], [2, 3]), rounds=2, unit=unit))

    assert ranks(np.uint8(100)) == ranks(100)
    assert ranks(np.int32(2_000_000_000)) == ranks(2_000_000_000)


@pytest.mark.parametrize("definition", [pagerank, label_propagation])
def test_rounds_cannot_be_negative(definition: Callable[..., Collection]) -> None:
    assert example(lambda scope: definition(Collection.of(scope, [1], [2]), rounds=0))
    with pytest.raises(BuildError, match="`rounds` must be a whole number of at least 0, not -1"):
        example(lambda scope: definition(Collection.of(scope, [1], [2]), rounds=-1))


@pytest.mark.parametrize("occurrences", [((1 << 64) + 4_000_000) // 20, 5 * 10**17])
def test_an_edge_that_occurs_very_often_leads_to_no_other_ranks(occurrences: int) -> None:
    """Twenty times these are more than fits in 64 bits."""

    def ranks(scope: Scope) -> Collection:
        edges = Collection.of(scope, 1, 2).explode(lambda source, target: ((source, target), occurrences))
        return pagerank(edges, rounds=1)

    assert example(ranks) == [((1, 575000), 1), ((2, 575000), 1)]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"unit": 3}, "`unit` must be from 7 to 2 ** 32, not 3"),
        ({"unit": 1 << 33}, "`unit` must be from 7 to 2 ** 32, not 8589934592"),
        ({"damping": 1}, "`damping` must be a number of at least 0 and less than 1, not 1"),
        ({"damping": 0.99999}, "`damping` must be at most 0.999, not 0.99999"),
        ({"tolerance": 1.5}, "`tolerance` must be a share of the mean rank, from 0 to 1, or None, not 1.5"),
    ],
)
def test_what_pagerank_cannot_do_is_refused_at_its_line(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(BuildError, match=rf"^pagerank \(at {__file__}:\d+\): {re.escape(problem)}$"):
        example(lambda scope: pagerank(Collection.of(scope, 1, 2), **options))


@pytest.mark.parametrize(
    ("labels", "productions", "problem"),
    [
        ([], [("b", ["a"])], "`edges` must have at least one label"),
        (None, [("b", ["a"])], "`edges` must be a dictionary of edges by label, not None"),
        (["a"], [("b", ["c"])], "the production of 'b' cannot be used: no edges and no production have the label 'c'"),
        (["a"], [("b", [])], "the production of 'b' cannot be used: it has no body"),
    ],
)
def test_a_grammar_without_edges_is_refused_at_its_line(labels: Any, productions: Any, problem: str) -> None:
    def program(scope: Scope) -> Collection:
        edges: Any = None if labels is None else {label: Collection.of(scope, 1, 2) for label in labels}
        return grammar_reachability(edges, productions)["b"]

    with pytest.raises(BuildError, match=rf"^grammar_reachability \(at {__file__}:\d+\): {re.escape(problem)}$"):
        example(program)


@pytest.mark.parametrize("productions", [None, 5, "ab", [5], [("b", 5)]])
def test_productions_of_other_kinds_are_refused_at_their_line(productions: Any) -> None:
    with pytest.raises(BuildError, match=rf"^grammar_reachability \(at {__file__}:\d+\): .*a label and a list"):
        example(lambda scope: grammar_reachability({"a": Collection.of(scope, 1, 2)}, productions)["b"])


def _weighted(scope: Scope) -> Collection:
    return Collection.of(scope, np.array([0, 1]), np.array([1, 2]), np.array([5, 7]))


@pytest.mark.parametrize(
    ("definition", "columns"),
    [
        (lambda scope: weakly_connected_components(_weighted(scope)), "source, target, and received 3 column"),
        (lambda scope: bfs(_weighted(scope), Collection.of(scope, 0)), "neighbour, and received 4 column"),
        (
            lambda scope: shortest_distances(_weighted(scope), Collection.of(scope, 0)),
            "node, distance, neighbour, length, and received 3 column",
        ),
    ],
)
def test_records_with_other_columns_are_refused_with_the_line_and_the_columns(
    definition: Callable[[Scope], Collection], columns: str
) -> None:
    with pytest.raises(OperatorError, match=rf"built at \S*test_graphs.py:.* DataError: .*{columns}") as refusal:
        example(definition)
    assert "<lambda>" not in str(refusal.value)
    assert "along()" not in str(refusal.value)
    assert "collection.map(lambda a, b, c: (a, b)) leaves one out" in str(refusal.value)


@pytest.mark.parametrize(
    ("roots", "reached"),
    [
        (typed([1, 2], "int64"), [1, 2, 3]),
        ({1, 2}, [1, 2, 3]),
        (frozenset([2]), [2, 3]),
        (range(1, 3), [1, 2, 3]),
    ],
    ids=["typed", "set", "frozenset", "range"],
)
def test_roots_may_be_in_any_collection_of_values(roots: Any, reached: list[int]) -> None:
    edges = np.array([1, 2, 7]), np.array([2, 3, 8])
    found = example(lambda scope: bfs(Collection.of(scope, *edges), roots))
    assert sorted(node for (node, _), _ in found) == reached  # type: ignore[misc]


def test_a_root_may_be_a_date() -> None:
    first, second = date(2024, 2, 29), date(2024, 3, 1)
    found = example(lambda scope: bfs(Collection.of(scope, [first], [second]), first))
    assert found == [((first, 0), 1), ((second, 1), 1)]


@pytest.mark.parametrize(
    ("length", "kind"), [("far", "text"), (b"far", "bytes"), (True, "booleans")], ids=["text", "bytes", "booleans"]
)
def test_lengths_are_numbers(length: Any, kind: str) -> None:
    def distances(scope: Scope) -> Collection:
        return shortest_distances(Collection.of(scope, [0], [1], [length]), Collection.of(scope, [0], [length]))

    with pytest.raises(OperatorError, match=f"shortest_distances: lengths must be integers or floats, not {kind}"):
        example(distances)


NULLS = [
    [(1, 2), (None, 1)],
    [(1, 2), (2, None), (None, 3), (3, 1), (None, None)],
    [(1, None), (2, None), (1, 1), (None, 1)],
]


@pytest.mark.parametrize("edges", NULLS)
@pytest.mark.parametrize("definition", [colouring, independent_set, weakly_connected_components])
def test_nulls_among_decimal_nodes_answer_as_those_among_integers(
    definition: Callable[[Collection], Collection], edges: list[tuple[int | None, int | None]]
) -> None:
    def answer(kind: str, node: Callable[[int], object]) -> list[object]:
        ends = [[None if end is None else node(end) for end in column] for column in zip(*edges)]
        return example(lambda scope: definition(Collection.of(scope, *(typed(each, kind) for each in ends))))

    found = answer("decimal(18, 2)", Decimal)
    assert found == answer("int64?", int)
    named = {record[0] for record, _ in found}  # type: ignore[misc, index]
    assert definition is independent_set or named == {end for edge in edges for end in edge}


@pytest.mark.parametrize("definition", [colouring, independent_set])
def test_each_node_of_a_chain_is_decided_once(
    monkeypatch: pytest.MonkeyPatch, definition: Callable[[Collection], Collection]
) -> None:
    nodes, decided = 100, []
    set_next = Variable.set

    def set_and_count(variable: Variable, following: Collection) -> None:
        set_next(variable, following.inspect(lambda record, time, diff: decided.append(diff)))

    monkeypatch.setattr(Variable, "set", set_and_count)
    found = example(lambda scope: definition(Collection.of(scope, np.arange(nodes - 1), np.arange(1, nodes))))
    assert {record[0] for record, _ in found} == set(range(nodes)[:: 1 if definition is colouring else 2])  # type: ignore[index]
    assert len(decided) < nodes
    assert set(decided) == {1}


@pytest.mark.parametrize("lengths", [[2**53 + 1], [0.5]])
def test_distances_and_lengths_are_both_integers_or_both_floats(lengths: list[float]) -> None:
    """Large integers beside floats would be rounded."""
    start = 0.0 if type(lengths[0]) is int else 0

    def distances(scope: Scope) -> Collection:
        edges = Collection.of(scope, np.array([0]), np.array([1]), np.array(lengths))
        return shortest_distances(edges, Collection.of(scope, np.array([0]), np.array([start])))

    with pytest.raises(
        OperatorError, match=r"the roots have distances of (float|int)64, the edges lengths of (int|float)64"
    ):
        example(distances)


@pytest.mark.parametrize(
    ("kind", "lengths", "message"),
    [
        ("uint64", [3, 4], "not uint64, as that of the edge from 0 to 1"),
        ("decimal(18, 2)", [Decimal("1.50"), Decimal(2)], r"not decimal\(18, 2\), as that of the edge from 0 to 1"),
        ("int64?", [1, None], "the edge from 1 to 2 has no length"),
    ],
)
def test_lengths_of_other_types_and_nulls_are_refused_by_name(kind: str, lengths: list[Any], message: str) -> None:
    def program(scope: Any) -> Any:
        edges = Collection.of(scope, [0, 1], [1, 2], typed(lengths, kind))
        return shortest_distances(edges, Collection.of(scope, [0], typed([0], kind)))

    with pytest.raises(OperatorError, match=message):
        example(program)


def test_lengths_that_may_be_null_are_lengths_where_none_is() -> None:
    edges = [0, 1], [1, 2], typed([3, 4], "int64?")
    roots = [0], typed([0], "int64?")
    made = example(lambda scope: shortest_distances(Collection.of(scope, *edges), Collection.of(scope, *roots)))
    assert made == [((0, 0), 1), ((1, 3), 1), ((2, 7), 1)]
