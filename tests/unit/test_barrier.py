"""Tests of `Barrier`."""

from __future__ import annotations

import time as clock

from timely import Barrier, Config, Worker, execute


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
