"""Trees of workers that add up their changes: never ahead of the truth, and over when it is over."""

from __future__ import annotations

import pytest

from tests.simulation.protocol.model import run
from tests.simulation.protocol.test_broken_protocols import failures
from tests.simulation.protocol.test_random_programs import NESTED, random_graph
from tests.thorough import examples
from timely.config import ACCUMULATIONS
from timely.order import Changes
from timely.progress.accumulation import Route
from timely.progress.protocol import Protocol

RUNS = examples(60)


def routes(processes: int, workers: int, accumulation: str) -> list[Route]:
    return [Route.of(worker, processes, workers, accumulation) for worker in range(processes * workers)]


@pytest.mark.parametrize("accumulation", ACCUMULATIONS)
@pytest.mark.parametrize(("processes", "workers"), [(1, 1), (1, 3), (3, 1), (2, 2), (4, 8)])
def test_there_is_exactly_one_way_between_two_workers(processes: int, workers: int, accumulation: str) -> None:
    places = routes(processes, workers, accumulation)
    for start in range(len(places)):
        # Up to the root, from there to the other roots and down every tree.
        reached = []
        at = start
        while (above := places[at].parent) is not None:
            assert at in places[above].children
            at = above
        waiting = [at, *places[at].other_roots]
        while waiting:
            reached.append(waiting.pop())
            waiting += places[reached[-1]].children
        assert sorted(reached) == list(range(len(places)))


@pytest.mark.parametrize("mode", ["eager", "demand"])
@pytest.mark.parametrize("accumulation", ["process", "cluster"])
@pytest.mark.parametrize(("processes", "workers"), [(1, 3), (2, 2), (3, 2)])
def test_frontiers_are_never_ahead_and_every_run_drains(
    processes: int, workers: int, accumulation: str, mode: str
) -> None:
    checks = notifications = 0
    places = routes(processes, workers, accumulation)
    for seed in range(RUNS):
        cluster = run(NESTED if seed % 3 == 0 else random_graph(seed), len(places), mode, seed, places)
        checks += cluster.checks
        notifications += cluster.delivered_notifications
    assert checks > 200 * RUNS
    assert notifications > RUNS


def test_accumulating_later_progress_before_earlier_progress_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    receive = Protocol.receive
    first: dict[tuple[Protocol, int], Changes] = {}

    def swapped(self: Protocol, sender: int, batch: Changes) -> tuple[int, ...]:
        if sender not in self._route.children:
            return receive(self, sender, batch)
        if (self, sender) not in first:
            first[self, sender] = batch
            return ()
        self._fresh.extend(batch)
        self.flush()
        return receive(self, sender, first.pop((self, sender)))

    monkeypatch.setattr(Protocol, "receive", swapped)
    assert any("is ahead" in failure for failure in failures(4, routes(2, 2, "process"), RUNS))


def test_a_view_that_counts_its_own_ends_before_the_root_reports_them_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A worker that counts its own ends in its view at once, and the other changes when they return, is ahead of itself.
    flush = Protocol.flush

    def own_ends_at_once(self: Protocol) -> Changes | None:
        batch = flush(self)
        if batch is not None and not self._is_root:
            self._tracker.update_all(change for change in batch if change[2] < 0)
        return batch

    monkeypatch.setattr(Protocol, "flush", own_ends_at_once)
    assert any("is ahead" in failure for failure in failures(4, routes(2, 2, "process"), RUNS))
