"""Ranks are those of real numbers but for the stated error, and with a tolerance a change stays near."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.graphs import Ints, RandomGraph
from differential import Collection, example, new_input
from differential.graphs import pagerank
from tests.oracle.ranks import UNIT, ranks_in_floats
from tests.thorough import examples
from timely import Worker, execute_directly
from timely.errors import BuildError


def changes(graph: RandomGraph, tolerance: int) -> tuple[Ints, int]:
    """Return each node's rank, and how many changes of ranks there were when one edge had changed before."""

    def program(worker: Worker) -> tuple[Ints, int]:
        with worker.dataflow() as scope:
            session, edges = new_input(scope)
            answer = pagerank(edges, tolerance=tolerance).output()
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
    assert errors.sum() <= 2.5 * rounded * nodes + 6 * (nodes + len(source))


def test_with_a_tolerance_few_ranks_change_and_none_is_far_off() -> None:
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
    expected = networkx.pagerank(graph, 5 / 6, tol=1e-9)

    def program(worker: Worker) -> dict[int, int]:
        with worker.dataflow() as scope:
            answer = pagerank(Collection.of(scope, source, target), 60).output()
        worker.step_while(lambda: not answer.done())
        return dict(answer.contents().keys())

    for node, rank in execute_directly(program).items():
        assert rank / (40 * UNIT) == pytest.approx(expected[node], abs=1e-4)


@pytest.mark.parametrize(
    ("problem", "options"),
    [
        ("not 5", {"unit": 5}),
        ("not 0", {"tolerance": 0}),
        ("not 2305843009213693952", {"unit": 1 << 61}),
        ("not 7", {"unit": 6, "tolerance": 7}),
    ],
)
def test_a_unit_without_sixths_and_a_tolerance_of_nothing_are_refused(problem: str, options: dict[str, int]) -> None:
    with pytest.raises(BuildError, match=problem):
        example(lambda scope: pagerank(Collection.of(scope, 1, 2), **options))
