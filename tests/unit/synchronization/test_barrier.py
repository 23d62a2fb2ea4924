"""Tests of `Barrier`."""

from __future__ import annotations

import time as clock

import pytest

from tests.unit.dataflow.running import on_workers
from timely import Barrier, Config, Worker, execute
from timely.errors import CapabilityError


def test_no_worker_passes_before_all_have_come() -> None:
    came = [0, 0, 0]

    def program(worker: Worker) -> list[int]:
        barrier = Barrier(worker)
        least = []
        for turn in range(1, 6):
            if worker.index == turn % 3:
                clock.sleep(0.01)
            came[worker.index] = turn
            barrier.wait()
            least.append(min(came))
        return least

    for least in execute(program, Config(workers=3)):
        assert all(seen >= turn for turn, seen in enumerate(least, 1))


@on_workers
def test_a_barrier_ends_when_all_workers_have_closed_it(workers: int) -> None:
    def program(worker: Worker) -> None:
        for _ in range(5):
            with Barrier(worker) as barrier:
                barrier.wait()
        worker.step_while(lambda: bool(worker.dataflows))

    execute(program, Config(workers=workers))


@on_workers
def test_a_worker_that_has_closed_a_barrier_neither_waits_nor_is_waited_for(workers: int) -> None:
    def program(worker: Worker) -> None:
        barrier = Barrier(worker)
        for _ in range(worker.index):
            barrier.wait()
        barrier.close()
        barrier.close()
        with pytest.raises(CapabilityError, match="barrier was closed"):
            barrier.wait()
        worker.step_while(lambda: bool(worker.dataflows))

    execute(program, Config(workers=workers))


def test_waiting_at_a_barrier_whose_dataflow_was_dropped_is_refused() -> None:
    def program(worker: Worker) -> None:
        barrier = Barrier(worker)
        worker.drop_dataflow(0)
        with pytest.raises(CapabilityError, match="barrier was closed"):
            barrier.wait()

    execute(program)
