"""Count numbers by their remainder; process 2 fails in the way that the first argument names."""

from __future__ import annotations

import os
import signal
import sys
import time as clock

from differential import new_input
from timely import execute
from timely.worker.worker import Worker

HOW = sys.argv[1] if len(sys.argv) > 1 else ""
IS_VICTIM = os.environ.get("TIMELY_PROCESS") == "2"


def program(worker: Worker) -> list[tuple[int, int]]:
    with worker.dataflow() as scope:
        numbers, collection = new_input(scope)
        remainders = collection.map(lambda x: x % 3).count().output()
    for number in range(worker.index, 100, worker.peers):
        numbers.insert(number)
    if HOW in ("killed", "raises"):
        worker.step()
        clock.sleep(0.5)  # the others wait for this one
        if IS_VICTIM:
            print(f"ended at {clock.time()}", flush=True)
            if HOW == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            raise ValueError("a wrong number")
    numbers.close()
    worker.step_while(lambda: not remainders.done())
    return sorted(remainders.contents())


if HOW == "leaves" and IS_VICTIM:
    print(f"ended at {clock.time()}", flush=True)
    sys.exit(5)
print("answer", execute(program)[0], flush=True)
