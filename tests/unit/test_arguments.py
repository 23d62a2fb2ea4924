"""Arguments that are not collections or numbers are refused at the program's line, with the operator's name."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np
import pytest

import differential
import timely
from differential import Collection, Variable, example, graphs
from differential.delta.half_join import count_rows, half_join
from timely import (
    Input,
    OperatorBuilder,
    Pipeline,
    Scope,
    Worker,
    execute_directly,
    new_input,
    new_unordered_input,
    rowwise,
    source,
)
from timely.errors import BuildError, DataError

NOT_COLLECTIONS = (None, [1, 2], 7, np.array([1]), Collection, "edges")
ALGORITHMS = {name: getattr(graphs, name) for name in graphs.__all__ if name != "grammar_reachability"}


def collections(algorithm: Callable[..., Any]) -> list[str]:
    """Return the names of the collections that an algorithm takes."""
    parameters = inspect.signature(algorithm).parameters.values()
    return [parameter.name for parameter in parameters if parameter.annotation == "Collection"]


def arguments(scope: Scope, algorithm: Callable[..., Any]) -> dict[str, Any]:
    """Return a collection for each one that an algorithm takes, and numbers for its other parameters."""
    parameters = inspect.signature(algorithm).parameters.values()
    names = [parameter.name for parameter in parameters if str(parameter.annotation).startswith("Collection")]
    known = dict.fromkeys(names, Collection.of(scope, 1, 2))
    return known | {"k": 1} if "k" in inspect.signature(algorithm).parameters else known


@pytest.mark.parametrize("name", ALGORITHMS)
def test_an_algorithm_refuses_a_value_that_is_not_a_collection(name: str) -> None:
    algorithm = ALGORITHMS[name]
    if name == "motif":
        algorithm = lambda edges: graphs.motif(edges, [(0, 1)])  # noqa: E731
        algorithm.__annotations__ = {"edges": "Collection"}

    def program(scope: Scope) -> Collection:
        good = Collection.of(scope, 1, 2)
        for role in collections(algorithm):
            for bad in (*NOT_COLLECTIONS, good.stream):
                with pytest.raises(
                    BuildError, match=rf"\(at {__file__}:\d+\): `{role}` must be a collection, not "
                ) as found:
                    algorithm(**arguments(scope, algorithm) | {role: bad})
                assert name.split("_")[0] in str(found.value) or "triangle" in name or "clique" in name
        return good

    assert collections(algorithm)
    example(program)


@pytest.mark.parametrize("bad", [None, [1], 1.5, True, -1])
def test_a_number_of_rounds_must_be_an_integer(bad: Any) -> None:
    def program(scope: Scope) -> Collection:
        edges = Collection.of(scope, 1, 2)
        for build in (
            lambda: graphs.pagerank(edges, rounds=bad),
            lambda: graphs.pagerank(edges, unit=bad),
            lambda: graphs.label_propagation(edges, rounds=bad),
            lambda: graphs.k_core(edges, bad),
        ):
            with pytest.raises(BuildError, match=rf"{__file__}:\d+\): `\w+` must be a whole number of at least 0"):
                build()
        return edges

    example(program)


@pytest.mark.parametrize("bad", NOT_COLLECTIONS, ids=repr)
def test_an_operator_of_two_collections_refuses_a_value_that_is_not_one(bad: Any) -> None:
    def program(scope: Scope) -> Collection:
        edges = Collection.of(scope, 1, 2)
        for name in (
            "concat",
            "join",
            "union",
            "intersect",
            "except_",
            "symmetric_difference",
            "semijoin",
            "assert_eq",
        ):
            message = rf"^{name.rstrip('_')} \(at {__file__}:\d+\): `[a-z0-9 ]+` must be a collection, not "
            with pytest.raises(BuildError, match=message):
                getattr(edges, name)(bad)
        with pytest.raises(BuildError, match=r"^antijoin \(at .*must be a collection, not "):
            edges.antijoin(bad)
        with pytest.raises(BuildError, match=r"^cogroup \(at .*must be a collection, not "):
            edges.cogroup(bad, lambda groups: (np.arange(len(groups)), 0))
        return edges

    example(program)


def test_a_join_with_another_dataflow_names_the_way_to_share_it() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow("one") as scope:
            one = Collection.of(scope, 1, 2)
            arranged = one.arrange_by_key()
        with worker.dataflow("two") as scope:
            two = Collection.of(scope, 1, 2)
            for other in (one, arranged):
                with pytest.raises(BuildError, match=r"\('two'\) cannot be joined with .*\('one'\): import the trace"):
                    two.join(other)

    execute_directly(program)


def test_a_function_of_rows_receives_the_records_of_a_list() -> None:
    seen: list[Any] = []

    def program(worker: Worker) -> None:
        handles: list[Input] = []
        with worker.dataflow() as scope:
            records, stream = new_input(scope)
            handles.append(records)
            stream.map(rowwise(lambda record: (record, 1))).inspect(seen.append)
        records.send_batch(["any", (1, 2), 3])

    execute_directly(program)
    assert seen == [("any", 1), ((1, 2), 1), (3, 1)]


def test_a_collection_of_another_dataflow_is_refused_with_the_way_to_share_it() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow("one") as scope:
            one = Collection.of(scope, 1, 2)
            arranged, stream = one.arrange_by_key(), scope.to_stream([1])
        with worker.dataflow("two") as scope:
            two = Collection.of(scope, 1, 2)
            for build, words in (
                (lambda: one.enter(scope), "of another dataflow: import its trace there"),
                (lambda: arranged.enter(scope), "of another dataflow: import its trace there"),
                (lambda: two.concat(one), "import its trace there"),
                (lambda: stream.enter(scope), "captured and replayed here"),
                (lambda: scope.to_stream([1]).concat(stream), "captured and replayed here"),
                (
                    lambda: one.map(lambda *row: row),
                    rf"to it \(at {__file__}:\d+\). Another .*import_into",
                ),
                (arranged.count, "Another dataflow has what is in this one by its trace"),
                (lambda: stream.map(print), "capture and replay"),
            ):
                with pytest.raises(BuildError, match=words):
                    build()  # type: ignore[operator]

    execute_directly(program)


def _operators_of_collections(scope: Scope, bad: Any) -> dict[str, Callable[[], object]]:
    edges, inner = Collection.of(scope, 1, 2), scope.iterative()
    one = ("map", "attempt", "flat_map", "filter", "explode", "delay", "inspect", "inspect_batch", "threshold")
    more = ("reduce", "reduce_each", "totals", "argmin", "argmax")
    arranged = edges.arrange_by_key()
    return {name: partial(getattr(edges, name), bad) for name in (*one, *more)} | {
        "join_map": lambda: edges.join_map(edges, bad),
        "cogroup": lambda: edges.cogroup(edges, bad),
        "identifiers": lambda: edges.identifiers(hash=bad),
        "window": lambda: edges.window(2, at=bad),
        "enter_at": lambda: edges.enter_at(inner, bad),
        "propagate": lambda: graphs.propagate(edges, edges, rounds=bad),
        "half_join": lambda: half_join(edges, arranged, bad),
        "count_rows": lambda: count_rows(edges, arranged, bad),
    }


def _operators_of_streams(scope: Scope, bad: Any) -> dict[str, Callable[[], object]]:
    stream, here = scope.to_stream([1]), Pipeline()
    one = ("map", "filter", "flat_map", "map_batch", "inspect", "inspect_batch", "inspect_time", "delay", "branch")
    more = ("exchange", "branch_when", "ok_err", "state_machine", "aggregate", "all_reduce", "all_reduce_by_tree")
    return {name: partial(getattr(stream, name), bad) for name in (*one, *more)} | {
        "accumulate": lambda: stream.accumulate(0, bad),
        "partition": lambda: stream.partition(2, bad),
        "sink": lambda: stream.sink(here, bad),
        "unary": lambda: stream.unary(here, bad),
        "unary_frontier": lambda: stream.unary_frontier(here, bad),
        "unary_notify": lambda: stream.unary_notify(here, bad),
        "binary": lambda: stream.binary(stream, here, here, bad),
        "binary_frontier": lambda: stream.binary_frontier(stream, here, here, bad),
        "binary_notify": lambda: stream.binary_notify(stream, here, here, bad),
        "source": lambda: source(scope, bad),
        "rowwise": lambda: rowwise(bad),
        "mine": lambda: OperatorBuilder(scope, "mine").build(bad),
    }


@pytest.mark.parametrize("operators", [_operators_of_collections, _operators_of_streams])
@pytest.mark.parametrize("bad", ["x", 3])
def test_an_operator_refuses_what_is_no_function_when_it_is_built(operators: Callable[..., Any], bad: Any) -> None:
    refusals: dict[str, str] = {}

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            for name, build in operators(scope, bad).items():
                try:
                    build()
                except BuildError as error:
                    refusals[name] = str(error)
                else:
                    refusals[name] = "accepted"
            raise KeyError

    with pytest.raises(KeyError):
        execute_directly(program)
    expected = rf"^\S+ \(at {__file__}:\d+\): `\w+` must be a function, not {bad!r}$"
    assert {name: words for name, words in refusals.items() if not re.match(expected, words)} == {}
    assert {name for name, words in refusals.items() if not words.startswith(name)} == set()


def _misplaced(scope: Scope) -> dict[str, Callable[[], object]]:
    """Return calls that pass what has no meaning there, by the words of the error."""
    edges, stream, bad = Collection.of(scope, 1, 2), scope.to_stream([1]), cast(Any, 3)
    trace = edges.arrange_by_key().trace()
    return {
        "enter: `scope` must be a scope": lambda: edges.enter(bad),
        "enter_at: `scope` must be a scope": lambda: edges.enter_at(bad, lambda *columns: 0),
        "variable: `scope` must be a scope": lambda: Variable(bad),
        "input: `scope` must be a scope": lambda: differential.new_input(bad),
        "upsert: `scope` must be a scope": lambda: differential.new_upsert_input(bad),
        "constant: `scope` must be a scope": lambda: Collection.of(bad, 1),
        "import: `scope` must be a scope": lambda: trace.import_into(bad),
        "replay: `scope` must be a scope": lambda: differential.replay_into(bad, []),
        "replay: `sources` must be a list of sources": lambda: differential.replay_into(scope, bad),
        "capture: `sink` must be what events are pushed into": lambda: edges.capture_into(bad),
        "collection: `stream` must be a stream of updates": lambda: Collection(bad),
        "lines: `scope` must be a scope": lambda: new_input(bad, name="lines"),
        "unordered_input: `scope` must be a scope": lambda: new_unordered_input(bad),
        "source: `scope` must be a scope": lambda: source(bad, lambda *_: lambda output: None),
        "mine: `scope` must be a scope": lambda: OperatorBuilder(bad, "mine"),
        "binary: `right` must be a stream": lambda: stream.binary(bad, Pipeline(), Pipeline(), lambda *ports: None),
        "probe_with: `probe` must be a probe": lambda: stream.probe_with(bad),
        "connect_loop: `handle` must be the handle of a loop": lambda: stream.connect_loop(bad),
    }


def test_what_an_operator_cannot_use_is_named_with_what_was_expected() -> None:
    refusals: dict[str, str] = {}

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            for words, call in _misplaced(scope).items():
                with pytest.raises(BuildError) as found:
                    call()
                refusals[words] = str(found.value)
            raise KeyError

    with pytest.raises(KeyError):
        execute_directly(program)
    for words, message in refusals.items():
        expected = words.replace(": ", rf" \(at {__file__}:\d+\): ")
        assert re.match(rf"{expected}.*, (and )?not 3$", message), (words, message)


@pytest.mark.parametrize(
    "run", [timely.execute, execute_directly, timely.example, example, lambda bad: timely.execute_from_args([], bad)]
)
def test_a_program_that_is_no_function_is_refused(run: Callable[[Any], object]) -> None:
    with pytest.raises(BuildError, match=rf"\(at {__file__}:\d+\): `(build|program)` must be a function, not 3"):
        run(3)


@pytest.mark.parametrize(
    "build",
    [
        lambda edges: Collection.of(edges.scope, 1, 2, keys=True),
        lambda edges: edges.map(lambda *columns: columns, keys=True),
        lambda edges: edges.top_k(True),
        lambda edges: edges.iterate(lambda inner: inner, limit=True),
    ],
)
def test_a_truth_value_is_no_number(build: Callable[[Collection], object]) -> None:
    def program(scope: Scope) -> Collection:
        edges = Collection.of(scope, 1, 2)
        with pytest.raises((BuildError, DataError), match="True"):
            build(edges)
        return edges

    example(program)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda c: c.reduce(lambda key, values: values),
            "must take 1 argument: the `Groups` of many keys .reduce_each",
        ),
        (lambda c: c.reduce_each(lambda values: values), "must take 2 arguments: a key and the list of its .value, co"),
        (lambda c: c.iterate(lambda one, other: one), "`body` must take 1 argument: the collection inside the loop"),
        (lambda c: c.iterate(lambda: c), "`body` must take 1 argument: the collection inside the loop"),
    ],
)
def test_a_function_of_another_number_of_arguments_is_refused_when_it_is_passed(build: Any, message: str) -> None:
    with pytest.raises(BuildError, match=rf"\(at {__file__}:\d+\): .*{message}"):
        example(lambda scope: build(Collection.of(scope, np.array([1]), np.array([2]))))
