"""What operators refuse names what it is, where it was written, and what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from differential import Collection, example as example_of_collections
from timely import (
    Config,
    Gather,
    Pipeline,
    Worker,
    example,
    execute,
    execute_directly,
    log_stream,
    new_input,
    replay_into,
)
from timely.dataflow.operators.concat import concatenate
from timely.errors import BuildError, CapabilityError, OperatorError, TimelyError
from timely.graphlinq import (
    Aggregator,
    Graph,
    VertexProgram,
    binary_state_machine,
    landmark_distances,
    node_join,
    pagerank,
    state_machine,
    strongly_connected_components,
    weakly_connected_components,
)
from timely.observe.events import OperatorBuilt

NAN = float("nan")


def hops(**options: Any) -> VertexProgram:
    return VertexProgram(**{"init": abs, "message": abs, "combine": np.minimum, "update": min} | options)


def test_all_nans_are_one_key() -> None:
    columns = np.array([NAN, 1.0, NAN]), np.array([2, 3, 4])

    def added(starts: Any, values: Any) -> Any:
        return np.add.reduceat(values, starts)

    for operator in "aggregate", "combine", "combine_everywhere":
        found = example(lambda scope, operator=operator: getattr(scope.to_stream(columns), operator)(added))
        assert sorted(map(repr, found)) == ["(1.0, 3)", "(nan, 6)"], operator


def test_a_key_that_is_nan_keeps_its_state() -> None:
    def program(worker: Worker) -> list[Any]:
        found: list[Any] = []
        with worker.dataflow() as scope:
            numbers, stream = new_input(scope)

            def total(key: Any, state: Any, values: Any) -> Any:
                state = (state or 0) + int(values.sum())
                return state, [state]

            stream.state_machine(total).inspect(found.append)
        for epoch in range(3):
            numbers.send(NAN, 2)
            numbers.advance_to(epoch + 1)
        numbers.close()
        while worker.step():
            pass
        return found

    assert execute_directly(program) == [2, 4, 6]


@pytest.mark.parametrize(
    ("build", "complaint"),
    [
        (lambda stream: stream.concat([1]), r"^concat takes streams, not \[1\] \(at .*test_refused.py:\d+"),
        (
            lambda stream: stream.capture_into("x"),
            r"^capture \(at .*\): .* EventFileWriter\(path\), not 'x'$",
        ),
        (
            lambda stream: replay_into(stream.scope, ["x"]),
            r"^replay \(at .*\): .* \[EventFileReader\(path\)\], not",
        ),
        (lambda stream: replay_into(stream.scope, "x"), r"^replay \(at .*\): `sources` must be a list of sources"),
        (lambda stream: Graph([(1, 2)]), r"^Graph \(at .*d.py:\d+\): `edges` must be a stream, .* not \[\(1, 2\)\]$"),
        (lambda stream: Graph(stream, partition="x"), r"^Graph \(at .*d.py:\d+\): .* by 'edge', not by 'x'$"),
        (lambda stream: Aggregator(sum, abs), r"^Aggregator \(at .*d.py:\d+\): .* by a ufunc, .* not by <built-in"),
        (lambda stream: hops(supersteps=-1), r"^VertexProgram \(at .*d.py:\d+\): .* run -1 supersteps"),
        (lambda stream: hops(aggregators=3), r"^VertexProgram \(at .*d.py:\d+\): .* dictionary, .*, not 3$"),
        (lambda stream: pagerank(stream), r"^pagerank \(at .*d.py:\d+\): `graph` must be .*, not <stream in sc"),
        (weakly_connected_components, r"^weakly_connected_components \(at .*d.py:\d+\): `graph` must be a graph"),
        (strongly_connected_components, r"^strongly_connected_components \(at .*d.py:\d+\): `graph` must be a graph"),
        (
            lambda stream: landmark_distances(stream, [1]),
            r"^landmark_distances \(at .*d.py:\d+\): `graph` must be a graph",
        ),
        (
            lambda stream: stream.scope.feedback("a"),
            r"^feedback \(at .*d.py:\d+\): `step` must be a whole .*, not 'a'$",
        ),
        (lambda stream: stream.scope.feedback(True), r"^feedback \(at .*\): `step` must be a whole .*, not True$"),
        (lambda stream: stream.partition(1.5, abs), r"^partition \(at .*\): `parts` must be a whole .*, not 1.5$"),
        (lambda stream: stream.partition(0, abs), r"^partition \(at .*\): `parts` must be a whole .* 1, not 0$"),
        (lambda stream: stream.partition(True, abs), r"^partition \(at .*\): `parts` must be a whole .*, not True$"),
        (lambda stream: Collection(stream).iterate(3), r"must be a function of a collection, not 3"),
        (lambda stream: pagerank(Graph(stream), damping=2), r"^pagerank \(at .*d.py:\d+\): .* less than 1, not 2$"),
        (lambda stream: pagerank(Graph(stream), damping="x"), r"^pagerank \(at .*d.py:\d+\): .* than 1, not 'x'$"),
        (
            lambda stream: pagerank(Graph(stream), rounds="3"),
            r"^pagerank \(at .*d.py:\d+\): `rounds` must be .*, not '3'$",
        ),
        (
            lambda stream: pagerank(Graph(stream), rounds=1.5),
            r"^pagerank \(at .*d.py:\d+\): `rounds` must be .*, not 1.5$",
        ),
        (lambda stream: pagerank(Graph(stream), tolerance="x"), r"^pagerank \(at .*d.py:\d+\): `tol.*, not 'x'$"),
        (
            lambda stream: pagerank(Graph(stream), tolerance=-1),
            r"^pagerank \(at .*d.py:\d+\): .* at least 0, .*, not -1$",
        ),
        (lambda stream: landmark_distances(Graph(stream), 0.5), r"^landmark_distances \(at .*d.py:\d+\): .* not 0.5$"),
        (
            lambda stream: landmark_distances(Graph(stream), ["a"]),
            r"^landmark_distances \(at .*d.py:\d+\): .* not \['a'\]$",
        ),
        (
            lambda stream: Graph(stream).pregel(None),
            r"^pregel \(at .*test_refused.py:\d+\): `program` must be a VertexProgram\(.*, not None$",
        ),
        (lambda stream: stream.reclock(None), r"^reclock \(at .*refused.py:\d+\): `clock` must be a stream, .* None$"),
        (
            lambda stream: stream.binary(None, Pipeline(), Pipeline(), print),
            r"^binary \(at .*test_refused.py:\d+\): `right` must be a stream, .*, not None$",
        ),
        (
            lambda stream: stream.binary_frontier([1], Pipeline(), Pipeline(), print),
            r"^binary_frontier \(at .*test_refused.py:\d+\): `right` must be a stream, .*, not \[1\]$",
        ),
        (
            lambda stream: stream.binary_notify(5, Pipeline(), Pipeline(), print),
            r"^binary_notify \(at .*test_refused.py:\d+\): `right` must be a stream, .*, not 5$",
        ),
        (
            lambda stream: stream.aggregate(print, keys="a"),
            r"^aggregate \(at .*d.py:\d+\): `keys` must be a whole number of at least 1, not 'a'$",
        ),
        (
            lambda stream: stream.combine(print, keys=1.5),
            r"^combine locally \(at .*d.py:\d+\): `keys` must be .*, not 1.5$",
        ),
        (
            lambda stream: stream.scope.to_stream(None),
            r"^to_stream \(at .*d.py:\d+\): `data` must be .*, not None$",
        ),
        (
            lambda stream: stream.scope.to_stream(5),
            r"^to_stream \(at .*d.py:\d+\): `data` must be .*, not 5$",
        ),
    ],
)
def test_what_cannot_be_built_is_refused(build: Callable[[Any], Any], complaint: str) -> None:
    with pytest.raises(BuildError, match=complaint):
        example(lambda scope: build(scope.to_stream([1])))


def in_a_loop(build: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """Return a program that builds something of a loop and a stream in it."""

    def program(stream: Any) -> None:
        with stream.scope.iterative() as loop:
            build(loop, stream.enter(loop))

    return program


@pytest.mark.parametrize(
    ("build", "complaint"),
    [
        (lambda stream: concatenate([]), "concatenate .* needs at least one stream"),
        (lambda stream: stream.scope.loop_variable(), "has no loop counter"),
        (lambda stream: stream.leave(), "leave .* it is the outermost scope of its dataflow"),
        (in_a_loop(lambda loop, inside: inside.leave(loop.iterative().__enter__())), "does not lie around it"),
        (in_a_loop(lambda loop, _: loop.iterator_source(iter([]), abs)), "epochs of an iterator have one coordinate"),
        (in_a_loop(lambda loop, _: log_stream(loop, OperatorBuilt)), "a log has epochs and nothing else"),
        (lambda stream: log_stream(stream.scope, OperatorBuilt, interval=0), "interval must be positive, .* not 0$"),
        (lambda stream: log_stream(stream.scope, OperatorBuilt, interval="1"), "interval must be .*, not '1'$"),
        (lambda stream: stream.capture_into(5), "capture .* `sink` must be what events are pushed into"),
        (lambda stream: replay_into(stream.scope, 5), "replay .* `sources` must be a list of sources"),
        (lambda stream: stream.unary(Gather(-1), print), "all is gathered at a worker, .* not at -1"),
        (
            in_a_loop(lambda loop, inside: inside.probe_with(inside.leave().probe())),
            r"a probe looks at times of 1 coordinate\(s\), so it cannot look at",
        ),
    ],
)
def test_what_cannot_be_built_is_refused_at_its_line(build: Callable[[Any], Any], complaint: str) -> None:
    with pytest.raises(BuildError, match=complaint) as refusal:
        example(lambda scope: build(scope.to_stream([1])))
    assert f"at {__file__}:" in str(refusal.value)


@pytest.mark.parametrize(
    ("build", "role"),
    [
        (lambda nodes: Graph(nodes).transmit(nodes, along=5), r"transmit .* `along` must be a function"),
        (lambda nodes: Graph(nodes).transmit([5]), r"transmit .* `nodes` must be a stream"),
        (lambda nodes: Graph(nodes).join(nodes, 5), r"graph_join .* `function` must be a function"),
        (lambda nodes: Graph(nodes).join(5, print), r"graph_join .* `nodes` must be a stream"),
        (lambda nodes: Graph(nodes).reduce(nodes, np.add, along=5), r"graph_reduce .* `along` must be a function"),
        (lambda nodes: node_join(nodes, nodes, 5), r"node_join .* `function` must be a function"),
        (lambda nodes: state_machine(nodes, 5, print), r"state_machine .* `init` must be a function"),
        (lambda nodes: state_machine(nodes, print, 5), r"state_machine .* `transition` must be a function"),
        (lambda nodes: binary_state_machine(nodes, nodes, 5, abs, abs), r"binary_state_machine .* `init` must"),
        (lambda nodes: binary_state_machine(nodes, nodes, abs, 5, abs), r"binary_state_machine .* `on_left` must"),
        (lambda nodes: binary_state_machine(nodes, nodes, abs, abs, 5), r"binary_state_machine .* `on_right` must"),
        (lambda nodes: Aggregator(np.add, 5), r"Aggregator .* `values` must be a function"),
        *[
            (lambda nodes, role=role: hops(**{role: 5}), rf"VertexProgram .* `{role}` must be a function")
            for role in ("init", "message", "update", "along", "sends", "until")
        ],
    ],
)
def test_a_graph_refuses_what_is_not_a_function_or_a_stream_where_it_is_given(
    build: Callable[[Any], Any], role: str
) -> None:
    with pytest.raises(BuildError, match=rf"^{role}.*, not \[?5\]?$") as refusal:
        example(lambda scope: build(scope.to_stream((np.array([1]), np.array([2])))))
    assert f"(at {__file__}:" in str(refusal.value)


def test_an_example_of_streams_refuses_a_collection() -> None:
    for build in (lambda scope: Collection.of(scope, 1), lambda scope: Collection.of(scope, 1).arrange_by_self()):
        with pytest.raises(
            BuildError, match=r"a stream, but returned a collection: differential.example\(\) shows its"
        ):
            example(build)


def give_back(what: Callable[[Any, Any, Any], object]) -> Callable[[Any], Any]:
    """Return an operator that calls a function with its output, the notificator and the right of each message."""

    def logic(input: Any, output: Any, notificator: Any) -> None:
        for right, _ in input:
            what(output, notificator, right)

    return lambda stream: stream.unary_notify(Pipeline(), logic, name="rights")


@pytest.mark.parametrize(
    ("operator", "complaint"),
    [
        (
            give_back(lambda output, asks, right: right.retain(-1)),
            r"'rights' .* has 1 output\(s\), and none with the .* -1",
        ),
        (
            give_back(lambda output, asks, right: right.retain(1)),
            r"'rights' .* has 1 output\(s\), and none with the .* 1",
        ),
        pytest.param(
            give_back(lambda output, asks, right: asks.notify_at(5)),
            r"notify_at takes a capability, not 5: that of",
            marks=pytest.mark.interpreted,  # compiled, the type of the argument is checked before
        ),
        (
            lambda stream: stream.state_machine(lambda key, state: None),
            r"transition returns \(state, records\), not None",
        ),
        (
            lambda stream: stream.state_machine(lambda key, state: (1, None)),
            r"transition returns \(state, records\), with a list of records, not \(1, None\)",
        ),
        (
            lambda stream: stream.state_machine(lambda key, state: (1, "ab")),
            r"transition returns \(state, records\), with a list of records, not \(1, 'ab'\)",
        ),
        (
            lambda stream: stream.state_machine(lambda key, state: (1, {"a": 2})),
            r"transition returns \(state, records\), with a list of records, not \(1, \{'a': 2\}\)",
        ),
        (
            lambda stream: stream.accumulate([], lambda state, x: state.extend(x)),
            "the fold returned None: it returns the",
        ),
    ],
)
def test_what_an_operator_cannot_do_is_an_error_that_names_it(operator: Callable[[Any], Any], complaint: str) -> None:
    with pytest.raises(OperatorError, match=complaint):
        example(lambda scope: operator(scope.to_stream(np.array([1]))))


def test_only_whole_numbers_add_up() -> None:
    with pytest.raises(
        OperatorError, match=r"what is added up must be one integer for each of the 2 rows, not float64"
    ):
        example_of_collections(lambda scope: Collection.of(scope, [1, 1], [2, 3]).totals(lambda key, x: x * 0.5))


def test_an_input_that_is_to_go_back_is_named() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers, _ = new_input(scope, name="numbers")
        numbers.advance_to(3)
        numbers.advance_to(1)

    with pytest.raises(
        CapabilityError, match=r"^operator 'numbers' \(built at .*\): a capability for \(3,\) cannot go back"
    ):
        execute_directly(program)


def test_a_worker_drops_only_dataflows_of_its_own() -> None:
    others: dict[int, Any] = {}

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            scope.to_stream([1]).exchange().probe()
        others[worker.index] = scope.dataflow
        with worker.dataflow() as scope:
            scope.to_stream([1]).exchange().probe()
        worker.step_while(lambda: len(others) < 2)
        for dataflow in others[1 - worker.index], None, "x", True:
            with pytest.raises(
                BuildError, match=rf"worker {worker.index} cannot drop .*, which is not a dataflow of its own"
            ):
                worker.drop_dataflow(dataflow)  # type: ignore[arg-type]
        for number in (-1, 2):
            with pytest.raises(BuildError, match=rf"cannot drop dataflow {number}: it has built 2"):
                worker.drop_dataflow(number)
        for _ in range(2):
            worker.drop_dataflow(1)

    execute(program, Config(workers=2))


@pytest.mark.parametrize("keys", [-1, 0, 1.5])
def test_a_number_of_key_columns_that_is_none_is_refused(keys: Any) -> None:
    with pytest.raises(TimelyError, match="a key is of at least one column"):
        example_of_collections(lambda scope: Collection.of(scope, [1, 2], keys=keys).count())
