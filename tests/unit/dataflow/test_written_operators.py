"""The operators of `docs/operators.md`, as the chapter defines them, against a computation over all records at once."""

from __future__ import annotations

import io
import re
from collections import defaultdict
from contextlib import redirect_stdout
from functools import cache
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from tests.api.modules import ROOT
from tests.unit.dataflow.running import on_workers
from timely import Config, Time, Worker, execute, new_input

CHAPTER = ROOT / "docs" / "operators.md"

Action = tuple[str, int, int, bool]
"""What a worker does: send a record to an input, or advance the input by some epochs; and whether it then steps."""

Emitted = list[tuple[Time, Any]]


def actions(*inputs: str) -> st.SearchStrategy[list[list[Action]]]:
    """Draw the actions of one to three workers on their inputs of these names."""
    records = st.tuples(st.sampled_from(inputs), st.integers(0, 2), st.integers(-5, 40), st.booleans())
    names = st.sampled_from([f"advance {name}" for name in inputs])
    advances = st.tuples(names, st.integers(1, 2), st.just(0), st.booleans())
    return st.lists(st.lists(st.one_of(records, advances), max_size=20), min_size=1, max_size=3)


@cache
def chapter(operator: str) -> dict[str, Any]:
    """Return the names that the chapter's block with this operator defines."""
    (block,) = (
        code
        for code in re.findall(r"```python\n(.*?)```", CHAPTER.read_text(), re.DOTALL)
        if f"def {operator}(" in code
    )
    names: dict[str, Any] = {"__name__": "__main__"}
    with redirect_stdout(io.StringIO()):
        exec(compile(block, str(CHAPTER), "exec"), names)
    return names


def emitted(operator: str, schedules: list[list[Action]], *inputs: str) -> Emitted:
    """Return the output of the operator on all workers, one for each schedule, as sorted (time, record)."""

    def program(worker: Worker) -> Emitted:
        found: Emitted = []
        sessions = {}
        with worker.dataflow() as scope:
            streams = []
            for name in inputs:
                sessions[name], stream = new_input(scope, name=name)
                streams.append(stream)
            chapter(operator)[operator](*streams).inspect_time(lambda time, record: found.append((time, record)))
        for action, first, second, steps in schedules[worker.index]:
            session = sessions[action.removeprefix("advance ")]
            if action in sessions:
                session.send(first, second)
                session.flush()
            else:
                session.advance_to(session.epoch + first)
            if steps:
                worker.step()
        return found

    return sorted(record for found in execute(program, Config(workers=len(schedules))) for record in found)


def sent(schedules: list[list[Action]], name: str) -> list[tuple[Time, int, int]]:
    """Return (time, first field, second field) of every record sent to the input of that name."""
    records: list[tuple[Time, int, int]] = []
    for schedule in schedules:
        epoch = 0
        for action, first, second, _ in schedule:
            if action == name:
                records.append(((epoch,), first, second))
            elif action == f"advance {name}":
                epoch += first
    return records


@given(actions("readings"))
def test_means_are_those_of_all_readings_of_a_time(schedules: list[list[Action]]) -> None:
    values = defaultdict(list)
    for time, sensor, value in sent(schedules, "readings"):
        values[time, sensor].append(value)
    expected = sorted((time, (sensor, sum(found) / len(found))) for (time, sensor), found in values.items())
    assert emitted("means", schedules, "readings") == expected


@given(actions("orders", "prices"))
@example([[("orders", 1, 3, False), ("advance orders", 1, 0, True), ("prices", 1, 10, True)]])
@example([[("orders", 1, 3, False)], [("prices", 1, 10, True), ("prices", 1, 9, True)]])
def test_an_order_receives_the_last_price_at_or_before_its_time(schedules: list[list[Action]]) -> None:
    prices = sent(schedules, "prices")
    expected = []
    for time, item, amount in sent(schedules, "orders"):
        earlier = [(when, price) for when, priced, price in prices if priced == item and when <= time]
        if earlier:
            expected.append((time, (item, amount, max(earlier)[1])))
    assert emitted("priced", schedules, "orders", "prices") == sorted(expected)


@given(actions("readings"))
def test_records_emitted_an_epoch_later_are_all_there(schedules: list[list[Action]]) -> None:
    expected = sorted(((epoch + 1,), (sensor, value)) for (epoch,), sensor, value in sent(schedules, "readings"))
    assert emitted("next_epoch", schedules, "readings") == expected


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5))), st.integers(0, 5))
def test_prices_that_are_forgotten_are_those_that_later_orders_cannot_ask_for(
    prices: list[tuple[int, int]], since: int
) -> None:
    kept, forgotten = chapter("priced")["Prices"](), chapter("priced")["Prices"]()
    for epoch, price in [(0, -1), *prices]:
        kept.insert((epoch,), "tea", price)
        forgotten.insert((epoch,), "tea", price)
    forgotten.forget("tea", (since,))
    for epoch in range(since, 7):
        assert forgotten.as_of((epoch,), "tea") == kept.as_of((epoch,), "tea")
    assert sum(epoch <= (since,) for epoch, _ in forgotten.history["tea"]) == 1


@on_workers
def test_orders_are_answered_and_prices_forgotten_while_prices_continue(
    workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []

    class Recorded(chapter("priced")["Prices"]):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            made.append(self)

    monkeypatch.setitem(chapter("priced"), "Prices", Recorded)

    def program(worker: Worker) -> int:
        with worker.dataflow() as scope:
            order, orders = new_input(scope)
            price, prices = new_input(scope)
            probe = chapter("priced")["priced"](orders, prices).probe()
        for epoch in range(100):
            price.send(worker.index, epoch)
            order.send(worker.index, epoch)
            for session in (price, order):
                session.advance_to(epoch + 1)
            worker.step_while(lambda: probe.less_than(order.epoch))
        held = max(len(prices) for each in made for prices in each.history.values())
        order.close()
        worker.step_while(lambda: not probe.done())  # even though the input of prices is open
        for _ in range(3):
            price.send(worker.index, 0)
            price.flush()
            worker.step()
        return held

    # Prices of the epochs in progress while a worker that is ahead sends more, and of the epoch before.
    assert max(execute(program, Config(workers=workers))) <= 4
    assert len(made) == workers
    assert not any(each.history for each in made)
