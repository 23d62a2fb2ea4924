"""A worker that waits for its peers, idle or in an operator that takes some seconds, or until standard input ends."""

import os
import sys
import time as clock
from select import select
from typing import Any

import numpy as np

from timely import Worker, execute, new_input

MODE, SECONDS = sys.argv[1], float(sys.argv[2])


def program(worker: Worker) -> None:
    def compute(time: Any, batch: Any) -> None:
        end = clock.monotonic() + SECONDS
        while not select([sys.stdin], [], [], 0)[0] if MODE == "held" else clock.monotonic() < end:
            np.sort(np.arange(1000))

    with worker.dataflow() as scope:
        session, stream = new_input(scope)
        probe = stream.exchange().inspect_batch(compute).probe()
    print("pid", os.getpid(), flush=True)
    if MODE != "idle":
        session.send(np.arange(100))
        session.advance_to(1)
        worker.step_while(lambda: probe.less_than((1,)))
        print("computed", flush=True)
        return
    end = clock.monotonic() + SECONDS
    while clock.monotonic() < end:
        worker.step_or_park(0.5)


execute(program)
