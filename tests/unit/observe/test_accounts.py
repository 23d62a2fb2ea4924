"""The accounts of operators add up to the batches emitted, the work done and the rows kept."""

from __future__ import annotations

import time as clock
from typing import Any

import numpy as np
import pytest

import timely
from differential import Collection, new_input
from differential.trace.events import TRACES, BatchesMerged, BatchInserted, TraceDropped
from timely import Config, Input, Pipeline, Worker, execute, execute_directly
from timely.observe.accounts import Account, OperatorAccount, table
from timely.observe.events import StateResized

on_workers = pytest.mark.parametrize("workers", [1, 3])


def counted(workers: int) -> list[list[OperatorAccount]]:
    """Return the accounts of a program that sends 100 numbers from each worker, through an exchange."""

    def program(worker: Worker) -> list[OperatorAccount]:
        account = Account(worker)
        with worker.dataflow("counted") as scope:
            numbers, stream = timely.new_input(scope, name="numbers")
            stream.filter(lambda x: x % 2 == 0).exchange().unary(Pipeline(), slowly, name="slowly").probe()
        numbers.send(np.arange(100))
        numbers.close()
        while worker.step_or_park():
            pass
        return account.operators()

    return execute(program, Config(workers=workers))


def slowly(input: Any, output: Any) -> None:
    for capability, batch in input:
        clock.sleep(0.01)
        output.give(capability, batch)


@pytest.mark.composed
@on_workers
def test_records_and_bytes_are_counted_when_emitted_and_when_received(workers: int) -> None:
    everything = [account for accounts in counted(workers) for account in accounts]
    sums = {name: [0, 0, 0, 0] for name in ("numbers", "filter", "exchange", "slowly")}
    for each in everything:
        for place, number in enumerate((each.records_in, each.bytes_in, each.records_out, each.bytes_out)):
            sums[each.name][place] += number
    evens = 50 * workers
    assert sums["numbers"] == [0, 0, 2 * evens, 16 * evens]
    assert sums["filter"] == [2 * evens, 0, evens, 0]
    assert sums["exchange"] == [evens, 8 * evens, evens, 8 * evens]
    assert sums["slowly"] == [evens, 8 * evens, evens, 8 * evens]
    busy = [each for each in everything if each.name == "slowly"]
    assert all(each.nanoseconds >= 10_000_000 * each.messages_in for each in busy)
    assert all(each.activations >= 1 for each in busy)


class Ticks:
    """The clock of a worker's log: a microsecond passes at each reading, and as much more as a test adds."""

    def __init__(self, worker: Worker) -> None:
        self.time = 0
        worker.log.now = self.now  # type: ignore[method-assign]

    def now(self) -> int:
        self.time += 1000
        return self.time


@pytest.mark.parametrize("config", [Config(), Config(workers=2), Config(general=True), Config(plain=True)])
def test_what_is_consumed_in_line_or_several_times_counts_once(config: Config) -> None:
    def program(worker: Worker) -> dict[str, int]:
        account = Account(worker)
        with worker.dataflow() as scope:
            counted = scope.to_stream(range(5)).count()
            counted.map(lambda x: x + 1).inspect(print_nothing)
            counted.exchange().probe()
            counted.sink(Pipeline(), lambda input: list(input.drain()), name="end")
        while worker.step_or_park(0.01):
            pass
        return {each.name: each.records_out for each in account.operators() if not each.name.startswith("probe")}

    found = execute(program, config)
    assert sum(each.pop("exchange") for each in found) == len(found)
    assert found == [{"to_stream": 5, "count": 1, "map": 1, "inspect": 1, "end": 0}] * len(found)


def print_nothing(record: object) -> None:
    """Take a record."""


