"""Ranks are those of real numbers but for the stated error, and with a tolerance a change stays near."""

from __future__ import annotations

from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from benchmarks.graphs import Ints, RandomGraph
from differential import Collection, example, new_input
from differential.frames import typed
from differential.graphs import pagerank
from tests.oracle.ranks import UNIT, ranks_in_floats
from tests.thorough import examples
from timely import Worker, execute_directly
from timely.errors import BuildError, OperatorError


def changes(graph: RandomGraph, tolerance: int) -> tuple[Ints, int]:
    """Return each node's rank, and how many changes of ranks there were when one edge had changed before."""

    def program(worker: Worker) -> tuple[Ints, int]:
        with worker.dataflow() as scope:
            session, edges = new_input(scope)
            answer = pagerank(edges, tolerance=tolerance / UNIT).output()
        session.insert(*graph.initial)
        session.advance_to(1)
        source, target, diffs = graph.changes(0, 1)
        session.update(source, target, diff=diffs)
        session.close()
        worker.step_while(lambda: not answer.done())
        made = answer.changes()
        ranks = np.zeros(graph.nodes, np.int64)
        for (node, rank), _, diff in made:
            ranks[node] += diff * rank
        return ranks, sum(time == (1,) for _, time, _ in made)

    return execute_directly(program)


@given(nodes=st.integers(1, 30), degree=st.sampled_from((0.5, 1, 3, 10)), tolerance=st.sampled_from((1, 999, 40_000)))
@settings(max_examples=examples(15), deadline=None)
def test_all_errors_together_are_within_the_stated_bound(nodes: int, degree: float, tolerance: int) -> None:
    graph = RandomGraph(nodes, int(nodes * degree) + 1)
    source, target = graph.after(1)
    ranks, _ = changes(graph, tolerance)
    errors = np.abs(ranks - ranks_in_floats(source, target, nodes, 20))
    rounded = tolerance if tolerance > 1 else 0
    assert errors.sum() <= 1.85 / 0.15 * rounded / 2 * nodes + (3 * nodes + len(source)) / 0.15


def test_with_a_tolerance_few_ranks_change_and_all_are_close() -> None:
    graph = RandomGraph(1000, 10_000)
    every, about = changes(graph, 1), changes(graph, UNIT // 20)
    assert every[1] > 1900 > 2 * about[1] > 0
    errors = np.abs(every[0] - about[0])
    assert 0 < errors.mean() < UNIT / 200
    assert errors.max() < UNIT / 20


def test_ranks_settle_on_those_of_networkx() -> None:
    graph = networkx.gnp_random_graph(40, 0.2, seed=1, directed=True)
    source, target = np.array([*graph.edges]).T
    assert set(source) == set(graph)
    expected = networkx.pagerank(graph, tol=1e-9)

    def program(worker: Worker) -> dict[int, int]:
        with worker.dataflow() as scope:
            answer = pagerank(Collection.of(scope, source, target), rounds=80).output()
        worker.step_while(lambda: not answer.done())
        return dict(answer.contents().keys())

    for node, rank in execute_directly(program).items():
        assert rank / (40 * UNIT) == pytest.approx(expected[node], abs=1e-4)


@pytest.mark.parametrize(
    ("problem", "options"),
    [
        ("`unit` must be from 7 to 2 \\*\\* 32, not 6", {"unit": 6}),
        ("`unit` must be from 2 to 2 \\*\\* 32, not 1", {"unit": 1, "damping": 0.5}),
        ("share of the mean rank, from 0 to 1, or None, not -0.1", {"tolerance": -0.1}),
        ("share of the mean rank, from 0 to 1, or None, not 10000", {"tolerance": 10_000}),
        ("share of the mean rank, from 0 to 1, or None, not nan", {"tolerance": float("nan")}),
        ("share of the mean rank, from 0 to 1, or None, not True", {"tolerance": True}),
        ("not 2305843009213693952", {"unit": 1 << 61}),
        ("at least 0 and less than 1, not 1$", {"damping": 1}),
        ("at least 0 and less than 1, not -0.1", {"damping": -0.1}),
        ("at least 0 and less than 1, not 'much'", {"damping": "much"}),
        ("at most 0.999, not 0.9999999", {"damping": 0.9999999}),
    ],
)
def test_invalid_options_are_refused(problem: str, options: dict[str, Any]) -> None:
    with pytest.raises(BuildError, match=problem):
        example(lambda scope: pagerank(Collection.of(scope, 1, 2), **options))


def test_a_tolerance_of_less_than_a_unit_is_none_at_all() -> None:
    graph = RandomGraph(20, 60)

    def ranks(tolerance: Any) -> Any:
        return example(lambda scope: pagerank(Collection.of(scope, *graph.initial), unit=1000, tolerance=tolerance))

    assert ranks(None) == ranks(0) == ranks(1e-9) == ranks(np.float32(1e-3)) != ranks(0.1)


pairs = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), min_size=1, max_size=16)
weights_of_nodes = st.none() | st.dictionaries(st.integers(0, 9), st.integers(0, 5), max_size=5)


