"""The first worker sends 200 MB to the last, which takes a hundred times as long; each prints by how much it grew."""

import re
import sys
import time as clock
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from timely import Columns, Worker, execute

BATCHES, ROWS, SECONDS = 200, 1 << 17, 0.005
MODE = sys.argv[1]


def batch() -> Columns:
    return Columns((np.ones(ROWS, np.int64),))


def peak() -> int:
    """Return the most megabytes that were resident. What `getrusage` says counts the process that started this one."""
    kilobytes = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert kilobytes is not None
    return int(kilobytes[1]) >> 10


def program(worker: Worker) -> None:
    received = 0

    def consume(time: Any, taken: Any) -> None:
        nonlocal received
        received += len(taken)
        clock.sleep(SECONDS)

    def batches() -> Iterator[Columns]:
        for _ in range(BATCHES if worker.index == 0 else 0):
            yield batch()

    last = worker.peers - 1
    before = peak()
    with worker.dataflow() as scope:
        if MODE == "source":
            stream = scope.to_stream(batches())
        else:
            session, stream = scope.new_input()
        stream.exchange(lambda column: np.full(len(column), last)).inspect_batch(consume)
    if MODE == "input":
        for made in batches():
            worker.step_while(lambda: session.is_congested)
            session.send_batch(made)
        session.close()
    while worker.step_or_park():
        pass
    assert received == (BATCHES * ROWS if worker.index == last else 0), received
    print(f"grew {peak() - before} MB", flush=True)


execute(program)