@pytest.mark.composed
def test_an_in_line_operator_has_its_own_line_and_its_own_time() -> None:
    def slow(x: Any) -> Any:
        ticks[0].time += 10_000_000
        return x + 1

    accounts: list[Account] = []
    ticks: list[Ticks] = []

    def program(worker: Worker) -> None:
        ticks.append(Ticks(worker))
        accounts.append(Account(worker))
        with worker.dataflow("lines") as scope:
            low, high = scope.to_stream(range(10)).map(slow).branch(lambda x: x > 7)
            low.concat(high.map_batch(lambda x: np.repeat(x, 2))).exchange().probe()

    execute_directly(program)
    by_name = {account.name: account for account in accounts[0].operators()}
    line = program.__code__.co_firstlineno + 4
    assert by_name["map"].origin == f"{__file__}:{line}"
    counted = {name: (account.records_in, account.records_out) for name, account in by_name.items()}
    assert counted == {
        "to_stream": (0, 10),
        "map": (10, 10),
        "branch": (10, 10),
        "map_batch": (3, 6),
        "exchange": (13, 13),
    }
    assert by_name["map"].is_in_line
    assert by_name["branch"].nanoseconds < 10_000_000 <= by_name["map"].nanoseconds
    assert by_name["map"].nanoseconds <= by_name["to_stream"].nanoseconds
    heading, _, *rows = table(accounts).splitlines()
    assert any(row.startswith(f"lines/map (in line, test_accounts.py:{line})") for row in rows)
    busy = sum(account.nanoseconds for account in by_name.values() if not account.is_in_line)
    assert f"{busy / 1e9:.3f} s in operators" in heading


def test_a_table_adds_up_workers_and_begins_with_the_operators_that_took_longest() -> None:
    accounts: list[Account] = []

    def program(worker: Worker) -> None:
        ticks = Ticks(worker)
        accounts.append(Account(worker))

        def slowly(input: Any, output: Any) -> None:
            for capability, batch in input:
                ticks.time += 10_000_000
                output.give(capability, batch)

        with worker.dataflow("counted") as scope:
            stream = scope.to_stream(range(10))
            stream.exchange().unary(Pipeline(), slowly, name="slowly").probe()

    execute(program, Config(workers=2))
    heading, titles, first, *rest = table(accounts).splitlines()
    assert heading.startswith("2 workers, ")
    assert titles.split()[:2] == ["operator", "runs"]
    assert first.split()[:2] == ["counted/slowly", "(0.2)"]
    assert first.split()[4:6] == ["20", "160"]
    assert len(rest) == 2


def test_a_table_is_truncated_after_the_costliest_operators() -> None:
    accounts: list[Account] = []

    def program(worker: Worker) -> None:
        accounts.append(Account(worker))
        with worker.dataflow() as scope:
            stream = scope.to_stream(range(1))
            for _ in range(60):
                stream = stream.exchange()

    execute_directly(program)
    lines = table(accounts).splitlines()
    assert len(lines) == 43
    assert lines[-1] == "and 21 more operators"


@pytest.mark.composed
@on_workers
def test_the_costs_of_dataflows_that_ended_are_kept_in_one_row_for_each_operator(workers: int) -> None:
    accounts: list[Account] = []

    def program(worker: Worker) -> None:
        account = Account(worker)
        accounts.append(account)
        for _ in range(20):
            with worker.dataflow("query") as scope:
                stream = scope.to_stream([1, 2]).map(lambda x: x).map(lambda x: x + 1)
                stream.exchange().exchange(lambda x: x).probe()
            worker.step_while(lambda: bool(worker.dataflows))
            worker.step()
            assert not account._running
            assert len(account._ended) <= 10

    execute(program, Config(workers=workers))
    for account in accounts:
        operators = account.operators()
        assert [each.name for each in operators] == ["exchange", "exchange", "map", "map", "to_stream"]
        assert {each.dataflows for each in operators} == {20}
        assert [each.records_in for each in operators if each.is_in_line] == [40, 40]
    rows = table(accounts).splitlines()[2:]
    assert len(rows) == 5
    (sources,) = [row for row in rows if row.startswith("query/to_stream (20 dataflows, 0)")]
    assert sources.split()[-4] == str(40 * workers)


def test_rows_kept_by_dataflows_one_after_the_other_do_not_add_up() -> None:
    def program(worker: Worker) -> list[OperatorAccount]:
        account = Account(worker)
        for size in (10, 30, 20):
            with worker.dataflow() as scope:
                Collection.of(scope, np.arange(size), np.arange(size)).distinct().probe()
            while worker.step():
                pass
        return [each for each in account.operators() if each.rows_kept]

    for account in execute_directly(program):
        assert (account.rows_kept, account.dataflows) == (30, 3)


def test_an_operator_that_drops_its_dataflow_is_accounted_for_its_last_run() -> None:
    def program(worker: Worker) -> list[OperatorAccount]:
        ticks, account = Ticks(worker), Account(worker)

        def dropping(input: Any, output: Any) -> None:
            for _ in input:
                ticks.time += 10_000_000
                worker.drop_dataflow(scope.dataflow)

        with worker.dataflow() as scope:
            scope.to_stream([1]).exchange().unary(Pipeline(), dropping, name="dropping")
        worker.step_while(lambda: bool(worker.dataflows))
        for _ in range(3):
            worker.step()
        with worker.dataflow() as scope:
            scope.to_stream([1]).exchange()
        worker.step()
        return account.operators()

    (dropping,) = [each for each in execute_directly(program) if each.name == "dropping"]
    assert dropping.nanoseconds >= 10_000_000


