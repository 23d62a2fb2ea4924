"""A join that emits much for little input waits until its output is consumed; so does a delta query."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest

from benchmarks.simulated import SimulatedNetwork
from differential import Collection, new_input
from differential.delta.half_join import half_join
from timely import Config, Worker
from timely.dataflow.schedule import Schedule

HUB = 1200
QUEUE_BYTES = 1 << 20
PIECE = 8 << 20
"""The output of a join in one activation: a quarter of a million pairs of 16 bytes, and as much again."""


def by_join(left: Collection, right: Collection) -> Collection:
    return left.join_map(right, lambda key, one, other: (one * HUB + other, one))


def by_lookup(left: Collection, right: Collection) -> Collection:
    arranged = right.arrange_by_key()
    return half_join(left, arranged, lambda key, one, other: (one * HUB + other, one))


def flood(pair: Callable[[Collection, Collection], Collection]) -> tuple[int, int]:
    """Pair all with all through one key, for a worker that seldom runs; return the most owed, and the pairs counted."""
    network = SimulatedNetwork(2, seed=1, queue_bytes=QUEUE_BYTES)
    workers = [Worker(allocator, Config(queue_bytes=QUEUE_BYTES)) for allocator in network.allocators]
    counted: list[int] = []
    for worker in workers:
        with worker.dataflow() as scope:
            (left_session, left), (right_session, right) = new_input(scope), new_input(scope)
            pairs = pair(left, right).arrange_by_key()
            pairs.count().stream.inspect_batch(lambda _, batch: counted.append(len(batch)))
        if worker.index == 0:
            left_session.insert(np.zeros(HUB, np.int64), np.arange(HUB))
            right_session.insert(np.zeros(HUB, np.int64), np.arange(HUB))
        left_session.close()
        right_session.close()
    rng, most = Random(1), 0
    for _ in range(20_000):
        if network.pending and rng.random() < 0.3:
            network.deliver_one()
        else:
            rng.choices(workers, (20, 20) if rng.random() < 0.05 else (20, 1))[0].step()
        most = max(most, *(max(worker.outstanding._owed) for worker in workers))
        if not any(worker.dataflows for worker in workers):
            return most, sum(counted)
    raise AssertionError("\n".join(worker.explain(patience=0) for worker in workers))


@pytest.mark.parametrize("pair", [by_join, by_lookup])
def test_the_output_of_a_join_is_bounded(pair: Callable[[Collection, Collection], Collection]) -> None:
    most, pairs = flood(pair)
    assert pairs == HUB * HUB
    assert most < QUEUE_BYTES + PIECE


@pytest.mark.interpreted
def test_a_join_that_does_not_wait_breaks_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Schedule, "holds_back", lambda *_: False)
    most, _ = flood(by_join)
    assert most > QUEUE_BYTES + PIECE
