"""Messages at one time that wait together are taken as one batch: none is lost, and exchanges do not multiply them."""

from __future__ import annotations

from collections import Counter, deque
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from timely import Columns, Config, Pipeline, Time, Worker, execute, new_input
from timely.communication.message import Taken
from timely.data.container import Batch, records
from timely.dataflow.alike import MOST, joined, leading_alike, order_by_time
from timely.dataflow.outstanding import Ledger, Outstanding
from timely.errors import OperatorError

BATCHES = st.one_of(
    st.lists(st.integers(0, 9), min_size=1, max_size=3),
    st.lists(st.integers(0, 9), min_size=1, max_size=3).map(lambda values: Columns((np.array(values),))),
    st.lists(st.floats(0, 9), min_size=1, max_size=3).map(lambda values: Columns((np.array(values), np.array(values)))),
    st.lists(st.text("ab"), min_size=1).map(lambda values: Columns((np.array(values, np.dtypes.StringDType()),))),
)
SIZES = [1] * 12
QUEUES = st.lists(st.tuples(st.tuples(st.integers(0, 2), st.integers(0, 1)), BATCHES), min_size=1, max_size=12)


def taken(queue: deque[tuple[Time, Batch]]) -> list[tuple[Time, Batch]]:
    """Return what an input takes of a queue: the messages in order of their times, those alike as one."""
    if order := order_by_time(queue):
        queue = deque([queue[place] for place in order])
    found = []
    while queue:
        alike = leading_alike(queue, SIZES, len(queue))
        first = [queue.popleft() for _ in range(alike)]
        found.append((first[0][0], first[0][1] if alike == 1 else joined([batch for _, batch in first])))
    return found


@given(QUEUES)
def test_each_time_has_its_records_in_order(messages: list[tuple[Time, Batch]]) -> None:
    expected: dict[Time, list[Any]] = {}
    found: dict[Time, list[Any]] = {}
    for each, queue in ((expected, messages), (found, taken(deque(messages)))):
        for time, batch in queue:
            each.setdefault(time, []).extend(records(batch))
    assert found == expected


def test_only_batches_of_one_kind_are_joined() -> None:
    numbers, floats = Columns((np.arange(2),)), Columns((np.arange(2.0),))
    for one, other in ((numbers, floats), (numbers, [1]), (numbers, Columns((np.arange(2), np.arange(2))))):
        assert leading_alike(deque([((0,), one), ((0,), other)]), SIZES, 2) == 1
    assert leading_alike(deque([((0,), numbers), ((0,), numbers), ((0,), floats)]), SIZES, 3) == 2


def test_large_batches_are_not_copied() -> None:
    queue: deque[tuple[Time, Batch]] = deque([((0,), Columns((np.arange(1),)))] * 4)
    assert leading_alike(queue, [MOST, 1, 1, 1], 4) == 1
    assert leading_alike(queue, [1, MOST, 1, 1], 4) == 1
    assert leading_alike(queue, [MOST // 2, MOST // 2, 1, 1], 4) == 2
    assert leading_alike(queue, SIZES, 4) == 4
    assert leading_alike(queue, SIZES, 4, room=2) == 2


def test_a_ledger_follows_the_order_of_the_queue() -> None:
    reports: list[tuple[int, Taken]] = []
    whole = Outstanding(3, 0, lambda peer, taken: reports.append((peer, taken)))
    ledger = Ledger(whole, 0, 3, 4, 5)
    for sender in (1, 2, 1):
        ledger.queue(sender, 10)
    ledger.sort([1, 0, 2])
    senders = []
    for _ in range(3):
        ledger.take()
        senders.append(ledger.sender)
    assert senders == [2, 1, 1]
    assert [peer for peer, _ in reports] == [2, 1, 1]


@pytest.mark.parametrize("listed", [False, True])
def test_exchanges_do_not_multiply_messages(listed: bool) -> None:
    exchanges, workers, rows = 8, 4, 4096
    batches, seen = [0] * workers, [0] * workers

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = new_input(scope)
            for place in range(exchanges):
                stream = stream.exchange(lambda x, place=place: (x * (2 * place + 3)) >> place)

            def sink(input: Any) -> None:
                for _, batch in input.drain():
                    batches[worker.index] += 1
                    seen[worker.index] += len(batch)

            probe = stream.unary(Pipeline(), lambda input, output: sink(input)).probe()
        if worker.index == 0:
            numbers.send_batch(list(range(rows)) if listed else Columns((np.arange(rows),)))
        numbers.close()
        worker.step_while(lambda: not probe.done())

    execute(program, Config(workers=workers))
    assert sum(seen) == rows
    assert sum(batches) < rows / 2  # each record would be a batch of its own


def test_the_rounds_of_a_loop_do_not_multiply_messages() -> None:
    rounds, workers, rows = 12, 4, 2000
    batches: Counter[int] = Counter()
    seen: Counter[int] = Counter()

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = new_input(scope)
            with scope.iterative() as inner:
                feedback, again = inner.feedback()
                moved = stream.enter(inner).concat(again).exchange(lambda x, r: x + 7919 * r)
                moved = moved.map(lambda x, r: (x, r + 1))
                moved.filter(lambda x, r: r < rounds).connect_loop(feedback)
                result = moved.filter(lambda x, r: r >= rounds).leave()

            def count(batch: Batch) -> None:
                batches[worker.index] += 1
                seen[worker.index] += len(batch)

            probe = result.inspect_batch(lambda time, batch: count(batch)).probe()
        if worker.index == 0:
            numbers.send(np.arange(rows), np.zeros(rows, np.int64))
        numbers.close()
        worker.step_while(lambda: not probe.done())

    execute(program, Config(workers=workers))
    assert sum(seen.values()) == rows
    assert sum(batches.values()) < rows / 2


def test_an_operator_may_use_its_list_again() -> None:
    found: list[list[int]] = []

    def pairs(input: Any, output: Any) -> None:
        pair: list[int] = []
        for right, batch in input:
            for record in batch:
                pair.append(record)
                if len(pair) == 2:
                    output.give(right, pair)
                    pair.clear()

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            made = scope.to_stream([1, 2, 3, 4]).unary(Pipeline(), pairs)
            made.sink(Pipeline(), lambda input: found.extend(batch for _, batch in input.drain()))

    execute(program)
    assert found == [[1, 2], [3, 4]]


def test_an_operator_that_writes_to_columns_it_has_sent_is_an_error() -> None:
    def twice(input: Any, output: Any) -> None:
        buffer = np.zeros(2, np.int64)
        for right, _ in input:
            for number in range(2):
                buffer[:] = number
                output.give(right, Columns((buffer,)))

    with pytest.raises(OperatorError, match="read-only"):
        execute(lambda worker: build(worker, twice))


def build(worker: Worker, logic: Any) -> None:
    with worker.dataflow() as scope:
        scope.to_stream([0]).unary(Pipeline(), logic).probe()


def test_a_list_that_was_sent_may_be_used_again() -> None:
    found: list[Any] = []

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = new_input(scope)
            probe = stream.exchange().inspect(found.append).probe()
        batch = [1, 2]
        numbers.send_batch(batch)
        batch.clear()
        numbers.close()
        worker.step_while(lambda: not probe.done())

    execute(program)
    assert found == [1, 2]
