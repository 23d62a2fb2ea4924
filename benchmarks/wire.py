"""Messages between processes, compared with bare ZeroMQ sockets that send the same buffers.

One worker sends batches of one column to an operator on the other. In turn with that, in the same two processes, a
ZeroMQ socket pair sends the same columns without anything else. The share is the ratio of the two rates. Both are
measured when the receiver has its last batch, which it reports by an empty message.
"""

from __future__ import annotations

import time as clock
from typing import Any

import numpy as np
import zmq

from benchmarks.harness import Case, Figures, check
from timely import Columns, InputPort, OutputPort, Worker, execute, new_input
from timely.dataflow.pact import Gather

RATE, RAW, SHARE = "MB/s", "bare sockets MB/s", "share of bare sockets"
WARM_UP_LAPS = 1
IN_FLIGHT = 32 << 20
"""The approximate number of bytes that may be in transit between the bare sockets."""


def _case(name: str, size: int, batches: int, limit: float | None) -> Case:
    limits = {} if limit is None else {SHARE: limit}
    return Case(f"wire {name}", "wire", {"size": size, "batches": batches, "laps": 9}, 2, limits=limits)


CASES = [
    _case("4 KB", 4 << 10, 2000, None),
    _case("64 KB", 64 << 10, 1000, 0.7),
    _case("256 KB", 256 << 10, 400, 0.7),
    _case("1 MB", 1 << 20, 200, 0.7),
    _case("8 MB", 8 << 20, 40, 0.7),
]


def measure(size: int, batches: int, laps: int) -> Figures:
    """Return the figures of the first worker of this process, over `laps` laps of batches of `size` bytes each."""
    return execute(lambda worker: _program(worker, size, batches, laps))[0]


def _program(worker: Worker, size: int, batches: int, laps: int) -> Figures:
    column = np.arange(size // 8)
    received, wrong = [0], [0]

    def take(input: InputPort, output: OutputPort) -> None:
        for _, batch in input:  # if several small ones wait, they are one
            received[0] += len(batch)
            wrong[0] += int(batch.columns[0][-1]) != size // 8 - 1  # type: ignore[union-attr]

    with worker.dataflow() as scope:
        session, stream = new_input(scope)
        probe = stream.unary(Gather(1), take).probe()

    def run_ours() -> None:
        if worker.index == 0:
            for _ in range(batches):
                worker.step_while(lambda: session.is_congested)
                session.send_batch(Columns((column,)))
        session.advance_to(session.epoch + 1)
        worker.step_while(lambda: probe.less_than(session.time))

    bare = _Bare(worker, column, batches)
    seconds: list[tuple[float, float]] = []
    for _ in range(laps + WARM_UP_LAPS):
        begun = clock.perf_counter()
        run_ours()
        between = clock.perf_counter()
        bare.run()
        seconds.append((between - begun, clock.perf_counter() - between))
    bare.close()
    session.close()
    if worker.index == 1:
        sent = batches * (laps + WARM_UP_LAPS)
        check(received == [sent * (size // 8)] and wrong == [0], f"{received[0]} rows arrived of {sent} batches")
        check(bare.received == sent, f"{bare.received} arrived at the bare socket of {sent} buffers")
    ours, raw = (1e-6 * size * batches / np.array(seconds[WARM_UP_LAPS:])).T
    return {RATE: float(np.median(ours)), RAW: float(np.median(raw)), SHARE: float(np.median(ours / raw))}


class _Bare:
    """A pair of ZeroMQ sockets from the first process to the second, and one back."""

    def __init__(self, worker: Worker, column: Any, batches: int) -> None:
        self.received = 0
        self._column = column
        self._batches = batches
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._pull = self._context.socket(zmq.PULL)
        self._push = self._context.socket(zmq.PUSH)
        self._pull.rcvhwm = self._push.sndhwm = max(1, IN_FLIGHT // column.nbytes)
        addresses = [f"{address}.bare" for address in worker.config.addresses]
        self._pull.bind(addresses[worker.index])
        self._push.connect(addresses[1 - worker.index])
        self._sends = worker.index == 0

    def run(self) -> None:
        """Send or receive all buffers; return when all have been received."""
        if self._sends:
            for _ in range(self._batches):
                self._push.send(self._column, copy=False)
            self._pull.recv()
            return
        for _ in range(self._batches):
            frame = self._pull.recv(copy=False)
            self.received += np.frombuffer(frame.buffer, np.int64)[-1] == len(self._column) - 1
        self._push.send(b"")

    def close(self) -> None:
        self._context.destroy(linger=1000)
