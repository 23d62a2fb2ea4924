"""Workers that exchange messages and progress over a random dataflow, in one thread and in an arbitrary order.

A token is a capability or a message: alive at a location and a time, on one worker or in transit to one. A
worker's step consumes messages, makes, moves, clones and drops capabilities, and sends messages along the edges
of the graph at random. The worker's `Protocol` receives the changes of each step. Progress batches and messages
travel in separate queues, one for each pair of workers, so either may overtake the other. A worker may also
wait: it keeps a capability until its own frontiers show that nothing else can reach the capability's pointstamp.

The truth is the set of all tokens. No worker's frontier may be ahead of it:

    for each token (l, t) and each worker: the worker's frontier at l has an element at or before t

which is checked for each token as it is made, and for all tokens at the locations where a frontier changes.
(A tracker's frontiers are closed under the edges, which `check(tracker)` checks; so the token's location is
enough.)
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Iterator, Sequence

import msgpack

from tests.invariants import check
from tests.oracle.progress import Graph, step
from tests.simulation.trace import Trace
from timely.order import Changes, Time
from timely.progress.accumulation import Route
from timely.progress.protocol import Protocol, ProtocolStatistics
from timely.progress.reachability import Tracker

Pointstamp = tuple[int, Time]


class Site:
    """One worker: its view, the capabilities it holds, those with which it waits, and the messages it has received."""

    def __init__(self, graph: Graph, mode: str, route: Route) -> None:
        self.tracker = Tracker(graph.lengths, graph.edges)
        self.protocol = Protocol(self.tracker, mode, route)
        self.capabilities: list[Pointstamp] = []
        self.waiting: list[Pointstamp] = []
        self.inbox: deque[Pointstamp] = deque()

    def has_work(self) -> bool:
        return bool(self.capabilities or self.inbox)


class Cluster:
    """Some workers, the queues between them, and the truth about what is alive.

    `routes` are the places at which workers accumulate each other's changes.
    """

    def __init__(
        self, graph: Graph, peers: int, mode: str, initial: list[Pointstamp], routes: Sequence[Route] | None = None
    ) -> None:
        self.graph = graph
        self.outgoing = [[edge for edge in graph.edges if edge.source == place] for place in range(len(graph.lengths))]
        self.incoming = [[edge for edge in graph.edges if edge.target == place] for place in range(len(graph.lengths))]
        places = routes or [Route.direct(worker, peers) for worker in range(peers)]
        self.sites = [Site(graph, mode, place) for place in places]
        pairs = [(source, target) for source in range(peers) for target in range(peers)]
        self.messages: dict[tuple[int, int], deque[Pointstamp]] = {pair: deque() for pair in pairs}
        self.batches: dict[tuple[int, int], deque[Changes]] = {pair: deque() for pair in pairs}
        self.alive: list[Counter[Time]] = [Counter() for _ in graph.lengths]
        self.trace = Trace()
        self.steps = 0
        self.checks = 0
        self.bytes = 0
        self.delivered_notifications = 0
        for site in self.sites:
            for location, time in initial:
                site.tracker.update(location, time, peers)
                site.capabilities.append((location, time))
        for location, time in initial:
            self.alive[location][time] += peers
        for worker in range(peers):
            self.propagate(worker)

    # The actions of a worker on tokens. Its protocol and the truth receive every change.

    def change(self, worker: int, stamp: Pointstamp, diff: int) -> None:
        location, time = stamp
        self.trace.add(worker, stamp, diff)
        self.sites[worker].protocol.update(location, time, diff)
        alive = self.alive[location]
        alive[time] += diff
        assert alive[time] >= 0, "the model lost count"
        if not alive[time]:
            del alive[time]
        elif diff > 0:
            self.checks += len(self.sites)
            for site in self.sites:
                assert site.tracker.frontier(location).less_equal(time), "a token was made that a frontier had passed"

    def hold(self, worker: int, stamp: Pointstamp) -> None:
        self.change(worker, stamp, 1)
        self.sites[worker].capabilities.append(stamp)

    def send(self, worker: int, target: int, stamp: Pointstamp) -> None:
        self.change(worker, stamp, 1)
        self.messages[worker, target].append(stamp)

    # The events at a worker.

    def deliver_message(self, pair: tuple[int, int]) -> None:
        self.steps += 1
        self.trace.add("message", pair)
        self.sites[pair[1]].inbox.append(self.messages[pair].popleft())

    def deliver_batch(self, pair: tuple[int, int]) -> None:
        self.steps += 1
        self.trace.add("batch", pair)
        sender, receiver = pair
        batch = self.batches[pair].popleft()
        for peer in self.sites[receiver].protocol.receive(sender, batch):
            self.batches[receiver, peer].append(batch)

    def flush(self, worker: int) -> bool:
        """Broadcast the changes that the protocol requires; return whether there are any."""
        self.steps += 1
        protocol = self.sites[worker].protocol
        batch = protocol.flush()
        if batch is None:
            return False
        assert batch
        assert all(diff for _, _, diff in batch)
        self.trace.add("flush", worker, batch)
        self.bytes += len(protocol.targets) * len(msgpack.packb(batch))
        for peer in protocol.targets:
            self.batches[worker, peer].append(batch)
        return True

    def propagate(self, worker: int) -> bool:
        """Bring a worker's frontiers up to date and compare them with the truth; whether any changed."""
        self.steps += 1
        tracker = self.sites[worker].tracker
        changed = tracker.propagate()
        self.trace.add("propagate", worker, changed)
        for location in changed:
            frontier = tracker.frontier(location)
            self.checks += len(self.alive[location])
            for time in self.alive[location]:
                assert frontier.less_equal(time), f"worker {worker} is ahead at {location}: {frontier}, {time} is alive"
        return bool(changed)

    def notify(self, worker: int) -> bool:
        """Give back the capabilities that waited for a time to be complete, where the worker sees that it is."""
        site = self.sites[worker]
        ready = [stamp for stamp in site.waiting if self.is_complete(site.tracker, stamp)]
        for stamp in ready:
            site.waiting.remove(stamp)
            site.capabilities.append(stamp)
        self.delivered_notifications += len(ready)
        return bool(ready)

    def is_complete(self, tracker: Tracker, stamp: Pointstamp) -> bool:
        """Return whether nothing upstream of a pointstamp's location could result in it any more."""
        location, time = stamp
        return not any(
            all(a <= b for a, b in zip(step(edge, element), time))
            for edge in self.incoming[location]
            for element in tracker.frontier(edge.source)
        )

    def in_flight(self) -> Iterator[tuple[str, tuple[int, int]]]:
        """Each queue that is not empty: the kind of its content, and the pair of workers."""
        for pair, messages in self.messages.items():
            if messages:
                yield "message", pair
        for pair, batches in self.batches.items():
            if batches:
                yield "batch", pair

    def check_drained(self) -> None:
        """Check that every worker knows that it is over, and keeps nothing back."""
        for worker, site in enumerate(self.sites):
            check(site.tracker)
            stuck = list(site.tracker.pointstamps())
            assert site.tracker.is_idle, f"worker {worker} still counts {stuck}"
            assert not site.protocol.holding, f"worker {worker} keeps something back"
            assert not any(site.tracker.frontier(place) for place in range(len(self.graph.lengths)))

    def statistics(self) -> ProtocolStatistics:
        return ProtocolStatistics(*map(sum, zip(*(site.protocol.statistics() for site in self.sites))))


