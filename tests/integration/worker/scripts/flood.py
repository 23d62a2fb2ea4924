"""The first worker sends 200 MB that one worker takes a hundred times as long over; each prints by how much it grew.

Arguments: whether a `source` or an `input` sends, and what lies between: nothing (`direct`), a `chain` of exchanges, an
operator in it that makes a hundred records of one (`multiply`), or a `loop` that is gone round three times.
"""

import re
import sys
import time as clock
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from timely import Columns, Exchange, InputPort, OutputPort, Scope, Stream, Worker, execute, new_input

SENDER, SHAPE = sys.argv[1:]
FACTOR = 100 if SHAPE == "multiply" else 1
TURNS = 3
BATCHES, ROWS, SECONDS = 200, (1 << 17) // FACTOR, 0.005


def batch() -> Columns:
    return Columns((np.arange(ROWS),))


def peak() -> int:
    """Return the most megabytes that were resident. `getrusage` would include the process that started this one."""
    kilobytes = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert kilobytes is not None
    return int(kilobytes[1]) >> 10


def between(scope: Scope, stream: Stream) -> Stream:
    """Return what reaches the consumer."""
    if SHAPE == "direct":
        return stream
    if SHAPE == "loop":
        with scope.iterative() as inner:
            handle, again = inner.feedback()
            entered = stream.map(lambda value: (value, value * 0)).enter(inner)
            moved = entered.concat(again).exchange(lambda value, turn: value + turn)
            moved = moved.map(lambda value, turn: (value, turn + 1))
            moved.filter(lambda value, turn: turn < TURNS).connect_loop(handle)
            return moved.filter(lambda value, turn: turn >= TURNS).map(lambda value, turn: value).leave()
    return stream.unary(Exchange(), multiply).exchange(lambda value: value // 1024)


def multiply(input: InputPort, output: OutputPort) -> None:
    for capability, taken in input:
        output.give(capability, Columns(tuple(np.repeat(column, FACTOR) for column in taken.columns)))


def program(worker: Worker) -> None:
    received = 0

    def consume(time: Any, taken: Any) -> None:
        nonlocal received
        received += len(taken)
        clock.sleep(SECONDS * len(taken) / (ROWS * FACTOR))

    def batches() -> Iterator[Columns]:
        for _ in range(BATCHES if worker.index == 0 else 0):
            yield batch()

    with worker.dataflow("what is loaded once") as scope:
        scope.to_stream((np.arange(2),)).exchange().inspect_batch(lambda time, taken: None)
    while worker.step_or_park():
        pass
    before = peak()
    with worker.dataflow() as scope:
        if SENDER == "source":
            stream = scope.to_stream(batches())
        else:
            session, stream = new_input(scope)
        between(scope, stream).exchange(lambda column: np.zeros(len(column))).inspect_batch(consume)
    if SENDER == "input":
        for made in batches():
            worker.step_while(lambda: session.is_congested)
            session.send_batch(made)
        session.close()
    while worker.step_or_park():
        pass
    assert received in (0, BATCHES * ROWS * FACTOR), received
    print(f"took {'all' if received else 'nothing'}, grew {peak() - before} MB", flush=True)


execute(program)
