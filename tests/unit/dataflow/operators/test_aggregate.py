"""Tests of operators on each time: `aggregate`, `combine`, `state_machine`, `count`, `accumulate`, `delay`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from weakref import ref

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.unit.dataflow.running import collected, on_workers
from timely import Columns, Scope, Stream, Time, Worker, example, execute_directly, new_input
from timely.data.container import Array
from timely.data.typed import typed
from timely.errors import BuildError, OperatorError

Sent = list[tuple[int, int, int]]
sent = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(-9, 9)), max_size=20).map(sorted)


def total(starts: Array, values: Array) -> Array:
    """Return the sum of each group."""
    return np.add.reduceat(values, starts)


def results(rows: Sent, operator: Any) -> list[tuple[Time, Any]]:
    """Return (time, record) of `operator(stream)`, given rows of (epoch, key, value) in order of epochs."""
    found: list[tuple[Time, Any]] = []

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = new_input(scope)
            operator(stream).inspect_time(lambda time, record: found.append((time, record)))
        for epoch, key, value in rows:
            numbers.advance_to(epoch)
            numbers.send(key, value)
            numbers.flush()

    execute_directly(program)
    return found


@given(sent)
def test_aggregates_are_the_sums_of_each_key_and_time(rows: Sent) -> None:
    expected: defaultdict[tuple[Time, int], int] = defaultdict(int)
    for epoch, key, value in rows:
        expected[(epoch,), key] += value
    wanted = [(time, (key, value)) for (time, key), value in sorted(expected.items())]
    assert results(rows, lambda stream: stream.aggregate(total)) == wanted
    assert results(rows, lambda stream: stream.combine(total)) == wanted


@given(sent)
def test_a_state_machine_moves_each_key_in_the_order_of_times(rows: Sent) -> None:
    def history(key: int, state: list[int] | None, values: Array) -> tuple[list[int], list[Any]]:
        state = [*(state or []), *values.tolist()]
        return state, [(key, state)]

    states: defaultdict[int, list[int]] = defaultdict(list)
    for _, key, value in rows:
        states[key].append(value)
    last = dict(record for _, record in results(rows, lambda stream: stream.state_machine(history)))
    assert last == states


def test_a_key_whose_state_becomes_none_is_forgotten() -> None:
    def until_zero(key: int, state: int | None, values: Array) -> tuple[int | None, list[Any]]:
        return int(values[-1]) or None, [(key, state)]

    rows = [(epoch, 7, value) for epoch, value in enumerate([5, 0, 4])]
    found = results(rows, lambda stream: stream.state_machine(until_zero))
    assert [record for _, record in found] == [(7, None), (7, 5), (7, None)]


@given(sent)
def test_delayed_records_come_once_at_their_times(rows: Sent) -> None:
    found = results(rows, lambda stream: stream.delay(lambda time, key, value: time[0] + key))
    assert sorted(found) == sorted(((epoch + key,), (key, value)) for epoch, key, value in rows)
    assert [time for time, _ in found] == sorted(time for time, _ in found)


@pytest.mark.parametrize("data", [range(3), [0, 1, 2]])
@pytest.mark.parametrize(
    ("later", "given"),
    [
        (lambda time, x: time[0] + x * 0.5, "float64"),
        (lambda time, x: (time[0] + x, 0), "int64, int64"),
        (lambda time, x: x > 1, "bool"),
    ],
)
def test_times_to_delay_to_are_an_integer_for_each_coordinate(data: Any, later: Any, given: str) -> None:
    with pytest.raises(OperatorError, match=f"delay: .* one for each coordinate, got {given}$"):
        example(lambda scope: scope.to_stream(data).delay(later))


@pytest.mark.parametrize("wrong", [-1, 2**62 + 1, 2**63])
def test_times_to_delay_to_that_cannot_be_are_refused_and_named(wrong: int) -> None:
    def later(time: Time, x: Array) -> Array:
        return np.array([1, wrong], np.uint64 if wrong > 0 else np.int64)

    with pytest.raises(OperatorError, match=rf"DataError: delay: no coordinate .* got {wrong}$"):
        example(lambda scope: scope.to_stream(np.arange(2)).delay(later))


def test_coordinates_to_delay_to_of_several_types_of_integers_are_not_rounded() -> None:
    found: list[tuple[Time, int]] = []
    large = (1 << 53) + 1

    def program(worker: Worker) -> None:
        with worker.dataflow(outer=2) as scope:
            delayed = scope.to_stream(np.array([1, large])).delay(lambda time, x: (x.astype(np.uint64), x))
            delayed.inspect_time(lambda time, x: found.append((time, x)))

    execute_directly(program)
    assert found == [((1, 1), 1), ((large, large), large)]
    assert {type(each) for time, _ in found for each in time} == {int}


def test_records_are_delayed_to_rounds_of_a_loop() -> None:
    found: list[tuple[Time, int]] = []

    def program(scope: Scope) -> Stream:
        with scope.iterative() as loop:
            later = scope.to_stream(range(3)).enter(loop).delay(lambda time, x: (time[0], time[1] + 2 - x))
            return later.inspect_time(lambda time, x: found.append((time, x))).leave()

    example(program)
    assert found == [((0, 0), 2), ((0, 1), 1), ((0, 2), 0)]


@given(sent)
def test_counts_are_of_each_time(rows: Sent) -> None:
    epochs = [epoch for epoch, _, _ in rows]
    assert results(rows, lambda stream: stream.count()) == [
        ((epoch,), epochs.count(epoch)) for epoch in sorted(set(epochs))
    ]


@given(sent)
def test_a_fold_that_writes_to_its_state_begins_anew_at_each_time(rows: Sent) -> None:
    def include(state: list[int], key: Array, values: Array) -> list[int]:
        state += values.tolist()
        return state

    found = results(rows, lambda stream: stream.accumulate([], include))
    assert found == [
        ((epoch,), [value for at, _, value in rows if at == epoch]) for epoch in sorted({epoch for epoch, _, _ in rows})
    ]


def test_records_of_different_widths_are_refused() -> None:
    def program(scope: Scope) -> Stream:
        return scope.to_stream((np.arange(3), np.arange(3))).concat(scope.to_stream(np.arange(2))).aggregate(total)

    with pytest.raises(OperatorError, match="batches of 1 and of 2 columns"):
        example(program)


def test_keys_that_are_not_columns_are_refused() -> None:
    with pytest.raises(BuildError, match="`keys` must be a whole number of at least 1, not 0"):
        example(lambda scope: scope.to_stream(range(3)).aggregate(total, keys=0))
    with pytest.raises(OperatorError, match="keys=2, where records have 1 column"):
        example(lambda scope: scope.to_stream(range(3)).combine(total, keys=2))


@on_workers
def test_keys_of_all_workers_meet(workers: int) -> None:
    def program(scope: Scope) -> Stream:
        return scope.to_stream((np.arange(10) % 3, np.ones(10, np.int64))).combine(total)

    assert collected(program, workers) == [(0, 4 * workers), (1, 3 * workers), (2, 3 * workers)]


@on_workers
def test_every_worker_has_the_broadcast_totals(workers: int) -> None:
    def program(scope: Scope) -> Stream:
        return scope.to_stream((np.arange(4) % 2, np.ones(4, np.int64))).combine_everywhere(total)

    assert collected(program, workers) == sorted([(0, 2 * workers), (1, 2 * workers)] * workers)


@pytest.mark.parametrize("operator", [Stream.aggregate, Stream.combine, Stream.combine_everywhere])
def test_a_batch_that_is_a_list_is_refused_as_such(operator: Any) -> None:
    with pytest.raises(OperatorError, match="takes batches of columns, not of kind 'list'"):
        example(lambda scope: operator(scope.to_stream([("a", 5), ("a", 6)]), total))


def test_records_wait_for_the_tick_of_another_stream() -> None:
    found: list[tuple[Time, int]] = []

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = new_input(scope)
            ticks, clock = new_input(scope)
            stream.reclock(clock).inspect_time(lambda time, record: found.append((time, record)))
        for epoch in range(5):
            numbers.advance_to(epoch)
            ticks.advance_to(epoch)
            numbers.send(epoch)
            if epoch in (1, 3):
                ticks.send(0)

    execute_directly(program)
    assert found == [((1,), 0), ((1,), 1), ((3,), 2), ((3,), 3)]


@pytest.mark.parametrize("outer", [1, 2])
def test_a_clock_with_times_of_several_coordinates_is_refused(outer: int) -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow(outer=outer) as scope, scope.iterative() as loop:
            stream = scope.to_stream([1])
            if outer == 1:
                stream = stream.enter(loop)
            stream.reclock(stream)

    message = r"^reclock \(at .*test_aggregate.py:\d+\): times of .* have 2 coordinates, so of two ticks"
    with pytest.raises(BuildError, match=message):
        execute_directly(program)


def test_records_that_no_tick_can_follow_are_released() -> None:
    sent: list[ref[Array]] = []
    found: list[Any] = []

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = new_input(scope)
            ticks, clock = new_input(scope)
            probe = stream.reclock(clock).inspect_batch(lambda time, batch: found.append((time, len(batch)))).probe()

        def send(epoch: int) -> None:
            column = np.arange(1000)
            sent.append(ref(column))
            numbers.send_batch(Columns((column,)))
            numbers.advance_to(epoch + 1)

        send(0)
        ticks.advance_to(2)
        ticks.send("tick")
        ticks.close()
        worker.step()
        for epoch in range(1, 3):
            send(epoch)
        worker.step_while(lambda: probe.less_than(3))
        for epoch in range(3, 10):
            send(epoch)
            worker.step_while(lambda: probe.less_than(numbers.time))
            worker.step()
        assert not any(column() is not None for column in sent)

    execute_directly(program)
    assert found == [((2,), 1000)] * 3


def test_keys_of_two_types_of_whole_numbers_are_added_up_unrounded() -> None:
    key = 2**53 + 1
    batches = [Columns((np.array([key], dtype), np.array([1]))) for dtype in (np.int64, np.uint64)]
    assert example(lambda scope: scope.to_stream(iter(batches)).aggregate(total)) == [(key, 2)]


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_key_as_integer_and_as_float_is_refused_by_any_number_of_workers(workers: int) -> None:
    def program(key: int) -> Callable[[Scope], Stream]:
        one, same = (np.array([key]), np.array([1])), (np.array([float(key)]), np.array([1]))
        return lambda scope: scope.to_stream(one).concat(scope.to_stream(same)).aggregate(total)

    for key in range(4):
        with pytest.raises(OperatorError, match=r"column 0 holds .* \((int|float)64\) in one batch and .* in another"):
            collected(program(key), workers)


def test_keys_of_two_kinds_are_refused() -> None:
    batches = [Columns((np.array([key]), np.array([1]))) for key in (1, "1")]
    with pytest.raises(OperatorError, match=r"column 0 holds 1 \(int64\) in one batch and .1. \(<U1\)"):
        example(lambda scope: scope.to_stream(iter(batches)).aggregate(total))


@pytest.mark.parametrize(
    ("keys", "name"),
    [
        ([2, None, 1], "int64?"),
        (["b", None, ""], "text?"),
        ([Decimal("0.50"), None, Decimal("-1.00")], "decimal(9, 2)"),
        ([[2], None, [1, 2]], "value"),
        ([2**63, 2**64 - 1, 1], "uint64"),
    ],
)
def test_keys_of_logical_types_are_in_their_order_with_the_nulls_last(keys: list[Any], name: str) -> None:
    later, last, first = typed(keys, name).tolist()
    pairs = typed(keys * 2, name), np.arange(6)
    totals = example(lambda scope: scope.to_stream(pairs).aggregate(total))
    assert totals == [(first, 2 + 5), (later, 0 + 3), (last, 1 + 4)]
    records = example(lambda scope: scope.to_stream(pairs).state_machine(lambda key, _, x: (None, [(key, len(x))])))
    assert records == [(first, 2), (later, 2), (last, 2)]