class Run:
    """A seeded schedule of one cluster: random steps while there is a budget of messages, then the remaining ones."""

    def __init__(self, cluster: Cluster, rng: random.Random, budget: int) -> None:
        self.cluster = cluster
        self.rng = rng
        self.budget = budget
        # How eager workers are to flush and to propagate between other things differs from run to run.
        self.laziness = rng.choice([0.0, 0.3, 0.8])
        self.favourite = rng.choice(["message", "batch", "work", "any"])

    def finish(self) -> None:
        """Run until nothing is left to do, then check that every worker knows."""
        while self.event():
            assert self.cluster.steps < 100_000, "the run does not end"
        self.cluster.check_drained()

    def event(self) -> bool:
        """Do one of the things that could happen now; return whether there was one."""
        cluster, rng = self.cluster, self.rng
        choices: list[tuple[str, tuple[int, int]]] = list(cluster.in_flight())
        for worker, site in enumerate(cluster.sites):
            if site.has_work():
                choices.append(("work", (worker, worker)))
            if site.protocol.dirty:
                choices.append(("progress", (worker, worker)))
        if not choices:
            return False
        preferred = [choice for choice in choices if choice[0] == self.favourite]
        kind, pair = rng.choice(preferred if preferred and rng.random() < 0.7 else choices)
        if kind == "message":
            cluster.deliver_message(pair)
        elif kind == "batch":
            cluster.deliver_batch(pair)
        elif kind == "progress":
            self.progress(pair[0])
        else:
            for _ in range(rng.randint(1, 4)):
                self.work(pair[0])
            cluster.notify(pair[0])
            if rng.random() >= self.laziness:
                self.progress(pair[0])
        return True

    def progress(self, worker: int) -> None:
        """A worker's work between steps, in either order: flush and propagate."""
        if self.rng.random() < 0.5:
            self.cluster.propagate(worker)
        self.cluster.flush(worker)
        self.cluster.propagate(worker)
        self.cluster.notify(worker)
        if self.rng.random() < 0.02:
            check(self.cluster.sites[worker].tracker)

    def work(self, worker: int) -> None:
        """Consume a message, or do something with a capability."""
        cluster, rng = self.cluster, self.rng
        site = cluster.sites[worker]
        if site.inbox and (not site.capabilities or rng.random() < 0.6):
            cluster.steps += 1
            stamp = site.inbox.popleft()
            cluster.change(worker, stamp, -1)
            fate = rng.random()
            if fate < 0.3:
                cluster.hold(worker, stamp)
            elif fate < 0.5:
                cluster.change(worker, stamp, 1)
                site.waiting.append(stamp)
            else:
                self.send_from(worker, stamp)
        elif site.capabilities:
            cluster.steps += 1
            stamp = site.capabilities.pop(rng.randrange(len(site.capabilities)))
            self.use(worker, stamp)

    def use(self, worker: int, stamp: Pointstamp) -> None:
        """Send under a capability, and keep it, move it forward, wait with it, clone it, or drop it."""
        cluster, rng = self.cluster, self.rng
        self.send_from(worker, stamp)
        fate = rng.random() if self.budget > 0 else 1.0
        if fate < 0.25:
            cluster.sites[worker].capabilities.append(stamp)
        elif fate < 0.5:
            cluster.hold(worker, (stamp[0], self.later(stamp[1])))
            cluster.change(worker, stamp, -1)
            self.budget -= 1
        elif fate < 0.6:
            cluster.sites[worker].waiting.append(stamp)
        elif fate < 0.7:
            cluster.sites[worker].capabilities.append(stamp)
            cluster.hold(worker, stamp)
            self.budget -= 1
        else:
            cluster.change(worker, stamp, -1)

    def send_from(self, worker: int, stamp: Pointstamp) -> None:
        """Send messages along edges from a location, at the time of the token or later."""
        location, time = stamp
        edges = self.cluster.outgoing[location]
        for _ in range(self.rng.randint(0, 3)):
            if not edges or self.budget <= 0:
                return
            self.budget -= 1
            edge = self.rng.choice(edges)
            at = self.later(time) if self.rng.random() < 0.2 else time
            self.cluster.send(worker, self.rng.randrange(len(self.cluster.sites)), (edge.target, step(edge, at)))

    def later(self, time: Time) -> Time:
        place = self.rng.randrange(len(time))
        return (*time[:place], time[place] + self.rng.randint(0, 2), *time[place + 1 :])


def run(
    graph: Graph, peers: int, mode: str, seed: int, routes: Sequence[Route] | None = None, budget: int = 60
) -> Cluster:
    """Run a random program on `graph` to its end; every failure names the seed."""
    rng = random.Random(seed)
    locations = range(len(graph.lengths))
    starts = rng.sample(locations, rng.randint(1, min(3, len(locations))))
    initial = [(start, (0,) * graph.lengths[start]) for start in starts]
    cluster = Cluster(graph, peers, mode, initial, routes)
    try:
        Run(cluster, rng, budget).finish()
    except AssertionError as failure:
        raise AssertionError(f"seed {seed}, {peers} workers {routes or ''}, {mode}: {failure}; {graph}") from failure
    return cluster
