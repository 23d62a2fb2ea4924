"""An error about a negative count names the record, the time, the operator and its line."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from differential import Collection, example, new_input
from tests.oracle.grid import Update, contents, on_workers, run
from timely import Worker, execute
from timely.errors import DataError, NegativeCountError, OperatorError
from timely.lowlevel import typed

Operator = Callable[[Collection, Collection], Collection]

OPERATORS: dict[str, Operator] = {
    "distinct": lambda one, _: one.distinct(),
    "threshold": lambda one, _: one.threshold(lambda counts: counts),
    "min": lambda one, _: one.min(),
    "max": lambda one, _: one.max(),
    "top_k": lambda one, _: one.top_k(2),
    "reduce": lambda one, _: one.reduce(lambda groups: (np.arange(len(groups)), np.diff(groups.offsets))),
    "reduce_each": lambda one, _: one.reduce_each(lambda key, values: [len(values)]),
    "cogroup": lambda one, other: other.cogroup(one, lambda groups: (np.arange(len(groups)), np.arange(len(groups)))),
    "union": lambda one, other: one.union(other),
    "intersect": lambda one, other: other.intersect(one),
    "except": lambda one, other: one.except_(other),
    "symmetric_difference": lambda one, other: one.symmetric_difference(other),
    "identifiers": lambda one, _: one.identifiers(),
}

FIRST: list[Update] = [((7, "a"), (0,), 1), ((7, "c"), (0,), 1), ((8, "b"), (1,), 2), ((7, "b"), (3,), -2)]
SECOND: list[Update] = [((7, "b"), (4,), 1)]
TIMES = {"outermost": "(3,)", "in a loop": "(3, 0)"}


def in_a_loop(operator: Operator) -> Operator:
    def within(one: Collection, other: Collection) -> Collection:
        with one.scope.iterative() as inner:
            return operator(one.enter(inner), other.enter(inner)).leave()

    return within


@on_workers
@pytest.mark.parametrize("place", TIMES)
@pytest.mark.parametrize("name", OPERATORS)
def test_the_removal_of_a_missing_record_is_named(name: str, place: str, workers: int) -> None:
    operator = OPERATORS[name] if place == "outermost" else in_a_loop(OPERATORS[name])
    with pytest.raises(OperatorError) as error:
        run(operator, FIRST, SECOND, workers=workers)
    message = str(error.value)
    assert f"operator '{name}' failed at time {TIMES[place]} on worker" in message
    assert "test_negative_counts.py:" in message
    fault = "the record (7, 'b') occurs a negative number of times, -2"
    assert f"{fault}: something was removed" in message
    cause = error.value.__cause__
    assert isinstance(cause, NegativeCountError)
    assert cause.fault == fault


def test_a_record_of_one_column_is_named_by_it() -> None:
    with pytest.raises(OperatorError, match="the record 'a' occurs a negative number of times, -2:"):
        run(lambda one: one.distinct(), [(("a",), (0,), -2)])


@pytest.mark.parametrize(
    ("value", "kind"), [(None, "int64?"), (Decimal("2.50"), "decimal(18, 2)"), ((1, "b"), "value")]
)
def test_a_reader_names_a_record_of_any_type(value: Any, kind: str) -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, rows = new_input(scope)
            output, trace = rows.output(), rows.arrange_by_key().trace()
        session.remove(np.array([7]), typed([value], kind))
        session.advance_to(1)
        worker.step_while(lambda: output.less_than(1) or trace.upper.less_equal((0,)))
        for read in (output.contents, lambda: trace.contents(0), lambda: trace.cursor(0)[[7]]):
            with pytest.raises((DataError, OperatorError), match=re.escape(f"record (7, {value!r}) occurs a negative")):
                read()

    execute(program)


@on_workers
def test_sums_and_signed_counts_may_be_negative(workers: int) -> None:
    numbers = [((7, 5), (0,), 1), ((7, 6), (3,), -2)]

    def program(one: Collection) -> Collection:
        sums = one.sum().concat(one.totals(lambda key, value: value))
        products = one.join_map(one, lambda key, ours, theirs: (key, ours * theirs))
        return one.count(signed=True).concat(sums).concat(products)

    assert contents(run(program, numbers, workers=workers), (3,)) == {
        (7, -1): 1,
        (7, -7): 2,
        (7, 25): 1,
        (7, 30): -4,
        (7, 36): 4,
    }


@on_workers
@pytest.mark.parametrize("outer", [1, 2])
@pytest.mark.parametrize("place", TIMES)
def test_a_key_of_which_more_is_removed_than_there_is_is_named(place: str, outer: int, workers: int) -> None:
    more = (0,) * (outer - 1)
    updates: list[Update] = [((7, "a"), (0, *more), 2), ((8, "b"), (1, *more), 2), ((7, "b"), (3, *more), -3)]
    count: Operator = lambda one, _: one.count()  # noqa: E731
    program = count if place == "outermost" else in_a_loop(count)
    with pytest.raises(OperatorError, match=r"the key 7 has a negative number of records, -1: .* signed=True") as error:
        run(program, updates, [], workers=workers, outer=outer)
    inside = () if place == "outermost" else (0,)
    assert f"operator 'count' failed at time {(3, *more, *inside)}" in str(error.value)
    assert "test_negative_counts.py:" in str(error.value)


@on_workers
@pytest.mark.parametrize("place", TIMES)
def test_a_difference_may_be_counted(place: str, workers: int) -> None:
    updates: list[Update] = [((7, "a"), (0,), 1), ((7, "b"), (1,), -3), ((7, "c"), (2,), 5)]
    count: Operator = lambda one, _: one.count(signed=True)  # noqa: E731
    changes = run(count if place == "outermost" else in_a_loop(count), updates, [], workers=workers)
    assert [contents(changes, (epoch,)) for epoch in range(3)] == [{(7, 1): 1}, {(7, -2): 1}, {(7, 3): 1}]


def test_an_output_names_the_removal_of_a_missing_record_and_loses_nothing() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, stock = new_input(scope)
            output, signed = stock.output(name="shelf"), stock.output(signed=True)
        session.insert("tea")
        session.advance_to(1)
        session.remove("rice")
        session.advance_to(2)
        session.insert("rice")
        session.advance_to(3)
        worker.step_while(lambda: output.less_than(2))
        for read in (output.changes, output.contents, output.changes):
            with pytest.raises(OperatorError, match=r"'shelf' failed at time \(1,\) .* 'rice' occurs .* -1: .*signed"):
                read()
        assert signed.contents() == {("tea",): 1}
        session.close()

    execute(program)


def test_a_record_may_be_removed_and_inserted_in_one_epoch() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, stock = new_input(scope)
            output = stock.output()
        session.remove("rice")
        session.insert("rice")
        session.close()
        worker.step_while(lambda: not output.done())
        assert output.changes() == []

    execute(program)


def test_a_trace_names_the_removal_of_a_missing_record() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, stock = new_input(scope)
            trace = stock.arrange_by_key().trace()
        session.insert(np.array([7, 8]), np.array(["a", "b"]))
        session.remove(8, "c")
        session.advance_to(1)
        worker.step_while(lambda: trace.upper.less_equal((0,)))
        message = r"the record \(8, 'c'\) occurs a negative number of times, -1: .* signed=True"
        with pytest.raises(DataError, match=message):
            trace.contents(0)
        with pytest.raises(DataError, match=message):
            trace.cursor(0)[[7, 8]]
        assert trace.cursor(0)[7].counts.tolist() == [1]
        assert trace.cursor(0, signed=True)[8].counts.tolist() == [1, -1]
        assert trace.contents(0, signed=True).records() == {(7, "a"): 1, (8, "b"): 1, (8, "c"): -1}

    execute(program)


def test_an_example_shows_a_difference() -> None:
    assert example(lambda scope: Collection.of(scope, np.array([7])).negate()) == [((7,), -1)]
