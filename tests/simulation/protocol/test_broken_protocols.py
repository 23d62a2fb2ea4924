"""The simulation notices protocols that are nearly right."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from tests.simulation.protocol.model import run
from tests.simulation.protocol.test_random_programs import NESTED, random_graph
from timely.order import Changes, Time
from timely.progress.accumulation import Route
from timely.progress.protocol import Protocol
from timely.progress.reachability import Tracker

pytestmark = pytest.mark.interpreted

RUNS = 150


def failures(peers: int = 3, routes: Sequence[Route] | None = None, runs: int = RUNS) -> list[str]:
    """Return the faults that the simulation finds, in the runs that fail."""
    found = []
    for seed in range(runs):
        graph = NESTED if seed % 3 == 0 else random_graph(seed)
        try:
            run(graph, peers, "demand", seed, routes)
        except AssertionError as failure:
            found.append(str(failure))
    return found


def test_productions_that_follow_the_drop_of_their_capability_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Protocol.flush

    def decreases_first(self: Protocol) -> Changes | None:
        batch = honest(self)
        decreases = tuple(change for change in batch or () if change[2] < 0)
        if batch is None or not decreases:
            return batch
        for location, time, diff in batch:
            if diff > 0:
                self._tracker.update(location, time, -diff)
                self.update(location, time, diff)
        return decreases

    monkeypatch.setattr(Protocol, "flush", decreases_first)
    assert any("is ahead" in failure for failure in failures())


def test_waiting_to_be_the_last_holder_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    # Two workers each withhold one of two decreases, and wait for each other.
    sole = Tracker.is_sole_holder

    def last_holder(self: Tracker, location: int, time: Time) -> bool:
        return sole(self, location, time) and self._own[location][time] == 1

    monkeypatch.setattr(Tracker, "is_sole_holder", last_holder)
    assert any("still counts" in failure for failure in failures())


def test_a_worker_that_does_not_look_again_after_a_propagation_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    dirty: Callable[[Protocol], bool] = Protocol.dirty.fget  # type: ignore[attr-defined]

    def only_news(self: Protocol) -> bool:
        return dirty(self) and bool(self._fresh or self._tracker.is_behind)

    monkeypatch.setattr(Protocol, "dirty", property(only_news))
    assert any("still counts" in failure for failure in failures())