@on_workers
def test_the_size_reported_for_a_trace_is_its_size(workers: int) -> None:
    def program(worker: Worker) -> None:
        sizes: dict[int, list[int]] = {}
        states: dict[int, list[int]] = {}

        def listen(events: Any) -> None:
            for event in events:
                if type(event) is StateResized:
                    state = states.setdefault(event.operator, [0, 0])
                    state[0] += event.rows
                    state[1] += event.bytes
                    continue
                held = sizes.setdefault(event.operator, [0, 0])
                if type(event) is BatchInserted:
                    held[0] += event.rows
                    held[1] += event.bytes
                elif type(event) is BatchesMerged:
                    held[0] += event.rows - event.rows_before
                    held[1] += event.bytes - event.bytes_before
                else:
                    assert type(event) is TraceDropped
                    assert held == [event.rows, event.bytes]
                    held[:] = [0, 0]

        with worker.dataflow() as scope:
            session, words = new_input(scope)
            arranged = words.arrange_by_key()
            trace = arranged.reader()
            probe = arranged.count(signed=True).probe()
        random = np.random.default_rng(worker.index)

        def go_on(epochs: int) -> None:
            for _ in range(epochs):
                session.update(
                    random.integers(0, 50, 200), random.integers(0, 3, 200), diff=random.choice([-1, 1], 200)
                )
                session.advance_to(session.epoch + 1)
                worker.step_while(lambda: probe.less_than(session.time))
                trace.allow_compaction(trace.upper)

        go_on(3)
        worker.log.listen(listen, *TRACES, StateResized)
        for _ in range(12):
            go_on(1)
            worker.log.flush()
            batches = trace.batches()
            assert sizes[1] == states[1] == [sum(map(len, batches)), sum(batch.nbytes for batch in batches)]
        assert sizes[1][0] > 0
        trace.drop()
        session.close()
        while worker.step_or_park():
            pass
        worker.log.flush()
        assert set(map(tuple, sizes.values())) == set(map(tuple, states.values())) == {(0, 0)}

    execute(program, Config(workers=workers))


def test_traces_are_not_observed_without_a_listener() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            _, words = new_input(scope)
            trace = words.arrange_by_key().reader()
        assert trace.spine.observer is None
        stop = worker.log.listen(lambda events: None, *TRACES)
        assert trace.spine.observer is not None
        stop()
        assert trace.spine.observer is None
        worker.close()
        assert not worker.log._gauges

    execute_directly(program)


def test_the_rows_that_an_arrangement_keeps_are_in_its_account() -> None:
    def program(worker: Worker) -> dict[str, tuple[int, int]]:
        account = Account(worker)
        with worker.dataflow() as scope:
            numbers = Collection.of(scope, np.arange(1000), np.arange(1000))
            numbers.count().output()
            reader = numbers.distinct().arrange_by_key().reader()
        while worker.step_or_park():
            pass
        assert reader.spine.readers == 1
        return {each.name: (each.rows_kept, each.bytes_kept) for each in account.operators()}

    kept = execute_directly(program)
    for name in ("count", "distinct"):
        assert kept[name][0] == 1000
        assert kept[name][1] >= 16_000


def pass_on(input: Any, output: Any) -> None:
    for each in input:
        output.give(*each)


def test_messages_of_an_input_are_not_attributed_to_an_operator_that_sends_there_too() -> None:
    def program(worker: Worker) -> list[OperatorAccount]:
        def alike(name: str) -> Input:
            with worker.dataflow(name) as scope:
                numbers, stream = timely.new_input(scope)
                passed = stream.unary(Pipeline(), pass_on)
                stream.concat(passed).unary(Pipeline(), pass_on, name="last")
            return numbers

        account = Account(worker)
        inputs = [alike("first"), alike("second")]
        for numbers in inputs:
            numbers.send(1)
            numbers.flush()
        worker.step()
        for numbers in inputs:
            numbers.close()
        return account.operators()

    sent = {(each.path, each.name): each.messages_out for each in execute_directly(program)}
    for dataflow in ("first", "second"):
        assert sent[dataflow, "input"] == 1
        assert sent[dataflow, "unary"] == 1
