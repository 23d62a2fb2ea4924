"""Workers with peers run what lies between two exchanges in regions, and mean what a single worker means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import timely.dataflow.region as regions
from benchmarks.simulated import SimulatedNetwork
from differential import Collection, InputSession, Variable, new_input
from differential.graphs import bfs, strongly_connected_components, weakly_connected_components
from tests.invariants import check
from timely import Config, Probe, Scope, Worker
from timely.communication.message import Data
from timely.order import Time

Definition = Callable[[Collection], Collection]
Change = tuple[tuple[int, int], int, int, int]
"""An edge, its epoch, its diff, and the worker that makes the change."""


def swapped_in_the_loop(edges: Collection) -> Collection:
    """Return what a loop that spreads its records twice in each round holds."""
    with edges.scope.iterative() as loop:
        inside = edges.enter(loop)
        value = Variable(loop, edges)
        once = value.collection.map(lambda a, b: (b, a)).distinct()
        again = once.join_map(inside, lambda key, a, b: (a, b)).concat(inside).distinct()
        value.set(again)
        return again.leave(edges.scope)


DEFINITIONS: dict[str, Definition] = {
    "bfs": lambda edges: bfs(edges, Collection.of(edges.scope, 0)),
    "components": weakly_connected_components,
    "strong components": strongly_connected_components,
    "degrees": lambda edges: edges.map(lambda a, b: a).count().map(lambda a, n: n).count().map(lambda a, n: n).count(),
    "two exchanges in a round": swapped_in_the_loop,
    "components in each round": lambda edges: edges.iterate(
        lambda inner: (
            weakly_connected_components(inner).map(lambda a, b: (np.minimum(b, 3), a)).concat(inner).distinct()
        ),
        limit=40,
    ),
    "loop of distinct": lambda edges: edges.iterate(
        lambda inner: inner.map(lambda a, b: (b, a)).join_map(edges, lambda b, a, c: (a, c)).concat(edges).distinct()
    ),
}


class Cluster:
    """Workers in one thread that run one definition, on a network that delivers in an order that a seed decides."""

    def __init__(self, peers: int, definition: Definition, seed: int, general: bool) -> None:
        self.network = SimulatedNetwork(peers, seed)
        self.workers = [Worker(each, Config(general=general)) for each in self.network.allocators]
        self.random = Random(seed)
        self.sessions: list[InputSession] = []
        self.probes: list[Probe] = []
        self.scopes: list[Scope] = []
        self.changes: Counter[tuple[Any, Time]] = Counter()
        for worker in self.workers:
            with worker.dataflow() as scope:
                session, edges = new_input(scope, name="edges")
                answer = definition(edges).consolidate()
                self.probes.append(answer.stream.inspect_batch(self._take).probe())
            self.sessions.append(session)
            self.scopes.append(scope)

    def _take(self, _: Time, batch: Any) -> None:
        """Add up what some worker emits; no worker may have been told that its time is complete."""
        for record, time, diff in batch.rows():
            assert not any(not probe.frontier.less_equal(time) for probe in self.probes), (
                f"{record} came late, at {time}"
            )
            self.changes[record, time] += diff

    def one_event(self) -> bool:
        """Deliver a message or take a step; return False if there is nothing to do on any worker."""
        if self.network.pending and self.random.random() < 0.6:
            self.network.deliver_one()
            return True
        workers = self.random.sample(self.workers, len(self.workers))
        return any(worker._step() for worker in workers) or bool(self.network.deliver_one())

    def run(self) -> dict[tuple[Any, Time], int]:
        """Run until all is over; return the changes at every time."""
        for _ in range(200_000):
            if not self.one_event():
                break
        assert not any(worker.dataflows for worker in self.workers), self.workers[0].explain(patience=0)
        for scope in self.scopes:
            check(scope.dataflow.tracker)
            check(scope.dataflow.schedule)
        return {change: diff for change, diff in self.changes.items() if diff}


def results(name: str, changes: list[Change], *, peers: int, seed: int, general: bool) -> dict[tuple[Any, Time], int]:
    """Return the changes of a definition, computed by workers that run a while after each change of the input."""
    cluster = Cluster(peers, DEFINITIONS[name], seed, general)
    for (a, b), epoch, diff, worker in changes:
        cluster.sessions[worker % peers].update_at(a, b, time=epoch, diff=diff)
        for _ in range(cluster.random.randrange(6)):
            cluster.one_event()
    for session in cluster.random.sample(cluster.sessions, peers):
        session.close()
        for _ in range(cluster.random.randrange(6)):
            cluster.one_event()
    return cluster.run()


edges = st.tuples(st.integers(0, 4), st.integers(0, 4))
changes = st.lists(st.tuples(edges, st.integers(0, 3), st.just(1), st.integers(0, 2)), max_size=10)


@settings(max_examples=12, deadline=None)
@given(st.sampled_from(sorted(DEFINITIONS)), changes, st.integers(0, 1000))
def test_changes_at_every_time_are_those_of_one_worker(name: str, made: list[Change], seed: int) -> None:
    alone = results(name, made, peers=1, seed=seed, general=True)
    peers = 2 + seed % 2
    assert results(name, made, peers=peers, seed=seed, general=False) == alone
    assert results(name, made, peers=peers, seed=seed, general=True) == alone


@pytest.mark.lengthy
@settings(max_examples=250, deadline=None)
@given(st.sampled_from(sorted(DEFINITIONS)), changes, st.integers(0, 10_000), st.booleans())
def test_changes_at_every_time_are_those_of_one_worker_at_length(
    name: str, made: list[Change], seed: int, pauses: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if pauses:
            patch.setattr(regions, "PATIENCE", -1.0)
        alone = results(name, made, peers=1, seed=seed, general=True)
        assert results(name, made, peers=2 + seed % 3, seed=seed, general=False) == alone


def members(scope: Scope) -> list[list[str]]:
    return [[member.name for member in region.members] for region in scope.dataflow.regions]


@pytest.mark.composed
def test_a_round_of_a_loop_is_one_region_that_sends_to_itself_on_other_workers() -> None:
    scope = Cluster(2, DEFINITIONS["bfs"], 0, general=False).scopes[0]
    assert ["arrange", "min", "join_map"] in members(scope)
    assert not Cluster(2, DEFINITIONS["bfs"], 0, general=True).scopes[0].dataflow.regions


@pytest.mark.composed
def test_an_exchange_in_the_middle_of_a_round_divides_the_loop() -> None:
    found = members(Cluster(2, swapped_in_the_loop, 0, general=False).scopes[0])
    (whole,) = members(Cluster(1, swapped_in_the_loop, 0, general=False).scopes[0])
    assert len(found) > 1
    assert all(len([name for name in each if name == "arrange"]) < len(whole) for each in found)


def test_what_a_loop_emits_is_final_though_what_joins_it_beside_the_loop_is_not() -> None:
    network = SimulatedNetwork(2, 5)
    workers = [Worker(each, Config()) for each in network.allocators]
    sessions, answers = [], []
    for worker in workers:
        with worker.dataflow() as scope:
            (fast, one), (slow, other) = new_input(scope, name="fast"), new_input(scope, name="slow")
            with scope.iterative() as loop:
                value = Variable(loop, one)
                reached = value.collection.map(lambda a: np.minimum(a + 1, 9)).concat(one.enter(loop)).distinct()
                value.set(reached)
                aside = reached.join(other.enter(loop).map(lambda a: (a, a)).distinct().map(lambda a, b: a).distinct())
                answers.append((reached.leave(scope).probe(), aside.leave(scope).probe()))
        sessions.append((fast, slow))
    for fast, _ in sessions:
        fast.insert(3)
        fast.advance_to(1)
    for _ in range(3000):
        network.deliver_one()
        for worker in workers:
            worker._step()
    assert not any(main.less_than(1) for main, _ in answers)
    assert all(aside.less_than(1) for _, aside in answers)
    for fast, slow in sessions:
        fast.close()
        slow.close()
    for _ in range(3000):
        network.deliver_one()
        for worker in workers:
            worker._step()
    assert not any(worker.dataflows for worker in workers)


@pytest.mark.composed
def test_what_regions_of_other_workers_hold_is_counted_once() -> None:
    cluster = Cluster(2, DEFINITIONS["bfs"], 1, general=False)
    first, second = cluster.workers
    cluster.sessions[0].update_at(0, np.arange(20), time=3)
    for session in cluster.sessions:
        session.flush()
    for _ in range(400):
        cluster.one_event()
    lines = first.explain(patience=0).splitlines()
    elsewhere = [line for line in lines if "on other workers" in line]
    held = sum(len(region.counted) for region in cluster.scopes[1].dataflow.regions)
    assert held == 1, "the round in which the edges wait for their epoch"
    assert [line for line in elsewhere if "a region of" in line] == [
        line for line in elsewhere if line.startswith("  a capability or message at (0, 0) on other workers, a region")
    ]
    assert "operator 'edges'" in second.explain(patience=0)


def test_a_change_of_the_distances_costs_as_many_messages_as_without_regions() -> None:
    sent = []
    for general in (False, True):
        cluster = Cluster(2, DEFINITIONS["bfs"], 2, general)
        kinds: Counter[type] = Counter()
        count(cluster.network, kinds)
        for session in cluster.sessions:
            session.advance_to(1)
        settle(cluster, 1)
        kinds.clear()
        for epoch in range(1, 20):
            cluster.sessions[0].insert(epoch % 5, epoch % 7)
            for session in cluster.sessions:
                session.advance_to(epoch + 1)
            settle(cluster, epoch + 1)
        sent.append(kinds)
    with_regions, without = sent
    assert with_regions[Data] == without[Data] > 0
    assert with_regions.total() <= without.total()


def count(network: SimulatedNetwork, kinds: Counter[type]) -> None:
    """Count the messages that are sent from now on, by kind."""
    send = network.send

    def counted(sender: int, receiver: int, message: Any) -> None:
        kinds[type(message)] += 1
        send(sender, receiver, message)

    network.send = counted  # type: ignore[method-assign]


def settle(cluster: Cluster, epoch: int) -> None:
    """Run all workers in turn, each as long as it has something to do, until all epochs before one are complete."""
    for _ in range(10_000):
        if not any(probe.less_than(epoch) for probe in cluster.probes):
            return
        for worker in cluster.workers:
            while worker._step():
                pass
        while cluster.network.deliver_one():
            pass
    raise AssertionError(f"epoch {epoch - 1} never ends: {cluster.workers[0].explain(patience=0)}")
