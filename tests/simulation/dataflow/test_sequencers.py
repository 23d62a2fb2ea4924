"""Commands given on workers of a simulated network: all workers see one order, in whatever order messages arrive."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import given, settings, strategies as st

from benchmarks.simulated import SimulatedNetwork
from tests.thorough import examples
from timely import Config, Sequencer, Worker
from timely.data.container import records
from timely.dataflow.dataflow import Dataflow

COMMANDS = 12


class Site:
    """A worker that follows the commands: it installs dataflows, and drops them."""

    def __init__(self, network: SimulatedNetwork, index: int) -> None:
        self.worker = Worker(network.allocators[index], Config())
        self.commands = Sequencer(self.worker)
        self.seen: list[Any] = []
        self.installed: dict[int, Dataflow] = {}
        self.found: dict[int, list[int]] = {}

    def act(self) -> None:
        self.worker.step()
        for command in self.commands:
            self.seen.append(command)
            name, number = command
            if name == "install" and number not in self.found:
                self._install(number)
            elif name == "drop" and number in self.installed:
                self.worker.drop_dataflow(self.installed.pop(number))

    def _install(self, number: int) -> None:
        found = self.found[number] = []
        with self.worker.dataflow(f"dataflow {number}") as scope:
            numbers = scope.to_stream(range(number)).exchange()
            numbers.inspect_batch(lambda _, batch: found.extend(records(batch)))
        self.installed[number] = scope.dataflow


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(1, 4), st.integers(0, 2**32))
def test_all_workers_see_one_order_and_build_the_same_dataflows(peers: int, seed: int) -> None:
    rng = Random(seed)
    network = SimulatedNetwork(peers, seed)
    sites = [Site(network, index) for index in range(peers)]
    left = [(rng.choice(["install", "drop"]), rng.randrange(5)) for _ in range(COMMANDS)]
    given_by: list[list[Any]] = [[] for _ in sites]
    for _ in range(20_000):
        if not left and not network.pending and all(len(site.seen) == COMMANDS for site in sites):
            break
        event = rng.random()
        if event < 0.2 and left:
            index = rng.randrange(peers)
            given_by[index].append(left[-1])
            sites[index].commands.push(left.pop())
        elif event < 0.6:
            network.deliver_one()
        else:
            rng.choice(sites).act()
        longest = max((site.seen for site in sites), key=len)
        assert all(site.seen == longest[: len(site.seen)] for site in sites)
    assert all(len(site.seen) == COMMANDS for site in sites), [len(site.seen) for site in sites]
    for given_here in given_by:
        rest = iter(sites[0].seen)
        assert all(command in rest for command in given_here)
    _drain(network, sites)
    assert all(site.worker.built == sites[0].worker.built for site in sites)
    assert all(site.installed.keys() == sites[0].installed.keys() for site in sites)
    for number in sites[0].installed:
        found = sorted(record for site in sites for record in site.found[number])
        assert found == sorted(list(range(number)) * peers)


def _drain(network: SimulatedNetwork, sites: list[Site]) -> None:
    for site in sites:
        site.commands.close()
    for _ in range(10_000):
        for site in sites:
            site.act()
        if not network.deliver_one() and not any(site.worker.dataflows for site in sites):
            return
    raise AssertionError(f"not done: {[site.worker.explain(patience=0) for site in sites]}")
