"""The operators of an arrangement itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from differential import Arrangement, CoGroups, Collection, Groups, new_input
from differential.arrangement.arrange import ByKey
from differential.data.updates import Updates
from tests.oracle.grid import contents, on_workers, run
from timely import Pipeline, Scope, Worker, execute_directly
from timely.dataflow.pact import scatter
from timely.dataflow.routing import destinations, hash_columns
from timely.order import Time, less_equal

UPDATES = [((1, 2), (0,), 2), ((1, 3), (0,), 1), ((2, 2), (1,), 1)]


def last(groups: Groups) -> Any:
    """Return the last value of each group."""
    return np.arange(len(groups)), groups.values[0][groups.offsets[1:] - 1]


def surplus(groups: CoGroups) -> Any:
    """Return how many more records each key has on the left than on the right."""
    left, right = (np.bincount(side.index, side.counts, len(groups)) for side in groups)
    return np.arange(len(groups)), (left - right).astype(np.int64)


Operator = Callable[[Any, Any], Collection]
READING: dict[str, Operator] = {
    "join": lambda one, keys: one.join(one),
    "join_map": lambda one, keys: one.join_map(one, lambda k, v, w: (v, w)),
    "semijoin": lambda one, keys: one.semijoin(keys),
    "antijoin": lambda one, keys: one.antijoin(keys),
    "reduce": lambda one, keys: one.reduce(last),
    "reduce_each": lambda one, keys: one.reduce_each(lambda key, values: [value for value, _ in values]),
    "count": lambda one, keys: one.count(),
    "sum": lambda one, keys: one.sum(),
    "min": lambda one, keys: one.min(),
    "max": lambda one, keys: one.max(),
    "top_k": lambda one, keys: one.top_k(2),
    "distinct": lambda one, keys: one.distinct(),
    "threshold": lambda one, keys: one.threshold(lambda counts: counts // 2),
}
"""Operators that read the index of the collection: of records (k, v), and a collection of keys."""
REGROUPING: dict[str, Operator] = {
    "argmin": lambda one, keys: one.argmin(lambda k, v: -v),
    "argmax": lambda one, keys: one.argmax(lambda k, v: -v),
    "totals": lambda one, keys: one.totals(lambda k, v: v, lambda k, v: 1),
    "cogroup": lambda one, keys: one.cogroup(keys.join_map(one, lambda k, v: (k, v)).arrange_by_key(), surplus),
}
"""Operators that index other records, made of those of the collection."""
OPERATORS = READING | REGROUPING


def some_keys(one: Any) -> Arrangement:
    return one.filter(lambda k, v: k == 1).map(lambda k, v: k).distinct().arrange_by_key()


@on_workers
@pytest.mark.parametrize("operator", OPERATORS)
def test_an_arrangement_emits_the_updates_of_its_collection(operator: str, workers: int) -> None:
    apply = OPERATORS[operator]
    changes = run(lambda one: apply(one.arrange_by_key(), some_keys(one)), UPDATES, workers=workers)
    assert changes == run(lambda one: apply(one, some_keys(one).as_collection()), UPDATES, workers=workers)
    assert changes


@on_workers
@pytest.mark.parametrize("operator", OPERATORS)
def test_a_loop_reads_the_arrangement_outside_it(operator: str, workers: int) -> None:
    def inside(one: Collection) -> Collection:
        index, keys = one.arrange_by_key(), some_keys(one)
        with one.scope.iterative() as inner:
            return OPERATORS[operator](index.enter(inner), keys.enter(inner)).leave()

    outside = run(lambda one: OPERATORS[operator](one, some_keys(one).as_collection()), UPDATES, workers=workers)
    assert run(inside, UPDATES, workers=workers) == outside


@on_workers
def test_running_totals_of_an_arrangement(workers: int) -> None:
    booked = [((7, 0, 100), (0,), 1), ((7, 5, -30), (1,), 1), ((8, 5, 1), (1,), 1)]
    changes = run(lambda one: one.arrange_by_key().prefix_sum(bits=4), booked, workers=workers)
    assert changes == [((7, 0, 100), (0,), 1), ((7, 5, 70), (1,), 1), ((8, 5, 1), (1,), 1)]


def test_an_arrangement_has_all_operators_by_key_of_a_collection() -> None:
    (shared,) = {*Collection.__bases__} & {*Arrangement.__bases__}
    by_key = {name for name in vars(shared) if not name.startswith("_")}
    assert by_key == {*OPERATORS, "prefix_sum"}


@pytest.mark.parametrize("is_in_loop", [False, True])
def test_one_arrangement_serves_all_operators_that_read_it(is_in_loop: bool) -> None:
    # A threshold in a loop counts whole records, by which it indexes them.
    reading = [apply for name, apply in READING.items() if not (is_in_loop and name == "threshold")]

    def program(worker: Worker) -> int:
        with worker.dataflow() as scope:
            index = Collection.of(scope, np.arange(3), np.arange(3)).arrange_by_key()
            keys = Collection.of(scope, np.arange(2)).arrange_by_key()
            before = len(arranging(scope))
            with scope.iterative() as inner:
                here = (index.enter(inner), keys.enter(inner)) if is_in_loop else (index, keys)
                for apply in reading:
                    apply(*here)
            assert len(arranging(scope)) == before
            return before

    assert execute_directly(program) == 2


def arranging(scope: Scope) -> list[str]:
    """Return the names of the operators that build an index of their input."""
    return [operator.name for operator in scope.dataflow.operators if operator.name == "arrange"]


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
