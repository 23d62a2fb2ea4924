"""Totals over the workers of a simulated network: the same bits in whatever order messages arrive."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from benchmarks.simulated import SimulatedNetwork
from timely import Config, Stream, Worker, new_input

TIMES = 3


def totals(method: Any, peers: int, seed: int) -> list[list[tuple[Any, bytes]]]:
    """Return the totals that each worker received, on a network and from workers as slow as they like."""
    network, rng = SimulatedNetwork(peers, seed), Random(seed)
    workers = [Worker(allocator, Config()) for allocator in network.allocators]
    received: list[list[tuple[Any, bytes]]] = [[] for _ in workers]
    for worker, found in zip(workers, received):
        numbers = np.random.default_rng(worker.index)
        with worker.dataflow() as scope:
            handle, stream = new_input(scope)
            method(stream).inspect_time(lambda time, total, found=found: found.append((time, total.tobytes())))
        for time in range(TIMES):
            handle.send_batch([1e6 * numbers.normal(size=7) for _ in range(worker.index + 1)])
            handle.advance_to(time + 1)
        handle.close()
    for _ in range(20_000):
        if rng.random() < 0.5:
            network.deliver_one()
        else:
            rng.choice(workers).step()
        if not network.pending and not any(worker.dataflows for worker in workers):
            return received
    raise AssertionError(workers[0].explain(patience=0))


@pytest.mark.parametrize("peers", [2, 3, 5])
def test_totals_do_not_depend_on_the_order_of_arrival_the_worker_or_the_method(peers: int) -> None:
    found = {
        tuple(sorted(received))
        for method in (Stream.all_reduce, Stream.all_reduce_by_tree)
        for seed in range(12)
        for received in totals(method, peers, seed)
    }
    assert len(found) == 1
    assert [time for time, _ in found.pop()] == [(time,) for time in range(TIMES)]
