"""Exchange: in each round every worker sends `batch` 64-bit integers, and all wait until all have arrived."""

from __future__ import annotations

import time as clock
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.graphs import Ints, splitmix
from benchmarks.harness import Case, Figures, Series, check
from timely import Columns, Worker, execute, new_input

ROUND, RATE = "median us a round", "M records/s"
BATCH = "batch"
WARM_UP_ROUNDS = 10
MODULUS = 1 << 62


def _case(name: str, processes: int, batch: int, rounds: int, limits: dict[str, float]) -> Case:
    return Case(f"exchange {name}", "exchange", {"batch": batch, "rounds": rounds}, processes, limits=limits)


CASES = [
    _case("1 worker, batch 1", 1, 1, 2000, {ROUND: 60}),
    _case("1 worker, batch 1000", 1, 1000, 2000, {}),
    _case("1 worker, batch 1M", 1, 1_000_000, 20, {RATE: 150}),
    _case("2 processes, batch 1", 2, 1, 2000, {ROUND: 472}),
    _case("2 processes, batch 1000", 2, 1000, 2000, {RATE: 5.2}),
    _case("2 processes, batch 1M", 2, 1_000_000, 20, {RATE: 95}),
]


def measure(batch: int, rounds: int) -> Figures:
    """Return the figures of the first worker of this process; the rate is that of all workers' records."""
    return execute(lambda worker: _program(worker, batch, rounds))[0]


def series(batches: Sequence[int], records: int, most_rounds: int) -> Series:
    """Return the figures for each size of batch, in rounds that send about `records`: from 20 to `most_rounds`."""
    measured = {batch: measure(batch, min(max(records // batch, 20), most_rounds)) for batch in batches}
    by_name = {name: [figures[name] for figures in measured.values()] for name in (ROUND, RATE)}
    return {BATCH: [*map(float, measured)]} | by_name


def _program(worker: Worker, batch: int, rounds: int) -> Figures:
    numbers = splitmix(np.arange(batch) + batch * worker.index).view(np.int64)
    received = _Received()
    with worker.dataflow("exchange") as scope:
        session, stream = new_input(scope)
        # One worker does not split the batches, and only counts the records: the figure is that of moving them.
        probe = stream.exchange().inspect_batch(received.take).probe()
        everything, sums = new_input(scope, name="sums")
        totals: list[Any] = []
        sums.broadcast().inspect(totals.append)

    def finish_round() -> None:
        session.send_batch(Columns((numbers,)))
        session.advance_to(session.epoch + 1)
        worker.step_while(lambda: probe.less_than(session.time))

    for _ in range(WARM_UP_ROUNDS):
        finish_round()
    seconds = []
    for _ in range(rounds):
        begun = clock.perf_counter()
        finish_round()
        seconds.append(clock.perf_counter() - begun)
    everything.send(received.count, received.sum)
    session.close()
    everything.close()
    while worker.step_or_park():
        pass
    _check(totals, batch, rounds + WARM_UP_ROUNDS, worker.peers)
    median = float(np.median(seconds))
    return {ROUND: 1e6 * median, RATE: 1e-6 * batch * worker.peers / median}


class _Received:
    """The number of records that arrived at this worker, and their sum modulo `MODULUS`."""

    def __init__(self) -> None:
        self.count = 0
        self.sum = 0

    def take(self, _: object, batch: Any) -> None:
        column: Ints = batch.columns[0]
        self.count += len(column)
        self.sum = (self.sum + int(column.sum())) % MODULUS


def _check(totals: list[tuple[int, int]], batch: int, rounds: int, peers: int) -> None:
    """Compare the records that all workers received with those that all sent."""
    sent = rounds * int(splitmix(np.arange(batch * peers)).view(np.int64).sum())
    check(len(totals) == peers, f"{len(totals)} workers reported what they received")
    check(sum(count for count, _ in totals) == batch * rounds * peers, f"{totals}, sent {batch * rounds * peers}")
    check((sum(total for _, total in totals) - sent) % MODULUS == 0, "the sums of the records sent and received differ")
