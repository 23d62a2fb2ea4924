"""What does not fit into 64 bits is refused, with the operator, the node, the time and the worker."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from timely import Config, Scope, Stream, Worker, execute
from timely.errors import OperatorError
from timely.graphlinq import Aggregator, Graph, VertexProgram, aggregate

LARGE = 1 << 62
workers = pytest.mark.parametrize("workers", [1, 2])


def _refused(build: Callable[[Scope], Stream], workers: int) -> str:
    """Return the error of a dataflow."""

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            build(scope).probe()
        while worker.step_or_park(timeout=10):
            pass

    with pytest.raises(OperatorError) as caught:
        execute(program, Config(workers=workers))
    return str(caught.value)


def _on_first(scope: Scope, *columns: np.ndarray) -> Stream:
    """Return the stream of records that worker 0 sends at time 3."""
    own = tuple(column if scope.index == 0 else column[:0] for column in columns)
    return scope.to_stream(own).delay(lambda *columns: 3)


def _edges(scope: Scope) -> Graph:
    return Graph(_on_first(scope, np.array([0, 1, 2, 3]), np.array([9, 9, 9, 8])))


@workers
def test_an_aggregate_that_does_not_fit_names_the_node(workers: int) -> None:
    def build(scope: Scope) -> Stream:
        values = np.where(np.arange(1000) % 10 == 7, LARGE, 1)
        return aggregate(_on_first(scope, np.arange(1000) % 10 + 5, values), np.add, name="totals")

    found = _refused(build, workers)
    expected = r"operator 'totals locally' failed at time \(3,\) on worker 0 .*values of node 12 add up to does not fit"
    assert re.search(expected, found)


@workers
def test_values_that_fit_on_each_worker_are_refused_if_their_combination_does_not_fit(workers: int) -> None:
    def build(scope: Scope) -> Stream:
        share = np.array([7]), np.array([((1 << 63) - 1) // workers])
        again = np.array([7, 7]), np.array([LARGE - 1, 1])
        return aggregate(scope.to_stream(share).concat(scope.to_stream(again)), np.add, name="totals")

    assert re.search(
        r"'totals.*failed at time \(0,\) .*values of node 7 add up to does not fit", _refused(build, workers)
    )


@workers
@pytest.mark.parametrize("all_nodes", [True, False])
def test_combined_messages_that_do_not_fit_name_the_target(workers: int, all_nodes: bool) -> None:
    def build(scope: Scope) -> Stream:
        nodes = np.arange(4 if all_nodes else 3)
        return _edges(scope).reduce(_on_first(scope, nodes, np.full(len(nodes), LARGE)), np.add, name="sent")

    assert re.search(
        r"'sent.*failed at time \(3,\) .*values of node 9 add up to does not fit", _refused(build, workers)
    )


@workers
def test_messages_that_do_not_fit_together_name_the_node(workers: int) -> None:
    def build(scope: Scope) -> Stream:
        return _edges(scope).pregel(
            VertexProgram(
                init=lambda node: node,
                message=lambda state: np.full(len(state), LARGE),
                combine=np.multiply,
                update=lambda superstep, state, received: received,
            )
        )

    assert re.search(r"values of node 9 make when they are multiplied does not fit", _refused(build, workers))


@workers
@pytest.mark.parametrize("combine", [np.add, np.multiply])
def test_an_aggregator_that_does_not_fit_is_named(workers: int, combine: np.ufunc) -> None:
    def build(scope: Scope) -> Stream:
        return _edges(scope).pregel(
            VertexProgram(
                init=lambda node: node,
                message=lambda state: state,
                combine=np.maximum,
                update=lambda superstep, state, received: received,
                aggregators={"mass": Aggregator(combine, lambda state: np.full(len(state), LARGE))},
            )
        )

    found = _refused(build, workers)
    assert re.search(r"operator 'pregel' failed at time \(3, 1\) .*values of aggregator 'mass' .* does not fit", found)


@workers
def test_only_the_total_of_an_aggregator_has_to_fit_and_not_its_part_on_a_worker(workers: int) -> None:
    seen: list[int] = []

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            _edges(scope).pregel(
                VertexProgram(
                    init=lambda node: node,
                    message=lambda state: state,
                    combine=np.maximum,
                    update=lambda superstep, state, received: (seen.append(superstep.aggregates["mass"]), received)[1],
                    aggregators={"mass": Aggregator(np.add, lambda state: np.where(state < 8, LARGE, -2 * LARGE + 1))},
                    supersteps=1,
                )
            ).probe()
        while worker.step_or_park(timeout=10):
            pass

    execute(program, Config(workers=workers))
    assert seen
    assert set(seen) == {2}
