"""Dataflows that do not finish, for the reason that the first argument names."""

import hashlib
import os
import sys
import time as clock

import numpy as np

from timely import Pipeline, execute, new_input

why = sys.argv[1]


def leaking(capability):
    capability.drop()
    kept = []

    def logic(input, output):
        for right, _ in input:
            kept.append(right.retain())

    return logic


def forgetting(capability):
    capability.drop()

    def logic(input, output):
        pass

    return logic


def slow(record):
    if why == "sleeping":
        clock.sleep(60)
    else:
        hashlib.pbkdf2_hmac("sha256", b"", b"", 1 << 27)  # one long call into C, which lets other threads run
    return record


def program(worker):
    with worker.dataflow("stuck") as scope:
        numbers, stream = new_input(scope, name="numbers")
        if why == "leak":
            stream = stream.unary_frontier(Pipeline(), leaking, name="leaking")
        elif why == "undrained":
            stream = stream.exchange(lambda number: number).unary_frontier(Pipeline(), forgetting, name="forgetting")
        elif why in ("sleeping", "hashing"):
            stream = stream.exchange(lambda number: number).inspect(slow)
            stream = stream.exchange(lambda number: number)
        elif why == "endless":
            with scope.iterative("loop") as inner:
                handle, again = inner.feedback()
                around = stream.enter(inner).concat(again).exchange(lambda number: number)
                around.connect_loop(handle)
                stream = around.leave()
        probe = stream.exchange(lambda number: number).probe()
    if worker.index == worker.peers - 1:
        numbers.send(np.arange(1) + worker.index)
    sys.stdout.write(f"pid {os.getpid()}\n")
    if why != "forgotten":
        numbers.advance_to(1)
    else:
        numbers.flush()
    if why == "dropped" and worker.index < worker.peers - 1:
        worker.drop_dataflow(0)
        return
    if why in ("forgotten", "undrained", "leak"):
        worker.step_while(lambda: probe.less_than(1)) if worker.peers > 1 else step_for_ever(worker)
    numbers.close()
    while worker.step_or_park():
        pass


def step_for_ever(worker):
    while worker.step_or_park():
        pass


if __name__ == "__main__":
    execute(program)
