"""Counts agree with the accounts, which add up records of everything."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from differential import Collection, new_input
from differential.graphs import bfs
from timely import Config, Worker, execute, execute_directly
from timely.dataflow.recorder import Counts
from timely.observe.accounts import Account
from timely.observe.events import MessageReceived, ScheduleStopped


def distances(worker: Worker) -> Callable[[], None]:
    """Build a dataflow; return a function that feeds a round of it."""
    with worker.dataflow() as scope:
        edges, graph = new_input(scope)
        probe = bfs(graph, Collection.of(scope, 0)).count().probe()
    random = np.random.default_rng(worker.index)

    def feed() -> None:
        edges.insert(random.integers(0, 50, 40), random.integers(0, 50, 40))
        edges.advance_to(edges.epoch + 1)
        worker.step_while(lambda: probe.less_than(edges.time))

    return feed


def figures(counts: Counts) -> list[list[int]]:
    """Return copies of all that is counted."""
    return [list(counts.nanoseconds), list(counts.received), list(counts.emitted), list(counts.inline_received)]


@pytest.mark.parametrize("config", [Config(), Config(workers=2), Config(general=True), Config(plain=True)])
def test_counts_are_what_accounts_add_up(config: Config) -> None:
    def program(worker: Worker) -> None:
        feed = distances(worker)
        feed()
        account = Account(worker)
        stop = worker.log.count()
        for _ in range(5):
            feed()
        dataflow = worker.dataflows[0]
        counts = dataflow.counts
        assert counts is not None
        received = [0] * len(dataflow.operators)
        for port in dataflow.channels:
            received[port.operator.index] += counts.received[port.channel]
        added = {each.operator: each for each in account.operators()}
        for index, records in enumerate(received):
            if index in added:
                assert records == added[index].records_in, dataflow.operators[index]
                assert counts.emitted[index] == added[index].records_out, dataflow.operators[index]
                timed, accounted = counts.nanoseconds[index], added[index].nanoseconds
                assert timed <= accounted  # which includes what calls the operator
                assert bool(timed) == bool(accounted)
        for index, (came, went) in enumerate(zip(counts.inline_received, counts.inline_sent)):
            assert (came, went) == (added[~index].records_in, added[~index].records_out)
        assert sum(received) > 1000 / worker.peers
        stop()
        before = figures(counts)
        feed()
        assert before == figures(counts)

    execute(program, config)


def test_messages_keep_their_senders_while_counting_begins_and_ends() -> None:
    def program(worker: Worker) -> None:
        senders = []
        feed = distances(worker)
        worker.log.listen(lambda events: senders.extend(event.source for event in events), MessageReceived)
        for _ in range(3):
            feed()
            stop = worker.log.count()
            feed()
            stop()
        assert set(senders) == {0, 1}

    execute(program, Config(workers=2))


def test_what_is_not_counted_is_called_as_before() -> None:
    def program(worker: Worker) -> None:
        feed = distances(worker)
        dataflow = worker.dataflows[0]
        logics = [operator.logic for operator in dataflow.operators]
        stops = [worker.log.count(), worker.log.count()]
        assert [operator.logic for operator in dataflow.operators] != logics
        stops[0]()
        stops[0]()
        assert [operator.logic for operator in dataflow.operators] != logics
        stops[1]()
        assert [operator.logic for operator in dataflow.operators] == logics
        assert [port.counter for port in dataflow.channels] == [None] * len(dataflow.channels)
        assert [port.recorder for port in dataflow.channels] == [None] * len(dataflow.channels)
        feed()
        assert dataflow.counts is not None
        assert sum(dataflow.counts.received) == sum(dataflow.counts.emitted) == 0
        assert [tee.observers for operator in dataflow.operators for tee in operator.tees if tee.observers] == []

    execute_directly(program)


def test_activations_are_recorded_while_they_are_counted() -> None:
    def program(worker: Worker) -> None:
        recorded = []
        feed = distances(worker)
        worker.log.listen(recorded.extend, ScheduleStopped)
        worker.log.count()
        dataflow = worker.dataflows[0]
        before = sum(operator.activations for operator in dataflow.operators)
        feed()
        worker.log.flush()
        assert len(recorded) == sum(operator.activations for operator in dataflow.operators) - before > 0

    execute_directly(program)


def test_a_dataflow_that_is_built_meanwhile_is_counted_from_its_start() -> None:
    def program(worker: Worker) -> None:
        stop = worker.log.count()
        distances(worker)()
        dataflow = worker.dataflows[0]
        counts = dataflow.counts
        assert counts is not None
        for operator in dataflow.operators:
            assert bool(counts.nanoseconds[operator.index]) == bool(operator.activations), operator
        stop()
        before = figures(counts)
        distances(worker)()
        assert before == figures(counts)

    execute_directly(program)
