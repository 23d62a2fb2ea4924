"""The operators of an arrangement itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from differential import Arrangement, Collection, new_input
from differential.arrangement.arrange import ByKey
from differential.data.updates import Updates
from tests.oracle.grid import contents, on_workers, run
from timely import Pipeline, Worker, execute_directly
from timely.dataflow.pact import scatter
from timely.dataflow.routing import destinations, hash_columns
from timely.order import Time, less_equal

UPDATES = [((1, 2), (0,), 2), ((1, 3), (0,), 1), ((2, 2), (1,), 1)]

OPERATORS: list[tuple[Callable[[Arrangement], Collection], Callable[[Collection], Collection]]] = [
    (lambda index: index.join(index), lambda one: one.join(one)),
    (
        lambda index: index.join_map(index, lambda k, v, w: (v, w)),
        lambda one: one.join_map(one, lambda k, v, w: (v, w)),
    ),
    (lambda index: index.count(), lambda one: one.count()),
    (lambda index: index.distinct(), lambda one: one.distinct()),
    (
        lambda index: index.reduce(lambda groups: (groups.index, *groups.values)),
        lambda one: one.reduce(lambda groups: (groups.index, *groups.values)),
    ),
]


@on_workers
@pytest.mark.parametrize(("of_index", "of_collection"), OPERATORS)
def test_an_arrangement_emits_the_updates_of_its_collection(of_index: Any, of_collection: Any, workers: int) -> None:
    changes = run(lambda one: of_index(one.arrange_by_key()), UPDATES, workers=workers)
    assert changes == run(of_collection, UPDATES, workers=workers)
    assert changes


def test_one_arrangement_serves_all_operators() -> None:
    def program(worker: Worker) -> int:
        with worker.dataflow() as scope:
            index = Collection.of(scope, np.arange(3), np.arange(3)).arrange_by_key()
            for of_index, _ in OPERATORS:
                of_index(index)
            return sum(operator.name == "arrange" for operator in scope.dataflow.operators)

    assert execute_directly(program) == 1


@on_workers
def test_an_arrangement_by_whole_records_has_no_values(workers: int) -> None:
    assert run(lambda one: one.arrange_by_self().count(), UPDATES, workers=workers) == [
        ((1, 2, 2), (0,), 1),
        ((1, 3, 1), (0,), 1),
        ((2, 2, 1), (1,), 1),
    ]


@pytest.mark.parametrize("rows", [1, 64, 65, 1000])
@pytest.mark.parametrize("peers", [2, 3, 4])
def test_updates_are_routed_by_the_hash_of_their_key(rows: int, peers: int) -> None:
    dice = np.random.default_rng(rows)
    every = dice.integers(0, 1000, (rows, 2))
    for keys in (every[:, 0], every[:, 0].copy(), np.full(rows, 7), every[:, 0] / 4, every[:, 0].astype(np.int32)):
        updates = Updates((keys, every[:, 1], np.arange(rows)), np.array([[0], [3]]), np.arange(rows) % 2)
        for width in (1, 2):
            split = ByKey(width).spread(updates, peers)
            expected = scatter(updates, destinations(hash_columns(updates.columns[:width]), peers))
            for (worker, part), (right_worker, right) in zip(split, expected, strict=True):
                assert isinstance(part, Updates)
                assert isinstance(right, Updates)
                assert worker == right_worker
                assert [column.tolist() for column in part.columns] == [column.tolist() for column in right.columns]
                assert part.times[part.time_index].tolist() == right.times[right.time_index].tolist()


def test_a_batch_is_passed_on_unchanged_only_to_a_worker_that_receives_all_its_rows() -> None:
    ids = np.arange(100)
    ways = destinations(hash_columns((ids,)), 3)
    keys = np.repeat([ids[ways == worker][0] for worker in range(3)], [40, 10, 40])
    updates = Updates((keys, np.arange(90)), np.array([[0]]))
    split = ByKey(1).split(updates, 3)
    assert split is not None
    assert [(worker, len(part)) for worker, part in split] == [(0, 40), (1, 10), (2, 40)]


def test_a_batch_sealed_at_incomparable_times_is_sent_at_each() -> None:
    times = [(0, 3), (1, 1), (3, 0)]
    sent: list[tuple[Time, list[Any]]] = []

    def program(worker: Worker) -> None:
        with worker.dataflow(outer=2) as scope:
            sessions, collections = zip(*(new_input(scope) for _ in times))

            def look(input: Any, output: Any) -> None:
                for capability, batch in input:
                    sent.append((capability.time, batch.times.tolist()))

            together = collections[0].concat(*collections[1:])
            together.arrange_by_key().stream.unary(Pipeline(), look, name="look").probe()
        for session, time in zip(sessions, times):
            session.advance_to(time)
            session.insert(1, 1)
            session.update_at(1, 1, time=(3, 3))
            session.close()
        while worker.step_or_park():
            pass

    execute_directly(program)
    assert sorted(time for time, _ in sent) == times
    assert all(less_equal(time, tuple(later)) for time, several in sent for later in several)
    assert sorted(tuple(later) for _, several in sent for later in several) == [*times, (3, 3)]


def test_a_pending_time_is_emitted_even_if_another_is_not_due_and_no_input_arrives() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow(outer=2) as scope:
            (first, one), (second, two) = new_input(scope), new_input(scope)
            output = one.concat(two).count().output()
        for time in ((0, 3), (1, 1), (3, 0)):
            first.update_at(1, 1, time=time)
        first.advance_to((1, 2))
        second.advance_to((2, 1))
        for _ in range(10):
            worker.step()
        first.close()
        worker.step_while(lambda: output.less_than((1, 4)))
        assert contents(output.changes(), (1, 3)) == {(1, 2): 1}

    execute_directly(program)
