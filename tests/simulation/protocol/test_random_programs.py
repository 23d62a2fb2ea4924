"""Random programs under random schedules: never ahead of the truth, and over when it is over."""

from __future__ import annotations

import random

import pytest

from tests.oracle.progress import Graph
from tests.simulation.protocol.model import run
from tests.strategies_progress import nested_graph
from tests.thorough import examples
from timely.progress.graph import Edge
from timely.progress.summary import PathSummary

RUNS = examples(75)
"""`python -m tests.simulation` runs any number."""


def random_graph(seed: int) -> Graph:
    return nested_graph(random.Random(seed).randint)


@pytest.mark.parametrize("mode", ["eager", "demand"])
@pytest.mark.parametrize("peers", [2, 3, 4])
def test_frontiers_are_never_ahead_and_every_run_drains(mode: str, peers: int) -> None:
    steps = notifications = held = 0
    for seed in range(1000 * peers, 1000 * peers + RUNS):
        cluster = run(random_graph(seed), peers, mode, seed)
        steps += cluster.steps
        notifications += cluster.delivered_notifications
        held += cluster.statistics().flushes_held
    assert steps > 50 * RUNS
    assert notifications > RUNS
    assert (held > 0) == (mode == "demand")


def test_demand_sends_less_than_eager() -> None:
    sent = {}
    for mode in ("eager", "demand"):
        clusters = [run(NESTED, 3, mode, seed) for seed in range(40)]
        sent[mode] = (
            sum(cluster.statistics().batches_sent for cluster in clusters),
            sum(cluster.statistics().updates_sent for cluster in clusters),
            sum(cluster.bytes for cluster in clusters),
        )
    assert all(demand < 0.8 * eager for demand, eager in zip(sent["demand"], sent["eager"])), sent


def test_a_single_worker_sends_nothing_and_drains() -> None:
    for seed in range(50):
        cluster = run(random_graph(seed), 1, "demand", seed)
        assert cluster.statistics() == (0,) * 7


NESTED = Graph(
    [1, 2, 3, 3, 2, 1],
    [
        Edge(0, 1, PathSummary.enter(1)),
        Edge(1, 2, PathSummary.enter(2)),
        Edge(2, 3, PathSummary.identity(3)),
        Edge(3, 2, PathSummary.feedback(3)),
        Edge(3, 4, PathSummary.leave(3)),
        Edge(4, 1, PathSummary.feedback(2)),
        Edge(4, 5, PathSummary.leave(2)),
    ],
)
