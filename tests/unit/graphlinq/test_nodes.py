"""Tests of operators with state for each node: joins, state machines, filters, distinct nodes, numbers for names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import timely.graphlinq.names as names_module
from tests.unit.dataflow.running import collected, on_workers
from tests.unit.graphlinq.graphs import share
from timely import Columns, Config, Scope, Stream, Time, Worker, example, execute, execute_directly, new_input
from timely.data.container import Array
from timely.errors import BuildError, DataError, OperatorError
from timely.graphlinq import (
    Graph,
    aggregate,
    binary_state_machine,
    count_nodes,
    dense_renaming,
    distinct_nodes,
    filter_by,
    node_join,
    pagerank,
    renamed,
    state_machine,
)
from timely.graphlinq.algorithms.wcc import SMALLEST_NODE
from timely.graphlinq.index import Ints
from timely.graphlinq.names import in_order_of_names

Sent = list[tuple[int, int, int]]
sent = st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 3), st.integers(-9, 9)), max_size=20).map(sorted)
"""Rows of (epoch, node, value), in the order of epochs."""

few = settings(deadline=None, max_examples=20)


def results(operator: Callable[..., Stream], *inputs: Sent) -> list[tuple[Time, Any]]:
    """Return (time, record), in their order, of an operator on one stream for each of `inputs`."""
    found: list[tuple[Time, Any]] = []

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            handles, streams = zip(*(new_input(scope) for _ in inputs))
            operator(*streams).inspect_time(lambda time, record: found.append((time, record)))
        for handle, rows in zip(handles, inputs):
            for epoch, *record in rows:
                handle.advance_to(epoch)
                handle.send(*record)
                handle.flush()

    execute_directly(program)
    return found


def running_total(total: Array, value: Array) -> tuple[Array, Array]:
    return total + value, total + value


@few
@given(sent)
def test_a_state_machine_moves_each_node_record_by_record(rows: Sent) -> None:
    totals: Counter[int] = Counter()
    expected = []
    for epoch, node, value in rows:
        totals[node] += value
        expected.append(((epoch,), (node, 100 * node + totals[node])))
    found = results(lambda stream: state_machine(stream, lambda node: 100 * node, running_total), rows)
    assert sorted(found) == sorted(expected)
    assert [time for time, _ in found] == sorted(time for time, _ in found)
    for node in totals:
        assert [r for _, r in found if r[0] == node] == [r for _, r in expected if r[0] == node]


@few
@given(sent, sent)
def test_two_streams_move_the_same_states_the_left_one_first(left: Sent, right: Sent) -> None:
    def machine(paid: Stream, used: Stream) -> Stream:
        def back(total: Array, value: Array) -> tuple[Array, Array, Array]:
            return total - value, total - value, value > 0

        return binary_state_machine(paid, used, lambda node: 0, running_total, back)

    totals: Counter[int] = Counter()
    expected = []
    for epoch, side, node, value in sorted(
        [(epoch, 0, node, value) for epoch, node, value in left]
        + [(epoch, 1, node, value) for epoch, node, value in right],
        key=lambda row: row[:2],
    ):
        totals[node] += -value if side else value
        if not side or value > 0:
            expected.append(((epoch,), (node, totals[node])))
    assert sorted(results(machine, left, right)) == sorted(expected)


@few
@given(sent, sent)
def test_a_join_finds_the_latest_value_of_each_node(nodes: Sent, values: Sent) -> None:
    latest = list({(epoch, node): (epoch, node, value) for epoch, node, value in values}.values())
    differences = []
    expected = []
    for epoch, node, value in nodes:
        known = [value for when, about, value in latest if about == node and when <= epoch]
        if known:
            expected.append(((epoch,), (node, value, known[-1])))
            differences.append(((epoch,), (node, value - known[-1])))
    assert sorted(results(node_join, nodes, latest)) == sorted(expected)

    def subtracted(nodes: Stream, values: Stream) -> Stream:
        return node_join(nodes, values, lambda value, other: value - other)

    assert sorted(results(subtracted, nodes, latest)) == sorted(differences)


@few
@given(sent, sent)
def test_nodes_are_chosen_from_the_time_they_are_added(nodes: Sent, chosen: Sent) -> None:
    expected = [
        ((epoch,), (node, value))
        for epoch, node, value in nodes
        if any(when <= epoch and other == node for when, other, _ in chosen)
    ]
    assert sorted(results(filter_by, nodes, chosen)) == sorted(expected)


@few
@given(sent)
def test_distinct_nodes_are_emitted_once_and_counts_at_each_time(rows: Sent) -> None:
    first = {node: (epoch,) for epoch, node, _ in reversed(rows)}
    assert sorted(results(distinct_nodes, rows)) == sorted((time, node) for node, time in first.items())
    counts = Counter((epoch, node) for epoch, node, _ in rows)
    assert sorted(results(count_nodes, rows)) == sorted(((e,), (n, count)) for (e, n), count in counts.items())


@few
@given(sent)
def test_numbers_of_names_are_dense_and_in_the_order_of_times(rows: Sent) -> None:
    found = results(dense_renaming, rows)
    first = {node: (epoch,) for epoch, node, _ in reversed(rows)}
    assert {name: time for time, (name, _) in found} == first
    assert sorted(number for _, (_, number) in found) == list(range(len(first)))
    by_number = [time for _, time in sorted((number, time) for time, (_, number) in found)]
    assert by_number == sorted(by_number)


@on_workers
def test_numbers_of_names_do_not_depend_on_the_number_of_workers(workers: int) -> None:
    names = [(f"node {place % 50}",) for place in range(200)]

    def program(scope: Scope) -> Stream:
        return dense_renaming(scope.to_stream(share(scope, names)))

    assert collected(program, workers) == collected(program)


def test_numbers_of_names_that_arrive_epoch_by_epoch_do_not_depend_on_it_either() -> None:
    names = np.random.default_rng(3).integers(0, 40, (3, 25))

    def numbered(workers: int) -> list[tuple[Time, Any]]:
        def program(worker: Worker) -> list[tuple[Time, Any]]:
            found: list[tuple[Time, Any]] = []
            with worker.dataflow() as scope:
                session, stream = new_input(scope)
                dense_renaming(stream).inspect_time(lambda time, record: found.append((time, record)))
            for epoch, column in enumerate(names):
                session.send(column[worker.index :: worker.peers])
                session.advance_to(epoch + 1)
            session.close()
            while worker.step_or_park():
                pass
            return found

        return sorted(each for found in execute(program, Config(workers=workers)) for each in found)

    assert {time for time, _ in numbered(1)} == {(0,), (1,), (2,)}
    assert numbered(3) == numbered(1)


@few
@given(st.lists(st.lists(st.integers(0, 30), max_size=20), max_size=5), st.integers(0, 40))
def test_text_of_any_length_is_found_again(epochs: list[list[int]], size: int) -> None:
    """NumPy keeps texts of more than 15 bytes apart from the array, in memory of their own for each array."""
    names = [[f"{'node ':x<{size}}{number}" for number in epoch] for epoch in epochs]

    def program(worker: Worker) -> list[tuple[Time, Any]]:
        found: list[tuple[Time, Any]] = []
        with worker.dataflow() as scope:
            session, stream = new_input(scope)
            edges, numbers = renamed(stream)
            edges.inspect_time(lambda time, record: found.append((time, record)))
            numbers.inspect(lambda record: named.update([record]))
        for epoch, column in enumerate(names):
            session.send(np.array(column, np.dtypes.StringDType()), np.array(column[::-1], np.dtypes.StringDType()))
            session.advance_to(epoch + 1)
        session.close()
        worker.step_while(lambda: bool(worker.dataflows))
        return found

    named: dict[int, str] = {}
    found = [(time, (named[one], named[other])) for time, (one, other) in execute_directly(program)]
    expected = [((epoch,), edge) for epoch, column in enumerate(names) for edge in zip(column, column[::-1])]
    assert sorted(found) == sorted(expected)
    assert sorted(named) == list(range(len({name for column in names for name in column})))
    assert len(set(named.values())) == len(named)


@pytest.mark.parametrize("operator", ["numbers", "edges"])
def test_an_epoch_of_known_names_sorts_nothing_and_new_ones_few_times(
    operator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    def counting(names: Array, numbers: Ints) -> tuple[Array, Ints]:
        sizes.append(len(names))
        return in_order_of_names(names, numbers)

    monkeypatch.setattr(names_module, "in_order_of_names", counting)

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, stream = new_input(scope)
            if operator == "numbers":
                probe, tables = dense_renaming(stream).probe(), 1
            else:
                probe, tables = renamed(stream.map(lambda name: (name, name)))[0].probe(), 3

        def send(names: Array) -> int:
            """Return how many names were sorted."""
            sizes.clear()
            session.send(names)
            session.advance_to(session.epoch + 1)
            worker.step_while(lambda: probe.less_than(session.time))
            return sum(sizes)

        assert send(np.arange(1000)) == tables * 1000
        assert send(np.array([500])) == 0
        assert sum(send(np.array([1000 + number])) for number in range(1000)) <= tables * 1000 * 12

    execute_directly(program)


@on_workers
def test_renamed_edges_have_the_names_they_had(workers: int) -> None:
    edges = [(f"n{place % 7}", f"n{place % 11}", place) for place in range(60)]

    def program(which: int) -> Callable[[Scope], Stream]:
        return lambda scope: renamed(scope.to_stream(share(scope, edges)))[which]

    names = dict(collected(program(1), workers))
    assert names.keys() == set(range(11))
    found = collected(program(0), workers)
    assert sorted((names[source], names[target], value) for source, target, value in found) == sorted(edges)


@on_workers
@pytest.mark.parametrize(
    "edges",
    [
        (np.array([np.nan, 1.0]), np.array([2.0, np.nan])),
        (np.array(["NaT", "2026-01-01"], "datetime64[D]"), np.array(["2026-01-02", "NaT"], "datetime64[D]")),
    ],
)
def test_all_that_are_no_value_have_one_number(edges: tuple[Array, Array], workers: int) -> None:
    def program(which: int) -> Callable[[Scope], Stream]:
        return lambda scope: renamed(scope.to_stream(iter(2 * [Columns(edges)] if scope.index == 0 else [])))[which]

    names = {str(name): number for number, name in collected(program(1), workers)}
    assert sorted(names.values()) == [0, 1, 2]
    expected = [tuple(names[str(name)] for name in edge) for edge in zip(*(column.tolist() for column in edges))]
    assert sorted(collected(program(0), workers)) == sorted(2 * expected)


@on_workers
def test_whole_numbers_of_two_types_keep_names_of_their_own(workers: int) -> None:
    first = 2**53
    edges = np.arange(first, first + 2, dtype=np.uint64), np.arange(first + 2, first + 4)

    def program(which: int) -> Callable[[Scope], Stream]:
        def numbered(scope: Scope) -> Stream:
            # The second batch has the numbers of the first with a signed type.
            batches = [Columns(edges), Columns((edges[1], edges[0].astype(np.int64)))]
            return renamed(scope.to_stream(iter(batches if scope.index == 0 else [])))[which]

        return numbered

    names = dict(collected(program(1), workers))
    assert sorted(names.values()) == list(range(first, first + 4))
    found = [(names[source], names[target]) for source, target in collected(program(0), workers)]
    one, other = (list(range(start, start + 2)) for start in (first, first + 2))
    assert sorted(found) == sorted([*zip(one, other), *zip(other, one)])


def test_names_of_two_kinds_are_refused() -> None:
    with pytest.raises(OperatorError, match=r"an edge holds 1 \(int64\) in one batch and 'a'"):
        collected(lambda scope: renamed(scope.to_stream((np.array([1]), np.array(["a"]))))[0])


def test_rounds_of_an_epoch_come_before_the_next_epoch() -> None:
    seen: list[int] = []

    def note(state: Array, value: Array) -> tuple[Array, Array, Array]:
        seen.extend(value.tolist())
        return state, value + 1, value % 10 < 5

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, stream = new_input(scope)
            with scope.iterative() as loop:
                handle, again = loop.feedback()
                moved = state_machine(stream.enter(loop).concat(again), lambda node: 0, note)
                moved.connect_loop(handle)
        for epoch in range(3):
            session.send(0, 10 * epoch)
            session.advance_to(epoch + 1)
        session.close()

    execute_directly(program)
    assert seen == [10 * epoch + turn for epoch in range(3) for turn in range(6)]


def test_a_transition_without_output_is_refused() -> None:
    with pytest.raises(OperatorError, match="a transition must return"):
        results(lambda stream: state_machine(stream, lambda node: 0, lambda state, value: state), [(0, 1, 2)])


def test_transitions_that_return_different_columns_are_refused() -> None:
    def machine(left: Stream, right: Stream) -> Stream:
        def twice(state: Array, value: Array) -> tuple[Array, tuple[Array, Array]]:
            return state, (value, value)

        return binary_state_machine(left, right, lambda node: 0, running_total, twice)

    with pytest.raises(OperatorError, match="of 2 and of 3 columns"):
        results(machine, [(0, 1, 2)], [(0, 1, 2)])


def test_nodes_that_are_not_integers_are_refused() -> None:
    with pytest.raises(OperatorError, match="nodes are whole numbers"):
        collected(lambda scope: distinct_nodes(scope.to_stream(np.array(["a"]))))


def test_an_error_names_the_time_of_its_records() -> None:
    def move(state: Array, value: Array) -> tuple[Array, Array]:
        if value[0] == 2:
            raise ValueError("two")
        return state, value

    with pytest.raises(OperatorError, match=r"failed at time \(2,\)"):
        results(lambda stream: state_machine(stream, lambda node: 0, move), [(epoch, 0, epoch) for epoch in range(5)])


@pytest.mark.parametrize(
    ("first", "second", "joined"),
    [
        (np.array([5], np.int32), np.array([7]), 7),
        (np.array([0.5], np.float32), np.array([0.1]), float(np.float32(0.1))),
        (np.array([0.5]), np.array([5]), 5.0),
        (np.array([2**63], np.uint64), np.array([7]), 7),
        (np.array(["a"]), np.array(["abc"]), "abc"),
        (np.array([b"a"]), np.array([b"abc"], object), b"abc"),
        (np.array([5]), np.array([True]), 1),
        (
            np.array([True]),
            np.array(["x"], np.dtypes.StringDType()),
            DataError("values of StringDType() cannot become values of bool"),
        ),
        (np.array([True]), np.array([5]), DataError("values of int64 cannot become values of bool")),
        (np.array([5]), np.array([0.5]), DataError("values of float64 cannot become values of int64")),
        (np.array(["1"]), np.array([1]), DataError("values of int64 cannot become values of StringDType()")),
        (np.array([5], np.int8), np.array([300]), DataError("300 (int64) does not fit into int8")),
        (np.array([5], np.uint8), np.array([-1]), DataError("-1 (int64) does not fit into uint8")),
        (np.array([0.5]), np.array([2**53 + 1]), DataError("9007199254740993 (int64) does not fit into float64")),
        (
            np.array([5]),
            np.array([2**63], np.uint64),
            DataError("9223372036854775808 (uint64) does not fit into int64"),
        ),
        (np.array([2**63], np.uint64), np.array([-1]), DataError("-1 (int64) does not fit into uint64")),
    ],
)
def test_values_of_nodes_are_kept_unchanged_or_refused(first: Array, second: Array, joined: Any) -> None:
    for late in (1, 2):

        def program(worker: Worker, node: int = late) -> list[Any]:
            found: list[Any] = []
            with worker.dataflow() as scope:
                (asking, nodes), (telling, values) = new_input(scope), new_input(scope)
                node_join(nodes, values).inspect(found.append)
            telling.send_batch(Columns((np.array([1]), first)))
            telling.advance_to(1)
            telling.send_batch(Columns((np.array([node]), second)))
            asking.advance_to(1)
            asking.send(np.array([node]))
            for handle in (asking, telling):
                handle.close()
            while worker.step_or_park():
                pass
            return found

        if isinstance(joined, DataError):
            with pytest.raises(OperatorError, match=f"operator 'node_join' failed .*{re.escape(str(joined))}"):
                execute_directly(program)
        else:
            assert execute_directly(program) == [(late, joined)]


def test_a_state_of_few_bits_does_not_wrap_round() -> None:
    def machine(stream: Stream) -> Stream:
        return state_machine(stream, lambda node: np.zeros(len(node), np.int8), running_total)

    assert results(machine, [(0, 1, 60), (0, 1, 60)]) == [((0,), (1, 60)), ((0,), (1, 120))]
    with pytest.raises(OperatorError, match=r"180 \(int64\) does not fit into int8"):
        results(machine, [(0, 1, 60), (0, 1, 60), (0, 1, 60)])


def test_later_nodes_begin_with_states_of_the_type_of_the_first() -> None:
    def machine(stream: Stream) -> Stream:
        return state_machine(stream, lambda node: 0.5 if node[0] else 0, running_total)

    with pytest.raises(OperatorError, match="values of float64 cannot become values of int64"):
        results(machine, [(0, 0, 1), (1, 1, 1)])


@pytest.mark.parametrize(
    "operator",
    [
        lambda graph, given: aggregate(given, np.add),
        lambda graph, given: binary_state_machine(given, given, running_total, running_total, running_total),
        lambda graph, given: count_nodes(given),
        lambda graph, given: dense_renaming(given),
        lambda graph, given: distinct_nodes(given),
        lambda graph, given: filter_by(given, graph.nodes()),
        lambda graph, given: filter_by(graph.nodes(), given),
        lambda graph, given: node_join(given, graph.degrees()),
        lambda graph, given: node_join(graph.degrees(), given),
        lambda graph, given: renamed(given)[0],
        lambda graph, given: state_machine(given, running_total, running_total),
        lambda graph, given: graph.pregel(SMALLEST_NODE, given),
        lambda graph, given: pagerank(graph, personalisation=given),
    ],
)
def test_what_is_not_a_stream_is_refused_where_the_operator_is_built(operator: Callable[..., Stream]) -> None:
    def program(scope: Scope) -> Stream:
        return operator(Graph(scope.to_stream((np.array([1]), np.array([2])))), [1, 2])

    with pytest.raises(BuildError, match=r"\(at .*test_nodes\.py:.*must be a stream, as .*, not \[1, 2\]"):
        example(program)


@pytest.mark.parametrize(
    ("operator", "message"),
    [
        (lambda given: aggregate(given, np.add), "nodes are a column of whole numbers, not records in a list"),
        (count_nodes, "nodes are a column of whole numbers, not records in a list"),
        (distinct_nodes, "nodes are a column of whole numbers, not records in a list"),
        (dense_renaming, "names are a column, not records in a list"),
        (
            lambda given: renamed(given)[0],
            r"edges are columns \(source, .*\), not a single column or records in a list",
        ),
    ],
)
def test_records_in_a_list_are_refused(operator: Callable[[Stream], Stream], message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        example(lambda scope: operator(scope.to_stream([("a", "b")])))
