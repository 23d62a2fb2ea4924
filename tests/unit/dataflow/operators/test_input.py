"""Tests of `new_input`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from timely import (
    Columns,
    Config,
    Input,
    Pipeline,
    Time,
    Worker,
    example,
    execute,
    execute_directly,
    new_input,
    new_unordered_input,
)
from timely.data.container import records
from timely.errors import CapabilityError, DataError, OperatorError


def sent(use: Callable[[Input], None], outer: int = 1) -> list[tuple[Time, list[Any]]]:
    """Return the time and the records of each batch that `use` sends through an input."""
    found: list[tuple[Time, list[Any]]] = []

    def program(worker: Worker) -> None:
        with worker.dataflow(outer=outer) as scope:
            handle, stream = new_input(scope)
            stream.inspect_batch(lambda time, batch: found.append((time, list(records(batch)))))
        use(handle)

    execute_directly(program)
    return found


def test_scalars_are_gathered_into_a_batch_until_the_input_advances() -> None:
    def use(numbers: Input) -> None:
        numbers.send(1)
        numbers.send(2)
        numbers.advance_to(5)
        assert numbers.epoch == 5
        numbers.send(3)

    assert sent(use) == [((0,), [1, 2]), ((5,), [3])]


def test_columns_are_sent_at_once_after_the_records_gathered_before() -> None:
    def use(pairs: Input) -> None:
        pairs.send(1, "a")
        pairs.send(np.array([2, 3]), np.array(["b", "c"]))

    assert sent(use) == [((0,), [(1, "a")]), ((0,), [(2, "b"), (3, "c")])]


def test_lists_of_anything_can_be_sent() -> None:
    assert sent(lambda handle: handle.send_batch([None, {1}])) == [((0,), [None, {1}])]


class Numbers(list):  # type: ignore[type-arg]
    """A list of a class of the program."""


@pytest.mark.parametrize("kind", [list, Numbers])
def test_a_list_may_be_used_again_when_it_was_sent(kind: type[list[int]]) -> None:
    def program(worker: Worker) -> list[int]:
        found: list[int] = []
        with worker.dataflow() as scope:
            handle, stream = new_input(scope)
            stream.exchange().inspect(found.append)
        given = kind([1, 2])
        handle.send_batch(given)
        given.clear()
        worker.step()
        return found

    assert execute_directly(program) == [1, 2]


def test_an_empty_batch_is_not_sent() -> None:
    assert sent(lambda handle: handle.send_batch(Columns((np.empty(0, np.int64),)))) == []


def test_nothing_is_sent_to_a_dropped_dataflow() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers, _ = new_input(scope)
            others, _ = new_unordered_input(scope)
        numbers.send(1)
        worker.drop_dataflow(scope.dataflow)
        with pytest.raises(CapabilityError, match="takes no more data"):
            numbers.send(2)
        with pytest.raises(CapabilityError, match="takes no more data"):
            numbers.advance_to(2)
        with pytest.raises(CapabilityError, match="was dropped"):
            others.send(others.capability, 3)
        assert numbers.is_closed
        numbers.close()
        others.close()

    execute_directly(program)


def test_times_may_be_numpy_integers() -> None:
    def use(numbers: Input) -> None:
        numbers.advance_to(np.int64(2))
        assert type(numbers.epoch) is int
        numbers.send(1)
        with pytest.raises(TypeError, match="integer"):
            numbers.advance_to(2.5)  # type: ignore[arg-type]

    assert sent(use) == [((2,), [1])]


def test_times_may_have_several_coordinates_and_advance_in_only_one() -> None:
    def use(numbers: Input) -> None:
        numbers.advance_to((0, 3))
        numbers.send(1)
        numbers.advance_to((2, 3))
        numbers.send(2)

    assert sent(use, outer=2) == [((0, 3), [1]), ((2, 3), [2])]


def test_time_does_not_go_back() -> None:
    def use(numbers: Input) -> None:
        numbers.advance_to(5)
        with pytest.raises(CapabilityError, match=r"a capability for \(5,\) cannot go back to \(4,\)"):
            numbers.advance_to(4)

    assert sent(use) == []


def test_a_closed_input_accepts_nothing() -> None:
    def use(numbers: Input) -> None:
        with numbers:
            numbers.send(1)
        numbers.close()
        with pytest.raises(CapabilityError, match=r"'input'.*was closed and takes no more data"):
            numbers.send(2)

    assert sent(use) == [((0,), [1])]


def test_nothing_can_be_sent_before_the_dataflow_is_complete() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers, _ = new_input(scope)
            with pytest.raises(CapabilityError, match="leave its `with` block first"):
                numbers.send(np.arange(3))

    execute_directly(program)


def test_records_of_different_widths_are_refused_at_the_line_that_sends_them() -> None:
    def use(pairs: Input) -> None:
        pairs.send(1, 2)
        with pytest.raises(DataError, match="a record of 1 fields was sent after one of 2"):
            pairs.send(3)
        with pytest.raises(DataError, match="at least one value"):
            pairs.send()

    assert sent(use) == [((0,), [(1, 2)])]


def test_columns_may_be_lists() -> None:
    assert sent(lambda pairs: pairs.send([2, 3], np.array(["b", "c"]))) == [((0,), [(2, "b"), (3, "c")])]


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (np.arange(2), "not of type ndarray"),
        ((np.arange(2),), "not of type tuple"),
        (None, "not of type NoneType"),
        (Columns((np.ones((2, 2)), np.ones((2, 2)))), "of one dimension and one length"),
        (Columns((np.ones((2, 2)),)), "of one dimension and one length"),
        (Columns(([1, 2],)), "of one dimension and one length"),  # type: ignore[arg-type]
        (Columns(()), "of one dimension and one length"),
    ],
)
def test_a_value_that_is_not_a_batch_is_refused_at_the_line_that_sends_it(batch: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        sent(lambda handle: handle.send_batch(batch))


@pytest.mark.parametrize("batch", [np.arange(2), (np.arange(2),)])
def test_a_value_that_is_not_a_batch_is_refused_at_the_operator_that_emits_it(batch: Any) -> None:
    def wrong(input: Any, output: Any) -> None:
        for capability, _ in input:
            output.give(capability, batch)

    with pytest.raises(OperatorError, match=r"a batch is Columns\(\(array, ...\)\) or a list"):
        example(lambda scope: scope.to_stream([1]).unary(Pipeline(), wrong).map(lambda x: x))


def test_columns_of_different_lengths_are_refused_at_the_operator_that_emits_them() -> None:
    def wrong(input: Any, output: Any) -> None:
        for capability, _ in input:
            output.give(capability, Columns((np.arange(3), np.arange(2))))

    with pytest.raises(OperatorError, match=r"'unary' failed .*test_input.py:\d+.* not of lengths 3, 2"):
        example(lambda scope: scope.to_stream([1]).unary(Pipeline(), wrong))


@pytest.mark.parametrize("ask_each_time", [True, False])
def test_gathered_rows_are_sent_and_counted_once_they_are_too_many(ask_each_time: bool) -> None:
    rows: list[int] = []

    def program(worker: Worker) -> bool:
        with worker.dataflow() as scope:
            texts, stream = new_input(scope)
            stream.exchange().inspect_batch(lambda _, batch: rows.append(len(batch)))
        assert not texts.is_congested
        congested = []
        for _ in range(20):
            texts.send("a" * (1 << 13))
            if ask_each_time:
                congested.append(texts.is_congested)
        assert any(congested) is ask_each_time
        congested.append(texts.is_congested)
        worker.step_while(lambda: texts.is_congested)
        texts.send("a")
        assert not texts.is_congested
        return congested[-1]

    assert execute(program, Config(queue_bytes=1 << 16)) == [True]
    assert sum(rows) == 21


@pytest.mark.parametrize("wrong", [None, object(), "a", b"a"])
def test_a_value_that_is_of_no_column_is_refused_at_the_line_that_sends_it(wrong: object) -> None:
    def use(handle: Input) -> None:
        for value in (1, 2.5, True):
            handle.send(value)
            with pytest.raises(DataError, match="cannot make a column of"):
                handle.send(wrong)
        handle.flush()
        with pytest.raises(DataError, match="cannot make a column of"):
            handle.send(None)
        handle.advance_to(1)
        handle.send("a")

    assert sent(use) == [((0,), [1.0, 2.5, 1.0]), ((1,), ["a"])]


AWARE, NAIVE = dt.datetime(2020, 1, 1, tzinfo=dt.UTC), dt.datetime(2020, 1, 1)


@pytest.mark.parametrize(
    ("good", "bad", "message"),
    [
        (1, 1 << 70, r"too large"),
        (-1, 1 << 63, r"too large"),
        (AWARE, NAIVE, r"has no zone"),
        (NAIVE, AWARE, r"has a zone"),
        ("a", "\ud800", r"not valid Unicode"),
        (dt.timedelta(1), dt.timedelta.max, r"too large or too precise"),
        (np.timedelta64(1, "s"), np.timedelta64(1, "M"), r"timedelta64\[M\]"),
    ],
)
@pytest.mark.parametrize("at", [1, 3])
def test_a_record_that_makes_no_column_is_left_out_and_the_others_are_sent(
    good: object, bad: object, message: str, at: int
) -> None:
    def use(handle: Input) -> None:
        for row in range(3):
            handle.send(row, good)
            if row == at - 1:
                handle.send(7, bad)
        assert not handle.is_congested  # it weighs what is gathered
        with pytest.raises(DataError, match=rf"record {at} of the 4 .* is left out for its field 1: .*{message}"):
            handle.advance_to(1)
        handle.advance_to(1)

    ((time, found),) = sent(use)
    assert time == (0,)
    assert [row for row, _ in found] == [0, 1, 2]


Use = Callable[[Input], None]


@pytest.mark.parametrize(
    "use",
    [
        lambda numbers: numbers.send(1),
        lambda numbers: numbers.send(np.arange(3)),
        lambda numbers: numbers.send_batch([1]),
        lambda numbers: numbers.advance_to(1),
        lambda numbers: numbers.close(),
    ],
)
def test_an_input_is_refused_in_another_thread_than_the_workers(use: Use) -> None:
    def send(numbers: Input) -> None:
        with ThreadPoolExecutor(1) as other:
            message = r"operator 'input' .* belongs to the thread of worker 0: in another thread, use worker.call\("
            with pytest.raises(CapabilityError, match=message):
                other.submit(use, numbers).result(10)
            numbers.send(7)
            with pytest.raises(CapabilityError, match=message):
                other.submit(numbers.flush).result(10)
            numbers.close()
            other.submit(numbers.close).result(10)  # of a closed input nothing is left to do

    assert sent(send) == [((0,), [7])]


def test_an_unordered_input_is_refused_in_another_thread_than_the_workers() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers, _ = new_unordered_input(scope)
        with ThreadPoolExecutor(1) as other:
            for use in (lambda: numbers.send(numbers.capability, 1), numbers.close):
                with pytest.raises(CapabilityError, match="belongs to the thread of worker 0"):
                    other.submit(use).result(10)

    execute_directly(program)


def test_a_worker_whose_thread_has_ended_belongs_to_the_next_thread_that_uses_it() -> None:
    def program(worker: Worker) -> Worker:
        return worker

    with ThreadPoolExecutor(1) as other:
        worker = other.submit(execute_directly, program).result(10)
    found: list[int] = []
    with worker.dataflow() as scope:
        numbers, stream = new_input(scope)
        stream.inspect(found.append)
    numbers.send(1)
    numbers.close()
    assert not worker.step()
    assert found == [1]
