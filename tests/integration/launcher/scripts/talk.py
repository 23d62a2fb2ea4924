"""Every worker prints its pid, receives from all peers, and then does what the first argument asks for.

Worker 1 (or the one given as second argument) misbehaves; the others wait for messages until they are asked to end.
"""

import os
import sys
import time

from timely.communication.allocator import broadcast
from timely.communication.message import ProgressUpdate
from timely.errors import DataError
from timely.run.execute import execute

what = sys.argv[1]
who = int(sys.argv[2]) if len(sys.argv) > 2 else 1


def misbehave():
    if what == "raise":
        raise ValueError("no such thing")
    if what == "refuse":
        raise DataError("column 3 is not a column")
    if what == "exit":
        sys.exit(7)
    if what == "leave":
        os._exit(0)
    if what == "kill":
        os.kill(os.getpid(), 9)
    if what == "stubborn":
        while True:
            try:
                time.sleep(60)
            except BaseException:
                continue


def build(worker):
    allocator = worker.allocator
    broadcast(allocator, ProgressUpdate(99, ((worker.index, (0,), 1),)))
    received = set()
    while len(received) < worker.peers - 1:
        received |= {sender for sender, _ in allocator.receive()}
        allocator.park(0.05)
    if what == "meet":
        return sorted(received)
    sys.stdout.write(f"pid {os.getpid()}\n")  # in one piece, whatever other threads print
    sys.stdout.flush()
    if worker.index == who:
        misbehave()
    while True:
        allocator.park(None)
        allocator.receive()


if __name__ == "__main__":
    print("received", execute(build), flush=True)
