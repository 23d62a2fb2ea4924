"""Progress traffic: messages and bytes about progress between workers in each mode, counted and not timed.

Real workers run in one thread on a simulated network with virtual time. In each turn a worker takes a step or, as a
seed decides, does not. A message to a worker of the same process arrives in the next turn, to another process after
`DELAY` turns. So workers drift apart, as they do on a network, and the counts are the same in every run. Bytes are
those of the frames that would be sent between processes, including their headers.

There are two programs: weakly connected components of a random graph, and the empty loop of notifications of
`benchmarks.barrier`, whose figures are those of one round. "unbatched" is the traffic if each change of a count were
sent to every worker in a message of its own: the number of changes, and the bytes of that many frames with one change.
"data" counts the messages with records between processes, for comparison.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

from benchmarks import barrier, wcc
from benchmarks.graphs import RandomGraph
from benchmarks.harness import Case, Figures, check
from benchmarks.incremental import Fingerprint
from benchmarks.simulated import SimulatedNetwork
from differential import new_input
from differential.graphs import weakly_connected_components
from timely import Config, Worker
from timely.communication.codec import MessageEncoder
from timely.communication.message import Data, Message, ProgressUpdate

DELAY = 4
GENERATION = "0123456789abcdef.0"
UNBATCHED = "unbatched"
DATA = "data, messages"
WAYS = {
    "eager": ("eager", "worker"),
    "eager, by process": ("eager", "process"),
    "demand": ("demand", "worker"),
    "demand, by process": ("demand", "process"),
    "demand, by cluster": ("demand", "cluster"),
}


def _case(work: str, size: str, processes: int, workers: int, quick: bool = True) -> Case:
    parameters = {"work": work, "processes": processes, "workers": workers}
    return Case(f"progress_traffic {work} {size}", "progress_traffic", parameters, quick=quick)


CASES = [
    _case("wcc", "2x1", 2, 1),
    _case("wcc", "2x4", 2, 4),
    _case("wcc", "8x1", 8, 1),
    _case("wcc", "8x4", 8, 4, quick=False),
    _case("wcc", "16x4", 16, 4, quick=False),
    _case("wcc", "32x4", 32, 4, quick=False),
    _case("notifications", "2x1", 2, 1),
    _case("notifications", "2x4", 2, 4),
    _case("notifications", "8x4", 8, 4),
    _case("notifications", "32x1", 32, 1),
    _case("notifications", "32x4", 32, 4, quick=False),
    _case("notifications", "128x4", 128, 4, quick=False),
]


class CountingNetwork(SimulatedNetwork):
    """A simulated network in which messages take turns to arrive, and which counts those about progress."""

    def __init__(self, processes: int, workers: int) -> None:
        super().__init__(processes * workers, 0)
        self.turn = 0
        self.messages = 0
        self.bytes = 0
        self.data = 0
        """Messages with records between processes."""
        self.inside = 0
        """Messages between the workers of a process."""
        self._workers = workers
        self._due: defaultdict[int, list[tuple[int, int, Message]]] = defaultdict(list)
        self._encoder = MessageEncoder(0, GENERATION)
        self._last: tuple[Message | None, int] = (None, 0)

    def send(self, sender: int, receiver: int, message: Message) -> None:
        self.pending += 1
        here = sender // self._workers == receiver // self._workers
        self._due[self.turn + (1 if here else DELAY)].append((sender, receiver, message))
        if type(message) is Data:
            self.data += not here
        if type(message) is not ProgressUpdate:
            return
        if here:
            self.inside += 1
        else:
            self.messages += 1
            self.bytes += self._size(message)

    def _size(self, message: ProgressUpdate) -> int:
        """Return the bytes of a message's frame, whose header has the same length for every receiver."""
        if self._last[0] is not message:
            [frame] = self._encoder.encode(message, 0, 1)
            self._last = message, len(frame)
        return self._last[1]

    def advance(self) -> None:
        """Advance to the next turn, in which the messages that are due arrive."""
        self.turn += 1
        for sender, receiver, message in self._due.pop(self.turn, ()):
            self.pending -= 1
            self.allocators[receiver].arrived.append((sender, message))


