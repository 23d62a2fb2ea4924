"""Every schedule of a tiny program: two workers, one loop, two messages.

Both workers start with a capability in front of a loop. Until two messages have been sent in all, a worker may send
one to either worker under any capability it holds; it may keep a message's time as a capability, and drop what it has.
Flushes, and the deliveries of messages and batches, happen in every order. A state that has been reached before is not
explored again; a state is reached by replaying its history. The same is done with a worker that accumulates the changes
of the other.
"""

from __future__ import annotations

import pytest

from tests.oracle.progress import Graph, step
from tests.simulation.protocol.model import Cluster
from timely.progress.accumulation import Route
from timely.progress.graph import Edge
from timely.progress.summary import PathSummary

LOOP = Graph(
    [1, 2, 2],
    [
        Edge(0, 1, PathSummary.enter(1)),
        Edge(1, 2, PathSummary.identity(2)),
        Edge(2, 1, PathSummary.feedback(2)),
    ],
)

Event = tuple[str, int, int]
History = tuple[Event, ...]


class Tiny(Cluster):
    """The two workers, in the state that a history of events leads to."""

    def __init__(self, mode: str, accumulation: str, messages: int, history: History) -> None:
        routes = [Route.of(worker, 2, 1, accumulation) for worker in range(2)]
        super().__init__(LOOP, 2, mode, [(0, (0,))], routes)
        self.unsent = messages
        for event in history:
            self.happen(*event)

    def events(self) -> list[Event]:
        """The possible next events. Of several capabilities on a worker only the first is used."""
        found: list[Event] = [(kind, source, target) for kind, (source, target) in self.in_flight()]
        for worker, site in enumerate(self.sites):
            if site.protocol.dirty:
                found.append(("flush", worker, worker))
            if site.inbox:
                found += [("consume", worker, worker), ("keep", worker, worker)]
            if site.capabilities:
                found.append(("drop", worker, worker))
                if self.unsent:
                    found += [("send", worker, 0), ("send", worker, 1)]
        return found

    def happen(self, kind: str, worker: int, peer: int) -> None:
        site = self.sites[worker]
        if kind == "message":
            self.deliver_message((worker, peer))
        elif kind == "batch":
            self.deliver_batch((worker, peer))
            self.propagate(peer)
        elif kind == "flush":
            self.flush(worker)
            self.propagate(worker)
        elif kind == "send":
            location, time = site.capabilities[0]
            edge = self.outgoing[location][0]
            self.unsent -= 1
            self.send(worker, peer, (edge.target, step(edge, time)))
        elif kind == "keep":
            site.capabilities.append(site.inbox.popleft())
        else:
            self.change(worker, site.inbox.popleft() if kind == "consume" else site.capabilities.pop(0), -1)

    def state(self) -> object:
        """All that the future depends on."""
        sites = tuple(
            (
                tuple(site.capabilities),
                tuple(site.inbox),
                frozenset(site.tracker.pointstamps()),
                frozenset((place, *item) for place, sums in site.protocol._held.items() for item in sums),
                tuple(sorted(site.protocol._fresh)),
                site.protocol.dirty,
            )
            for site in self.sites
        )
        queues = tuple(map(tuple, (*self.messages.values(), *self.batches.values())))
        return self.unsent, sites, queues


def explore(mode: str, accumulation: str, messages: int) -> tuple[int, int]:
    """Check every reachable state; how many there are, and how many of them are ends."""
    known: set[object] = set()
    ends = 0
    pending: list[tuple[History, list[Event]]] = [((), Tiny(mode, accumulation, messages, ()).events())]
    while pending:
        history, following = pending.pop()
        for event in following:
            further = (*history, event)
            tiny = Tiny(mode, accumulation, messages, further)
            state = tiny.state()
            if state in known:
                continue
            known.add(state)
            pending.append((further, tiny.events()))
            if not pending[-1][1]:
                tiny.check_drained()
                ends += 1
    return len(known), ends


@pytest.mark.parametrize("accumulation", ["worker", "cluster"])
@pytest.mark.parametrize("mode", ["eager", "demand"])
def test_one_message_is_handled_in_every_order(mode: str, accumulation: str) -> None:
    states, ends = explore(mode, accumulation, 1)
    assert states > 500
    assert ends >= 1


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("accumulation", ["worker", "cluster"])
@pytest.mark.parametrize("mode", ["eager", "demand"])
def test_two_messages_are_handled_in_every_order(mode: str, accumulation: str) -> None:
    states, ends = explore(mode, accumulation, 2)
    assert states > 10_000
    assert ends >= 1
