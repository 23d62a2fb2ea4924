"""Tests of vertex programs: what they compute, when they end, and which values they receive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tests.unit.dataflow.running import collected, on_workers
from tests.unit.graphlinq.graphs import Edges, answered, edges, share
from timely import Config, Scope, Stream, Worker, execute, new_input
from timely.data.container import Array
from timely.errors import BuildError, OperatorError
from timely.graphlinq import Aggregator, Graph, Superstep, VertexProgram

FAR = 1000


def hops(graph: Graph, nodes: Stream | None = None, **options: Any) -> Stream:
    """Return (node, hops from node 0)."""
    program = VertexProgram(
        init=lambda node: np.where(node == 0, 0, FAR),
        message=lambda distance: distance + 1,
        combine=np.minimum,
        update=lambda superstep, distance, received: np.minimum(distance, received),
        sends=lambda distance: distance < FAR,
        **options,
    )
    return graph.pregel(program, nodes)


def hops_from_scratch(rows: Edges) -> list[tuple[int, int]]:
    graph = nx.DiGraph(rows)
    found = nx.single_source_shortest_path_length(graph, 0) if 0 in graph else {}
    return sorted((node, found.get(node, FAR)) for node in graph)


@settings(deadline=None, max_examples=20)
@given(edges, st.sampled_from(["source", "edge"]))
def test_hops_are_those_of_breadth_first_search(rows: Edges, partition: str) -> None:
    assert answered(hops, rows, partition=partition) == hops_from_scratch(rows)


@settings(deadline=None, max_examples=8)
@given(rows=edges, partition=st.sampled_from(["source", "edge"]))
def test_three_workers_find_the_same_hops(rows: Edges, partition: str) -> None:
    assert answered(hops, rows, 3, partition=partition) == hops_from_scratch(rows)


@on_workers
def test_aggregates_are_seen_by_all_in_the_next_superstep(workers: int) -> None:
    seen: list[tuple[int, dict[str, Any]]] = []

    def update(superstep: Superstep, count: Array, received: Array) -> Array:
        seen.append((superstep.number, dict(superstep.aggregates)))
        return count + 1

    def program(scope: Scope) -> Stream:
        return Graph(scope.to_stream(share(scope, [(node, node + 1) for node in range(20)]))).pregel(
            VertexProgram(
                init=lambda node: 0 * node,
                message=lambda count: count,
                combine=np.add,
                update=update,
                everyone=True,
                aggregators={
                    "sum": Aggregator(np.add, lambda count: count),
                    "most": Aggregator(np.maximum, lambda x: x),
                },
                until=lambda superstep: superstep.aggregates["sum"] >= 63,
            )
        )

    assert collected(program, workers) == [(node, 3) for node in range(21)]
    assert dict(seen) == {number: {"sum": 21 * (number - 1), "most": number - 1} for number in (1, 2, 3)}
    assert len(seen) == 3 * workers


@on_workers
def test_a_program_that_updates_every_node_ends_when_nothing_changes(workers: int) -> None:
    def program(scope: Scope) -> Stream:
        return hops(Graph(scope.to_stream(share(scope, [(node, node + 1) for node in range(5)]))), everyone=True)

    assert collected(program, workers) == [(node, node) for node in range(6)]


@on_workers
def test_a_program_takes_no_more_supersteps_than_allowed(workers: int) -> None:
    rows = [(node, node + 1) for node in range(5)]
    found = answered(lambda graph: hops(graph, supersteps=2), rows, workers)
    assert found == [(0, 0), (1, 1), (2, 2), (3, FAR), (4, FAR), (5, FAR)]


@on_workers
def test_messages_to_unknown_nodes_are_dropped(workers: int) -> None:
    def program(scope: Scope) -> Stream:
        graph = Graph(scope.to_stream(share(scope, [(0, 1), (1, 2), (0, 3), (3, 4), (4, 2)])))
        return hops(graph, scope.to_stream(share(scope, [(0,), (2,), (3,), (4,)])))

    assert collected(program, workers) == [(0, 0), (2, 3), (3, 1), (4, 2)]


@on_workers
def test_values_of_edges_are_seen_along_them(workers: int) -> None:
    rows = [(0, 1, 5.0), (0, 2, 1.0), (2, 1, 1.5), (1, 3, 1.0)]

    def program(scope: Scope) -> Stream:
        return Graph(scope.to_stream(share(scope, rows))).pregel(
            VertexProgram(
                init=lambda node: np.where(node == 0, 0.0, np.inf),
                message=lambda distance: distance,
                along=lambda distance, length: distance + length,
                combine=np.minimum,
                update=lambda superstep, distance, received: np.minimum(distance, received),
            )
        )

    assert collected(program, workers) == [(0, 0.0), (1, 2.5), (2, 1.0), (3, 3.5)]


@on_workers
def test_each_epoch_is_a_run_over_the_edges_until_then(workers: int) -> None:
    found: list[tuple[int, tuple[int, int]]] = []

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, stream = new_input(scope)
            hops(Graph(stream)).inspect_time(lambda time, record: found.append((time[0], record)))
        for epoch, (source, target) in enumerate([(0, 1), (2, 3), (1, 2)]):
            if worker.index == 0:
                session.send(source, target)
            session.advance_to(epoch + 1)

    execute(program, Config(workers=workers))
    assert sorted(found) == [
        *((0, each) for each in [(0, 0), (1, 1)]),
        *((1, each) for each in [(0, 0), (1, 1), (2, FAR), (3, FAR)]),
        *((2, each) for each in [(0, 0), (1, 1), (2, 2), (3, 3)]),
    ]


def test_a_node_given_twice_is_refused_by_name() -> None:
    def program(scope: Scope) -> Stream:
        return hops(Graph(scope.to_stream((np.array([0]), np.array([1])))), scope.to_stream(np.array([4, 0, 4])))

    with pytest.raises(OperatorError, match="node 4 was given more than once"):
        collected(program)


def test_an_error_names_the_time_of_the_superstep() -> None:
    def update(superstep: Superstep, state: Array, received: Array) -> Array:
        if superstep.number == 2:
            raise ValueError("two")
        return state + 1

    def program(scope: Scope) -> Stream:
        return Graph(scope.to_stream((np.array([0, 1]), np.array([1, 0])))).pregel(
            VertexProgram(
                init=lambda node: node,
                message=lambda state: state,
                combine=np.add,
                update=update,
            )
        )

    with pytest.raises(OperatorError, match=r"'pregel' failed at time \(0, 2\)"):
        collected(program)


@pytest.mark.parametrize("number", [-1, 1.5, "3", True])
def test_a_number_of_supersteps_that_cannot_be_run_is_refused(number: Any) -> None:
    with pytest.raises(BuildError, match=f"cannot run {number!r} supersteps: it is a whole number from 0 on"):
        answered(lambda graph: hops(graph, supersteps=number), [(0, 1)])


@pytest.mark.parametrize("given", [[np.add], {"sum": np.add}, {"sum": (np.add, abs)}])
def test_aggregators_of_other_kinds_are_refused(given: Any) -> None:
    with pytest.raises(BuildError, match=r"aggregators are a dictionary, such as \{'sum': Aggregator\(...\)\}, not"):
        answered(lambda graph: hops(graph, aggregators=given), [(0, 1)])


@pytest.mark.parametrize("combine", [sum, np.mean, "add"])
def test_an_aggregator_combines_by_a_ufunc(combine: Any) -> None:
    with pytest.raises(BuildError, match=r"an aggregator combines values by a ufunc, such as np\.add, not by"):
        Aggregator(combine, lambda distance: distance)


def test_an_aggregator_of_several_columns_is_refused_by_name() -> None:
    twice = Aggregator(np.add, lambda distance: (distance, distance))
    with pytest.raises(OperatorError, match="the values of aggregator 'twice' are one column, not 2"):
        answered(lambda graph: hops(graph, aggregators={"twice": twice}), [(0, 1)])


def test_nodes_in_a_list_are_refused() -> None:
    def program(scope: Scope) -> Stream:
        return hops(Graph(scope.to_stream((np.array([0]), np.array([1])))), scope.to_stream([0, 1]))

    with pytest.raises(OperatorError, match="takes batches of columns, not of kind 'list'"):
        collected(program)


def test_a_state_that_stays_nan_does_not_count_as_a_change() -> None:
    seen: list[int] = []

    def update(superstep: Superstep, state: Array, received: Array) -> Array:
        seen.append(superstep.number)
        return state + received

    def program(scope: Scope) -> Stream:
        return Graph(scope.to_stream((np.array([0, 1]), np.array([1, 0])))).pregel(
            VertexProgram(
                init=lambda node: np.where(node == 0, np.nan, 1.0),
                message=lambda state: state,
                combine=np.add,
                update=update,
                supersteps=9,
            )
        )

    (first, _), (second, _) = found = collected(program)
    assert (first, second) == (0, 1)
    assert np.isnan([state for _, state in found]).all()
    assert seen == [1, 2]


def along_of_two_columns(**options: Any) -> Callable[[Scope], Stream]:
    """Return a program in which nodes send one column, and two arrive."""
    rows = [(node, node + 1, 10 * node) for node in range(8)]
    program = VertexProgram(
        init=lambda node: (node, 0 * node),
        message=lambda state, most: state,
        along=lambda state, value: (state, value),
        combine=(np.add, np.maximum),
        update=lambda superstep, state, most, received, value: (state + 0 * received, np.maximum(most, value)),
        **options,
    )
    return lambda scope: Graph(scope.to_stream(share(scope, rows))).pregel(program)


@on_workers
def test_messages_along_edges_may_have_other_columns_if_only_receiving_nodes_are_updated(workers: int) -> None:
    program = along_of_two_columns(aggregators={"most": Aggregator(np.maximum, lambda state, most: most)})
    assert collected(program, workers) == [(node, node, max(0, 10 * node - 10)) for node in range(9)]


@on_workers
def test_messages_of_other_columns_along_edges_are_refused_if_every_node_is_updated(workers: int) -> None:
    with pytest.raises(OperatorError, match="`along` returned columns of int64, int64, but `message` returned int64"):
        collected(along_of_two_columns(everyone=True), workers)


def test_a_state_of_a_different_kind_from_the_first_is_refused() -> None:
    def program(scope: Scope) -> Stream:
        return Graph(scope.to_stream((np.array([0]), np.array([1])))).pregel(
            VertexProgram(
                init=lambda node: node,
                message=lambda state: state,
                combine=np.add,
                update=lambda superstep, state, received: state / 2,
            )
        )

    with pytest.raises(OperatorError, match="update returned a column of float64, but init returned int64"):
        collected(program)


@on_workers
@pytest.mark.parametrize("everyone", [False, True])
def test_states_and_messages_of_few_bits_do_not_wrap_round(workers: int, everyone: bool) -> None:
    def program(scope: Scope, first: int = 40) -> Stream:
        return Graph(scope.to_stream(share(scope, [(0, 1), (1, 2), (3, 2)]))).pregel(
            VertexProgram(
                init=lambda node: (np.full(len(node), first, np.int8), node < 9),
                message=lambda state, flag: (state, flag),
                combine=(np.add, np.add),
                update=lambda superstep, state, flag, received, flags: (state + received + flags, flag),
                supersteps=1,
                everyone=everyone,
            )
        )

    assert collected(program, workers) == [(0, 40, True), (1, 81, True), (2, 122, True), (3, 40, True)]
    with pytest.raises(OperatorError, match=r"init returned int8: \d+ \(int64\) does not fit into int8"):
        collected(lambda scope: program(scope, 100), workers)


@on_workers
@pytest.mark.parametrize("everyone", [False, True])
def test_an_update_may_return_a_column_of_the_state_in_the_place_of_another(workers: int, everyone: bool) -> None:
    def program(scope: Scope) -> Stream:
        return Graph(scope.to_stream(share(scope, [(0, 1), (1, 0), (2, 2)]))).pregel(
            VertexProgram(
                init=lambda node: (node, node + 10, 0 * node),
                message=lambda first, second, third: 1 + 0 * first,
                combine=np.add,
                update=lambda superstep, first, second, third, received: (second, first, first[:]),
                supersteps=1,
                everyone=everyone,
            )
        )

    assert collected(program, workers) == [(0, 10, 0, 0), (1, 11, 1, 1), (2, 12, 2, 2)]