class Cluster:
    """Simulated workers, and the traffic about progress between them."""

    def __init__(self, processes: int, workers: int, mode: str, accumulation: str) -> None:
        self.network = CountingNetwork(processes, workers)
        config = Config(workers=workers, progress=mode, accumulation=accumulation)
        self.workers = [Worker(allocator, config) for allocator in self.network.allocators]
        self.noted = 0
        """The number of changes of counts."""
        self._rng = Random(0)

    def count_changes(self, worker: Worker) -> None:
        """Count the changes that a worker makes from now on."""
        for dataflow in worker.dataflows:
            note = dataflow.update

            def counted(location: int, time: Any, diff: int, note: Callable[..., None] = note) -> None:
                self.noted += 1
                note(location, time, diff)

            dataflow.update = counted
            for operator in dataflow.operators:
                if operator.progress is not None:
                    continue  # its region counts by itself, and changes the counts of the dataflow
                for port in operator.inputs:
                    port.update = counted
                for output in operator.outputs:
                    output.update = counted

    def run(self) -> None:
        """Take turns until all dataflows are complete."""
        while any(worker.dataflows for worker in self.workers):
            self.network.advance()
            for worker in self.workers:
                if self._rng.random() < 0.5:
                    worker.step()


def measure(work: str, processes: int, workers: int) -> Figures:
    """Return the messages and bytes between processes in each mode, and the messages within processes if any."""
    figures: Figures = {}
    for way, (mode, accumulation) in WAYS.items():
        if accumulation == "process" and workers == 1:
            continue  # every worker is the first of its process
        cluster = Cluster(processes, workers, mode, accumulation)
        rounds = _components(cluster) if work == "wcc" else _notifications(cluster)
        network = cluster.network
        if not figures:
            figures[DATA] = network.data / rounds
            sent = cluster.noted * (processes - 1) * workers / rounds
            figures[f"{UNBATCHED}, messages"] = sent
            [frame] = MessageEncoder(0, GENERATION).encode(ProgressUpdate(0, ((9, (0, 1), 1),)), 0, 1)
            figures[f"{UNBATCHED}, kB"] = sent * len(frame) / 1000
        figures[f"{way}, messages"] = network.messages / rounds
        figures[f"{way}, kB"] = network.bytes / 1000 / rounds
        if workers > 1:
            figures[f"{way}, inside"] = network.inside / rounds
    return figures


def _components(cluster: Cluster) -> int:
    """Compute the components of a graph of 2,000 nodes and 4,000 edges; return 1, the number of rounds."""
    graph = RandomGraph(2000, 4000)
    source, target = graph.initial
    found = Fingerprint()
    sessions = []

    def take(_: object, updates: Any) -> None:
        found.add(updates.columns, updates.each_diff())

    for worker in cluster.workers:
        with worker.dataflow() as scope:
            edges, stream = new_input(scope, name="edges")
            weakly_connected_components(stream).stream.inspect_batch(take)
        sessions.append(edges)
        cluster.count_changes(worker)
    peers = len(sessions)
    for index, edges in enumerate(sessions):
        edges.insert(source[index::peers], target[index::peers])
        edges.close()
    cluster.run()
    right = Fingerprint()
    components = wcc.from_scratch(source, target, graph.nodes)
    right.add(components, np.ones(len(components[0]), np.int64))
    check(str(found) == str(right), f"{found}, expected {right}")
    return 1


def _notifications(cluster: Cluster) -> int:
    """Run a loop of notifications; return the number of them on each worker."""
    rounds = 5 if len(cluster.workers) < 64 else 2
    marks = [barrier.build(worker, rounds) for worker in cluster.workers]
    for worker in cluster.workers:
        cluster.count_changes(worker)
    cluster.run()
    check(all(len(each) == rounds for each in marks), "not every worker received every notification")
    return rounds
