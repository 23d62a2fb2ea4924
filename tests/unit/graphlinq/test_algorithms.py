"""Tests of the graph algorithms, against networkx."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tests.unit.dataflow.running import on_workers
from tests.unit.graphlinq.graphs import Edges, answered, edges
from timely import Stream, Worker, execute_directly, new_input
from timely.errors import BuildError, OperatorError
from timely.graphlinq import (
    Graph,
    landmark_distances,
    pagerank,
    strongly_connected_components,
    weakly_connected_components,
)

LANDMARKS = [0, 3, 3, 77]


def weak_components(rows: Edges) -> list[tuple[int, int]]:
    graph = nx.Graph(rows)
    return sorted((node, min(component)) for component in nx.connected_components(graph) for node in component)


def strong_components(rows: Edges) -> list[tuple[int, int]]:
    graph = nx.DiGraph(rows)
    parts = nx.strongly_connected_components(graph)
    return sorted((node, min(component)) for component in parts for node in component)


def distances(rows: Edges) -> list[tuple[int, ...]]:
    graph = nx.DiGraph(rows)
    found = [nx.single_source_shortest_path_length(graph, each) if each in graph else {} for each in LANDMARKS]
    return sorted((node, *(hops.get(node, -1) for hops in found)) for node in graph)


def large(seed: int, nodes: int = 300, edges: int = 450) -> Edges:
    random = np.random.default_rng(seed)
    return list(zip(random.integers(0, nodes, edges).tolist(), random.integers(0, nodes, edges).tolist()))


@settings(deadline=None, max_examples=20)
@given(edges)
def test_weak_components_are_those_of_networkx(rows: Edges) -> None:
    assert answered(weakly_connected_components, rows) == weak_components(rows)


@settings(deadline=None, max_examples=20)
@given(edges)
def test_strong_components_are_those_of_networkx(rows: Edges) -> None:
    assert answered(strongly_connected_components, rows) == strong_components(rows)


@settings(deadline=None, max_examples=20)
@given(edges)
def test_hops_from_landmarks_are_those_of_networkx(rows: Edges) -> None:
    assert answered(lambda graph: landmark_distances(graph, LANDMARKS), rows) == distances(rows)


@settings(deadline=None, max_examples=10)
@given(edges)
def test_ranks_are_those_of_networkx(rows: Edges) -> None:
    graph = nx.MultiDiGraph(rows)
    expected = nx.pagerank(graph, tol=1e-12, max_iter=1000)
    found = dict(answered(lambda graph: pagerank(graph, rounds=200, tolerance=1e-12), rows))
    assert found.keys() == expected.keys()
    for node, rank in expected.items():
        assert found[node] == pytest.approx(rank * len(expected), abs=1e-6)


@pytest.mark.lengthy
@settings(deadline=None, max_examples=20)
@given(edges, st.dictionaries(st.integers(0, 12), st.sampled_from((0, 0.5, 1, 7)), min_size=1), st.integers(1, 3))
def test_ranks_by_weights_are_those_of_networkx(rows: Edges, weights: dict[int, float], workers: int) -> None:
    graph = nx.MultiDiGraph(rows)
    given_weights = (np.array([*weights], np.int64), np.array([*weights.values()], np.float64))

    def program(graph: Graph) -> Stream:
        mine = slice(graph.scope.index, None, graph.scope.peers)
        personalisation = graph.scope.to_stream(tuple(column[mine] for column in given_weights))
        return pagerank(graph, damping=0.7, rounds=200, personalisation=personalisation)

    found = dict(answered(program, rows, workers))
    assert found.keys() == set(graph)
    chosen = {node: weight for node, weight in weights.items() if node in graph}
    if not any(chosen.values()):
        assert sum(found.values()) == pytest.approx(0, abs=1e-6)
        return
    expected = nx.pagerank(graph, 0.7, personalization=chosen, tol=1e-12, max_iter=1000)
    for node, rank in expected.items():
        assert found[node] == pytest.approx(rank * len(expected), abs=1e-6)


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf])
def test_a_weight_that_is_negative_or_not_a_number_is_refused(weight: float) -> None:
    def program(graph: Graph) -> Stream:
        return pagerank(graph, personalisation=graph.scope.to_stream((np.array([1]), np.array([weight]))))

    with pytest.raises(OperatorError, match=f"at least 0; node 1 has {weight}"):
        answered(program, [(1, 2)])


@on_workers
@pytest.mark.parametrize("partition", ["source", "edge"])
def test_several_workers_agree_on_larger_graphs(workers: int, partition: str) -> None:
    for seed in range(2):
        rows = large(seed)
        options = {"workers": workers, "partition": partition}
        assert answered(weakly_connected_components, rows, **options) == weak_components(rows)
        assert answered(strongly_connected_components, rows, **options) == strong_components(rows)
        assert answered(lambda graph: landmark_distances(graph, LANDMARKS), rows, **options) == distances(rows)


@on_workers
def test_ranks_do_not_depend_on_the_number_of_workers(workers: int) -> None:
    one, several = (np.array(answered(pagerank, large(7), count)) for count in (1, workers))
    assert (one[:, 0] == several[:, 0]).all()
    assert np.allclose(one[:, 1], several[:, 1], rtol=1e-12)


def test_a_long_chain_takes_one_round() -> None:
    chain = [(node, node - 1) for node in range(200, 0, -1)]
    assert answered(strongly_connected_components, chain) == [(node, node) for node in range(201)]


@on_workers
def test_the_component_of_the_hub_is_found_among_others(workers: int) -> None:
    ring = [(node, (node + 1) % 50) for node in range(50)]
    spokes = [(hub, node) for hub in (7, 9) for node in range(0, 50, 5)]  # 7 and 9 have equally many paths through them
    others = [(60, 61), (61, 60), (61, 3), (4, 70), (70, 71), (71, 70), (80, 81)]
    rows = ring + spokes + others
    assert answered(strongly_connected_components, rows, workers=workers) == strong_components(rows)


def test_components_follow_edges_that_come_in_later_epochs() -> None:
    found: dict[int, list[tuple[int, int]]] = {0: [], 1: [], 2: []}

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, stream = new_input(scope)
            components = strongly_connected_components(Graph(stream))
            components.inspect_time(lambda time, record: found[time[0]].append(record))
        for epoch, (source, target) in enumerate([(0, 1), (1, 2), (2, 0)]):
            session.send(source, target)
            session.advance_to(epoch + 1)

    execute_directly(program)
    assert {epoch: sorted(records) for epoch, records in found.items()} == {
        0: [(0, 0), (1, 1)],
        1: [(0, 0), (1, 1), (2, 2)],
        2: [(0, 0), (1, 0), (2, 0)],
    }


def test_more_landmarks_than_bits_are_refused() -> None:
    with pytest.raises(BuildError, match=r"^landmark_distances \(at .*test_algorithms.py:\d+\): 63 landmarks"):
        answered(lambda graph: landmark_distances(graph, range(63)), [(0, 1)])


def test_one_landmark_may_be_given_as_it_is() -> None:
    rows = [(0, 1), (1, 2), (3, 0)]
    assert answered(lambda graph: landmark_distances(graph, 1), rows) == [(0, -1), (1, 0), (2, 1), (3, -1)]
