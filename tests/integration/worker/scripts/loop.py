"""Workers go round a loop: each number is halved and moved until it is 0; with 'forever' none reaches 0."""

import os
import sys

from timely import execute

forever = "forever" in sys.argv


def program(worker):
    found = []
    with worker.dataflow("loop") as scope, scope.iterative() as inner:
        handle, again = inner.feedback()
        start = scope.to_stream(range(worker.index, 1000, worker.peers))
        numbers = start.enter(inner).concat(again).exchange(lambda number: number)
        smaller = numbers if forever else numbers.map(lambda number: number // 2)
        smaller.filter(lambda number: number >= 0 if forever else number > 0).connect_loop(handle)
        smaller.filter(lambda number: number == 0).leave().inspect_batch(lambda _, batch: found.append(len(batch)))
        again.probe()
    sys.stdout.write(f"pid {os.getpid()}\n")
    while worker.step_or_park():
        pass
    return sum(found)


if __name__ == "__main__":
    for number in execute(program):
        sys.stdout.write(f"halved {number}\n")
