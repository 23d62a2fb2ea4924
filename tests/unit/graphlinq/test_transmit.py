"""Tests of values sent along edges: `transmit`, `Graph.join`, `aggregate`, degrees."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tests.unit.dataflow.running import collect, collected, on_workers
from tests.unit.graphlinq.graphs import Edges, answered, edges, share
from timely import Config, Scope, Stream, Worker, execute, execute_directly, new_input, new_unordered_input
from timely.data.container import Array
from timely.errors import BuildError, OperatorError
from timely.graphlinq import Graph, aggregate

values = st.dictionaries(st.integers(0, 12), st.integers(-9, 9), min_size=1)
partitions = st.sampled_from(["source", "edge"])


@settings(deadline=None, max_examples=20)
@given(edges, values, partitions)
def test_values_reach_all_neighbours_combined_or_not(rows: Edges, values: dict[int, int], partition: str) -> None:
    def program(scope: Scope, combine: np.ufunc | None) -> Stream:
        graph = Graph(scope.to_stream(share(scope, rows)), partition=partition)
        return graph.transmit(scope.to_stream(share(scope, list(values.items()))), combine=combine)

    sent = [(target, values[source]) for source, target in rows if source in values]
    totals: defaultdict[int, int] = defaultdict(int)
    for target, value in sent:
        totals[target] += value
    assert collected(lambda scope: program(scope, None)) == sorted(sent)
    assert collected(lambda scope: program(scope, np.add)) == sorted(totals.items())
    assert collected(lambda scope: aggregate(program(scope, np.add), np.add), 3) == sorted(totals.items())

    def reduced(scope: Scope) -> Stream:
        graph = Graph(scope.to_stream(share(scope, rows)), partition=partition)
        return graph.reduce(scope.to_stream(share(scope, list(values.items()))), np.add)

    assert collected(reduced) == sorted(totals.items())


@settings(deadline=None, max_examples=20)
@given(edges, values)
def test_a_join_sees_both_ends_and_both_values(rows: Edges, values: dict[int, int]) -> None:
    weighed = [(source, target, 10 * place) for place, (source, target) in enumerate(rows)]

    def program(scope: Scope) -> Stream:
        graph = Graph(scope.to_stream(share(scope, weighed)))
        return graph.join(scope.to_stream(share(scope, list(values.items()))), lambda *columns: columns)

    assert collected(program) == sorted((s, t, values[s], w) for s, t, w in weighed if s in values)


@settings(deadline=None, max_examples=20)
@given(st.lists(st.tuples(st.integers(-3, 3) | st.integers(10**9, 10**9 + 3), st.integers(-9, 9)), min_size=1))
def test_an_aggregate_is_one_record_a_node(rows: list[tuple[int, int]]) -> None:
    least: dict[int, int] = {}
    for node, value in rows:
        least[node] = min(value, least.get(node, value))
    assert collected(lambda scope: aggregate(scope.to_stream(share(scope, rows)), np.minimum)) == sorted(least.items())


@on_workers
def test_degrees_are_of_all_ends_so_far(workers: int) -> None:
    rows = [(1, 2), (1, 3), (-5, 1), (10**12, 1)]
    expected = [(-5, 1), (1, 2), (2, 0), (3, 0), (10**12, 1)]
    assert answered(Graph.degrees, rows, workers) == expected
    assert answered(Graph.nodes, rows, workers) == [node for node, _ in expected]


@on_workers
def test_degrees_of_all_nodes_come_at_every_time_at_which_any_edge_does(workers: int) -> None:
    def program(worker: Worker) -> list[tuple[int, tuple[int, int]]]:
        found: list[tuple[int, tuple[int, int]]] = []
        with worker.dataflow() as scope:
            session, stream = new_input(scope)
            Graph(stream).degrees().inspect_time(lambda time, record: found.append((time[0], record)))
        if worker.index == 0:
            session.send(np.arange(9), np.arange(1, 10))
            session.advance_to(1)
            session.send(0, 9)
        session.close()
        while worker.step_or_park():
            pass
        return found

    found = sorted(record for each in execute(program, Config(workers=workers)) for record in each)
    first = [(node, int(node < 9)) for node in range(10)]
    assert found == [*((0, each) for each in first), (1, (0, 2)), *((1, each) for each in first[1:])]


@on_workers
def test_a_node_is_on_one_worker_whichever_sent_it(workers: int) -> None:
    def program(scope: Scope) -> Stream:
        return aggregate(scope.to_stream((np.arange(50), np.ones(50))), np.add)

    places = Counter(node for found in collect(program, workers) for _, (node, _) in found)
    assert places == Counter(range(50))


def test_values_wait_for_the_edges_of_their_time() -> None:
    found: list[tuple[int, tuple[int, int]]] = []

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            links, stream = new_input(scope, name="edges")
            given, nodes = new_input(scope, name="nodes")
            sent = Graph(stream).transmit(nodes)
            probe = sent.inspect_time(lambda time, record: found.append((time[0], record))).probe()
        given.send(1, 7)
        given.advance_to(1)
        given.send(1, 8)
        links.send(1, 2)
        for _ in range(5):
            worker.step()
        assert not found
        links.advance_to(1)
        worker.step_while(lambda: probe.less_than(1))
        assert found == [(0, (2, 7))]
        links.send(1, 3)
        links.close()
        given.close()
        worker.step_while(lambda: not probe.done())

    execute_directly(program)
    assert sorted(found) == [(0, (2, 7)), (1, (2, 8)), (1, (3, 8))]


def test_edges_of_many_epochs_become_few_layers_and_none_is_lost() -> None:
    found: dict[int, list[int]] = {}
    epochs = 40

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            links, stream = new_input(scope, name="edges")
            given, nodes = new_input(scope, name="nodes")
            graph = Graph(stream)
            sent = graph.transmit(nodes)
            sent.inspect_time(lambda time, record: found.setdefault(time[0], []).append(record[0]))
            with scope.iterative() as loop:
                probe = graph.enter(loop).transmit(nodes.enter(loop)).leave().probe()
        for epoch in range(epochs):
            links.send(7, epoch)
            given.send(7, 0)
            links.advance_to(epoch + 1)
            given.advance_to(epoch + 1)
            if epoch % 3 == 0:
                worker.step_while(lambda: probe.less_than(given.time))
        assert len(graph.layers.at((epochs,))) <= 8
        links.close()
        given.close()
        worker.step_while(lambda: not probe.done())

    execute_directly(program)
    assert {epoch: sorted(targets) for epoch, targets in found.items()} == {
        epoch: list(range(epoch + 1)) for epoch in range(epochs)
    }


def test_edges_are_not_visible_at_a_time_that_is_not_after_theirs_even_without_readers() -> None:
    def program(worker: Worker) -> list[tuple[tuple[int, ...], int]]:
        found: list[tuple[tuple[int, ...], int]] = []
        with worker.dataflow(outer=2) as scope:
            links, stream = new_unordered_input(scope, name="edges")
            given, nodes = new_unordered_input(scope, name="nodes")
            Graph(stream).transmit(nodes).inspect_time(lambda time, record: found.append((time, record[0])))
        asked = [given.capability.delayed(time) for time in ((1, 0), (1, 5))]
        given.capability.drop()
        loads = [links.capability.delayed(time) for time in ((0, 5), (1, 0))]
        links.capability.drop()
        for target, right in enumerate(loads, 2):
            with right:
                links.send(right, 1, target)
            for _ in range(3):
                worker.step()
        for right in asked:
            with right:
                given.send(right, 1, 0)
        while worker.step_or_park():
            pass
        return found

    assert sorted(execute_directly(program)) == [((1, 0), 3), ((1, 5), 2), ((1, 5), 3)]


@pytest.mark.parametrize("data", [[(0, 1)], np.arange(3)])
def test_edges_that_are_not_columns_of_both_ends_are_refused(data: Any) -> None:
    with pytest.raises(OperatorError, match=r"'edges' failed .* edges are columns"):
        collected(lambda scope: Graph(scope.to_stream(data)).degrees())


@pytest.mark.parametrize(
    ("values", "combine", "message"),
    [
        (np.array(["a", "b"]), np.minimum, r"np\.minimum cannot combine values of StringDType"),
        (np.arange(2), np.subtract, r"np\.subtract cannot combine messages: it has no identity"),
        (np.arange(2), np.hypot, r"np\.hypot combines values of int64 to float64: convert them first"),
        (np.arange(2.0), np.gcd, r"np\.gcd cannot combine values of float64: convert them first"),
        (np.arange(2), sum, "combined by ufuncs, such as np.add, not by <built-in function sum>"),
        (np.arange(2), (np.add, np.add), r"2 ufunc\(s\) cannot combine values of 1 column"),
    ],
)
@pytest.mark.parametrize("nodes", [[0, 0], [0, 1], [1 << 40, 1 << 40]])
def test_values_that_cannot_be_combined_are_refused_wherever_they_are(
    values: Array, combine: Any, message: str, nodes: list[int]
) -> None:
    with pytest.raises(OperatorError, match=message):
        collected(lambda scope: aggregate(scope.to_stream((np.array(nodes), values)), combine))


@pytest.mark.parametrize("nodes", [[0, 0, 1], [0, 1, 2], [1 << 40, 1 << 40, 1 << 50]])
def test_a_logical_combination_is_a_boolean_of_any_number_of_values(nodes: list[int]) -> None:
    values = np.array([0, 5, 0])
    found = collected(lambda scope: aggregate(scope.to_stream((np.array(nodes), values)), np.logical_or))
    expected = {node: any(value for at, value in zip(nodes, values.tolist()) if at == node) for node in nodes}
    assert [(node, repr(value)) for node, value in found] == [(node, str(value)) for node, value in expected.items()]


@on_workers
@pytest.mark.parametrize(
    ("values", "combine", "combined"),
    [
        (np.ones(300, np.int8), np.add, 300),
        (np.array([True, True]), np.add, 2),
        (np.array([True, True]), np.logical_and, True),
        (np.full(2, 200, np.uint8), np.maximum, 200),
        (np.full(2, 200, np.uint8), np.multiply, 40_000),
        (np.full(2, 0.1, np.float32), np.add, float(np.float32(0.1) + np.float32(0.1))),
        (np.ones(1, np.bool_), np.add, 1),
    ],
)
def test_combinations_of_small_numbers_do_not_wrap_round(
    values: Array, combine: Any, combined: Any, workers: int
) -> None:
    def program(scope: Scope) -> Stream:
        nodes = np.ones(len(values), np.int64)
        return aggregate(scope.to_stream((nodes, values) if scope.index == 0 else iter([])), combine)

    ((node, found),) = collected(program, workers)
    assert (node, found, type(found)) == (1, combined, type(combined))


def test_an_unknown_partition_is_refused() -> None:
    with pytest.raises(BuildError, match="not by 'node'"):
        answered(Graph.nodes, [(0, 1)], partition="node")
