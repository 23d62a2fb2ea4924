"""Arguments that are not collections or numbers are refused at the program's line, with the operator's name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from differential import Collection, example, graphs
from timely import Input, Scope, Worker, execute_directly, new_input, rowwise
from timely.errors import BuildError

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
                (lambda: stream.enter(scope), "captured, and replayed here"),
                (lambda: scope.to_stream([1]).concat(stream), "captured, and replayed here"),
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