@pytest.mark.lengthy
@given(
    first=pairs, second=pairs, weights=weights_of_nodes, other=weights_of_nodes, damping=st.sampled_from((0.5, 0.85))
)
@settings(max_examples=examples(30), deadline=None)
def test_ranks_are_those_of_networkx_with_dangling_nodes_and_weights_before_and_after_a_change(
    first: list[tuple[int, int]],
    second: list[tuple[int, int]],
    weights: dict[int, int] | None,
    other: dict[int, int] | None,
    damping: float,
) -> None:
    is_weighed = weights is not None
    rounds = {0.5: 50, 0.85: 150}[damping]  # what is left to go after these is less than the tolerance below
    steps = [(first, weights or {}), (second, (other or {}) if is_weighed else {})]

    def program(worker: Worker, steps: list[tuple[list[tuple[int, int]], dict[int, int]]]) -> dict[int, int]:
        with worker.dataflow() as scope:
            (session, edges), (weighing, weighed) = new_input(scope), new_input(scope)
            personalisation = weighed if is_weighed else None
            answer = pagerank(edges, damping=damping, rounds=rounds, personalisation=personalisation).output()
        for epoch, (rows, by_node) in enumerate(steps):
            for row in rows:
                session.insert(*row)
            for pair in by_node.items():
                weighing.insert(*pair)
            session.advance_to(epoch + 1)
            weighing.advance_to(epoch + 1)
            if epoch + 1 < len(steps):
                for row in rows:
                    session.remove(*row)
                for pair in by_node.items():
                    weighing.remove(*pair)
        session.close()
        weighing.close()
        worker.step_while(lambda: not answer.done())
        return dict(answer.contents().keys())

    incremental = execute_directly(lambda worker: program(worker, steps))
    assert incremental == execute_directly(lambda worker: program(worker, steps[1:]))
    graph = networkx.MultiDiGraph(second)
    chosen = {node: weight for node, weight in steps[1][1].items() if node in graph and weight}
    if is_weighed and not chosen:
        return
    expected = networkx.pagerank(graph, damping, personalization=chosen or None, tol=1e-10, max_iter=1000)
    found = dict(incremental)
    for node, rank in expected.items():
        assert found.get(node, 0) / (len(graph) * UNIT) == pytest.approx(rank, abs=2e-4)


def test_weights_that_are_not_integers_or_too_many_are_refused() -> None:
    for weight, problem in [(0.5, "whole numbers, not float64"), (-1, "from 0 to"), (1 << 30, "less than 2")]:
        with pytest.raises(OperatorError, match=problem):
            example(
                lambda scope, weight=weight: pagerank(
                    Collection.of(scope, [1, 2], [2, 1]),
                    personalisation=Collection.of(scope, [1, 2, 2], [weight] * 3),
                )
            )
    weights = typed([1, None], "int64?")
    with pytest.raises(OperatorError, match=r"whole numbers, not int64\?"):
        example(
            lambda scope: pagerank(
                Collection.of(scope, [1, 2], [2, 1]), personalisation=Collection.of(scope, [1, 2], weights)
            )
        )


@pytest.mark.lengthy
def test_ranks_too_large_to_be_multiplied_in_64_bits_are_exact() -> None:
    nodes, unit = 2_600_000, 1 << 32
    source = np.arange(1, nodes + 1)

    def passed_on(rank: int) -> int:
        return 999 * rank // 1000

    found = example(
        lambda scope: pagerank(Collection.of(scope, source, np.zeros_like(source)), rounds=2, unit=unit, damping=0.999)
    )
    jump, total = unit // 1000, nodes + 1
    # Each source passes all on to node 0, which has no edge from it: what it passes on goes to all nodes alike.
    first = jump + nodes * passed_on(unit) + passed_on(unit) // total
    ordinary = jump + passed_on(unit) // total
    shared = passed_on(first) // total
    expected = {(0, jump + nodes * passed_on(ordinary) + shared): 1}
    assert {record: diff for record, diff in found if record[0] == 0} == expected
    assert found[1] == ((1, jump + shared), 1)
