"""Workers of unequal speed on a simulated network, and a random dataflow that moves more than they may queue.

A program is a list of steps after the sources: spread the records; make several of each; do so one batch an activation;
split into two paths that meet again; go through a loop. After every event, the bytes owed to each worker are compared
with the bound, and the senders' counts with the bytes in queues and in transit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from typing import NamedTuple

import numpy as np

from benchmarks.simulated import SimulatedNetwork
from timely import Columns, Config, Exchange, InputPort, OutputPort, Pipeline, Scope, Stream, Worker
from timely.communication.message import Data
from timely.data.weight import weight_of
from timely.dataflow.builder import OperatorBuilder
from timely.dataflow.pact import Pact
from timely.dataflow.ports import OVERHEAD

QUEUE_BYTES = 1 << 16
ROWS = 512
TOGETHER = 64
"""This many records travel together everywhere, so that batches are not split into single records."""
PATIENCE = 20
"""The number of events between comparisons of the senders' counts with the bytes that are there."""


class Step(NamedTuple):
    """The next step of the records: `kind` is `spread`, `multiply`, `slowly`, `diamond` or `loop`."""

    kind: str
    factor: int = 1


class Program(NamedTuple):
    """A random run: how many workers, how eagerly each steps, the dataflow, and how many batches each source has."""

    speeds: tuple[int, ...]
    steps: tuple[Step, ...]
    batches: int
    seed: int

    @property
    def has_loop(self) -> bool:
        return any(step.kind == "loop" for step in self.steps)


class Run:
    """A program on its workers."""

    def __init__(self, program: Program, queue_bytes: int = QUEUE_BYTES) -> None:
        self.program = program
        peers = len(program.speeds)
        self.network = SimulatedNetwork(peers, program.seed, queue_bytes)
        config = Config(queue_bytes=queue_bytes)
        self.workers = [Worker(allocator, config) for allocator in self.network.allocators]
        self.found: Counter[int] = Counter()
        self.most_owed = 0
        for worker in self.workers:
            with worker.dataflow() as scope:
                stream = scope.to_stream(self._batches(worker.index))
                for number, step in enumerate(program.steps):
                    stream = apply(scope, stream, step, number)
                slow(stream, Exchange(lambda value: value // TOGETHER), 1).inspect_batch(self._take)

    def _batches(self, index: int) -> Iterator[Columns]:
        for number in range(self.program.batches):
            yield Columns((np.arange(ROWS, dtype=np.int64) + 1000 * number + 1_000_000 * index,))

    def _take(self, time: object, batch: Columns) -> None:
        self.found.update(batch.columns[0].tolist())

    def finish(self) -> Run:
        """Let events happen in a random order until all is over, and check the bound after each."""
        rng = Random(self.program.seed)
        allowed = self._allowed()
        for event in range(300_000):
            if self.network.pending and rng.random() < 0.7:
                self.network.deliver_one()
            else:
                rng.choices(self.workers, self.program.speeds)[0].step()
                self._check_bound(allowed)
            if event % PATIENCE == 0:
                self._check_counts()
                if not any(worker.dataflows for worker in self.workers):
                    return self
        raise AssertionError("\n".join(worker.explain(patience=0) for worker in self.workers))

    def _allowed(self) -> int:
        """Return how much one worker may owe another."""
        outstanding = self.workers[0].outstanding
        whole = OVERHEAD * len(self.workers) + 8 * ROWS
        largest = whole * max([1, *(2 if step.kind == "diamond" else step.factor for step in self.program.steps)])
        channels = len(self.workers[0].dataflows[0].channels)
        return outstanding.share + (1 + channels) * (outstanding.allowance + largest)

    def _check_bound(self, allowed: int) -> None:
        for worker in self.workers:
            owed = max(worker.outstanding._owed)
            self.most_owed = max(self.most_owed, owed)
            if not self.program.has_loop:
                assert owed <= allowed, f"worker {worker.index} owes {owed}, {allowed} are allowed"

    def _check_counts(self) -> None:
        actual = self._actual()
        for sender, worker in enumerate(self.workers):
            for receiver, owed in enumerate(worker.outstanding._owed):
                unreported = self.workers[receiver].outstanding._unreported[sender]
                assert 0 <= actual[sender, receiver] + unreported <= owed or not worker.dataflows

    def _actual(self) -> Counter[tuple[int, int]]:
        """Return the bytes in queues and in transit, by sender and receiver."""
        there: Counter[tuple[int, int]] = Counter()
        for receiver, worker in enumerate(self.workers):
            for dataflow in worker.dataflows:
                for port in dataflow.channels:
                    for sender, size, _ in port.ledger._queued if port.ledger is not None else ():
                        there[sender, receiver] += size
            arrived = [(sender, message) for sender, message in self.network.allocators[receiver].arrived]
            flying = [
                (pair[0], m) for pair, each in self.network._in_flight.items() if pair[1] == receiver for m in each
            ]
            for sender, message in arrived + flying:
                if isinstance(message, Data):
                    there[sender, receiver] += OVERHEAD + weight_of(message.batch)
        return there


def apply(scope: Scope, stream: Stream, step: Step, number: int) -> Stream:
    """Return the output of a step for a stream."""
    spread = Exchange(lambda value: value // TOGETHER + number)
    if step.kind == "spread":
        return stream.exchange(lambda value: value // TOGETHER + number)
    if step.kind == "multiply":
        return stream.unary(spread, multiplying(step.factor))
    if step.kind == "slowly":
        return slow(stream, spread if number % 2 else Pipeline(), step.factor)
    if step.kind == "diamond":
        longer = slow(stream, spread, step.factor).unary(spread, multiplying(1))
        return stream.concat(longer)
    return around(scope, stream, step.factor)


def multiplying(factor: int) -> Callable[[InputPort, OutputPort], None]:
    def logic(input: InputPort, output: OutputPort) -> None:
        for capability, batch in input:
            for _ in range(factor):
                output.give(capability, batch)

    return logic


def slow(stream: Stream, pact: Pact, factor: int) -> Stream:
    """Return each record `factor` times, from an operator that takes one batch an activation."""
    builder = OperatorBuilder(stream.scope, "slow")
    input = builder.add_input(stream, pact)
    output, result = builder.add_output()

    def logic() -> None:
        for capability, batch in input:
            for _ in range(factor):
                output.give(capability, batch)
            break
        if input.queue:
            stream.scope.dataflow.activate(builder.operator)

    builder.build(lambda _: logic)
    return result


def around(scope: Scope, stream: Stream, turns: int) -> Stream:
    """Return the stream after this many rounds of a loop, each of which exchanges it between the workers."""
    with scope.iterative() as inner:
        handle, again = inner.feedback()
        body = stream.map(lambda value: (value, value * 0)).enter(inner).concat(again)
        moved = body.exchange(lambda value, turn: value // TOGETHER + turn).map(lambda value, turn: (value, turn + 1))
        moved.filter(lambda value, turn: turn < turns).connect_loop(handle)
        return moved.filter(lambda value, turn: turn >= turns).map(lambda value, turn: value).leave()
