from __future__ import annotations

import pytest

from timely.progress.accumulation import Route
from timely.progress.graph import Edge
from timely.progress.protocol import Protocol, ProtocolStatistics
from timely.progress.reachability import Tracker
from timely.progress.summary import PathSummary

OUTPUT, INPUT = 0, 1


def two_workers(mode: str) -> list[Protocol]:
    """The protocols of two workers, each with a capability at an output that leads to an input."""
    protocols = []
    for _ in range(2):
        tracker = Tracker([1, 1], [Edge(OUTPUT, INPUT, PathSummary.identity(1))])
        tracker.update(OUTPUT, (0,), 2)
        tracker.propagate()
        protocols.append(Protocol(tracker, mode, Route.direct(len(protocols), peers=2)))
    return protocols


def frontier(protocol: Protocol, location: int) -> list[tuple[int, ...]]:
    protocol._tracker.propagate()
    return list(protocol._tracker.frontier(location))


def test_eager_mode_sends_every_net_change() -> None:
    protocol, _ = two_workers("eager")
    protocol.update(INPUT, (0,), 1)
    assert protocol.flush() == ((INPUT, (0,), 1),)
    assert protocol.flush() is None


@pytest.mark.parametrize("mode", ["eager", "demand"])
def test_changes_that_cancel_send_nothing(mode: str) -> None:
    protocol, _ = two_workers(mode)
    protocol.update(INPUT, (0,), 1)
    protocol.update(INPUT, (0,), -1)
    assert protocol.flush() is None
    assert not protocol.holding
    assert not protocol.dirty


def test_demand_mode_holds_back_changes_that_move_no_frontier() -> None:
    protocol, _ = two_workers("demand")
    protocol.update(INPUT, (0,), 1)
    protocol.update(INPUT, (3,), -1)
    assert protocol.dirty
    assert protocol.flush() is None
    assert protocol.flush() is None, "nothing has changed that could make it due"
    assert protocol.holding
    assert not protocol.dirty
    assert protocol.statistics() == ProtocolStatistics(0, 0, 0, 0, flushes_held=1, updates_held=2)


def test_a_dropped_capability_is_sent_with_everything_made_under_it() -> None:
    protocol, _ = two_workers("demand")
    protocol.update(INPUT, (0,), 1)
    assert protocol.flush() is None
    protocol.update(OUTPUT, (0,), -1)
    assert sorted(protocol.flush() or ()) == [(OUTPUT, (0,), -1), (INPUT, (0,), 1)]
    assert protocol.statistics().batches_sent == 1
    assert not protocol.holding


def test_batches_sent_and_received_are_counted() -> None:
    first, second = two_workers("eager")
    for _ in range(2):
        first.update(INPUT, (0,), 1)
        first.update(INPUT, (1,), 1)
        first.update(OUTPUT, (0,), 3)
        batch = first.flush()
        assert batch is not None
        second.receive(0, batch)
    first.count_bytes(50)
    first.count_bytes(30)
    assert first.statistics() == ProtocolStatistics(2, 6, 0, 0, 0, 0, bytes_sent=80)
    second.update(INPUT, (0,), -1)
    assert second.statistics() == ProtocolStatistics(0, 0, 2, 6, 0, updates_held=1)


def test_a_workers_own_tracker_receives_changes_when_its_peers_do() -> None:
    protocol, peer = two_workers("demand")
    peer.update(OUTPUT, (0,), -1)
    dropped = peer.flush()
    assert dropped is not None
    protocol.receive(1, dropped)
    protocol.update(OUTPUT, (0,), -1)
    assert frontier(protocol, OUTPUT) == [(0,)]
    assert protocol.flush() is not None
    assert frontier(protocol, OUTPUT) == []


def test_held_changes_are_released_when_the_frontier_comes_to_rest_on_them() -> None:
    first, second = two_workers("demand")
    second.update(INPUT, (0,), -1)
    assert second.flush() is None
    first.update(INPUT, (0,), 1)
    first.update(OUTPUT, (0,), -1)
    batch = first.flush()
    assert batch is not None
    second.receive(0, batch)
    assert frontier(second, INPUT) == [(0,)]
    assert not second._tracker.is_sole_holder(INPUT, (0,))
    assert second.dirty
    assert second.flush() is None
    second.update(OUTPUT, (0,), -1)
    assert second.flush() == ((INPUT, (0,), -1), (OUTPUT, (0,), -1))
    assert frontier(second, INPUT) == []


def test_a_consumption_may_arrive_before_the_production() -> None:
    first, second = two_workers("eager")
    second.update(INPUT, (0,), -1)
    consumed = second.flush()
    assert consumed is not None
    first.receive(1, consumed)
    assert frontier(first, INPUT) == [(0,)]


def test_a_single_worker_updates_its_tracker_at_once() -> None:
    tracker = Tracker([1, 1], [Edge(OUTPUT, INPUT, PathSummary.identity(1))])
    protocol = Protocol(tracker)
    protocol.update(OUTPUT, (0,), 1)
    assert protocol.dirty
    assert protocol.flush() is None
    assert tracker.propagate() == [OUTPUT, INPUT]
    assert not protocol.dirty
    assert not protocol.holding


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="one of demand, eager, not 'lazy'"):
        Protocol(Tracker([1], []), "lazy")
