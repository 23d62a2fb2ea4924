"""Whether all workers built the same dataflows: their shapes, compared.

A shape is a dataflow's name, a line for each operator, and a digest of how they are connected. A worker that has built
a dataflow announces a digest of its shape to the others. If two digests differ, both workers send the whole shape and
end with the same error, which names the first operator that differs. Workers that agree on a dataflow forget its shape.

Peers build in the same order, so each announces dataflow 0 first, then 1, and so on, and none twice.

This costs a message to each peer for each dataflow. It compares nothing but shapes: functions of the user may differ.
"""

from __future__ import annotations

import hashlib
import time as clock
from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from timely.communication.allocator import Allocator, broadcast
from timely.communication.message import Message, Shape
from timely.errors import FrameError, ShapeError

if TYPE_CHECKING:
    from timely.dataflow.dataflow import Dataflow

Arrived = Sequence[tuple[int, Message]]
"""Senders and messages that have arrived together."""

PATIENCE = 5.0
"""Seconds that a worker whose dataflow differs waits for the other's description."""


class Shapes:
    """The shapes of this worker's dataflows and of its peers', until they have been compared."""

    def __init__(self, allocator: Allocator) -> None:
        self._allocator = allocator
        self._own: dict[int, tuple[bytes, tuple[str, ...]]] = {}
        self._early: dict[tuple[int, int], Shape] = {}
        self._agreed: Counter[int] = Counter()
        self.announced = [0] * allocator.peers
        """How many dataflows each peer has announced."""

    def announce(self, dataflow: Dataflow) -> None:
        """Announce what was built here, and compare it with what peers have announced already."""
        allocator = self._allocator
        if allocator.peers == 1:
            return
        shape = dataflow.shape()
        digest = hashlib.blake2b(
            "\n".join(map(_compared, shape)).encode(errors="surrogatepass"), digest_size=16
        ).digest()
        self._own[dataflow.index] = digest, shape
        # Before the comparison, which may raise: every peer needs this digest to find the difference itself.
        broadcast(allocator, Shape(dataflow.index, digest, ()))
        for peer in range(allocator.peers):
            theirs = self._early.pop((peer, dataflow.index), None)
            if theirs is not None:
                self._compare(peer, theirs)

    def receive(self, sender: int, theirs: Shape, arrived: Arrived = ()) -> None:
        """Compare what a peer built with what was built here, or keep it until that is.

        The peer's whole shape may be in `arrived`, what has arrived together with its digest. Raises `ShapeError` if
        the shapes differ, and `FrameError` if another dataflow of the peer's is next.
        """
        if theirs.dataflow != self.announced[sender] or theirs.operators:
            raise FrameError(
                f"worker {sender} announced the shape of dataflow {theirs.dataflow}, but that of dataflow "
                f"{self.announced[sender]} is next"
            )
        self.announced[sender] += 1
        self._compare(sender, theirs, arrived)

    def _compare(self, sender: int, theirs: Shape, arrived: Arrived = ()) -> None:
        own = self._own.get(theirs.dataflow)
        if own is None:
            self._early[sender, theirs.dataflow] = theirs
            return
        digest, shape = own
        if theirs.digest == digest:
            self._agreed[theirs.dataflow] += 1
            if self._agreed[theirs.dataflow] == self._allocator.peers - 1:
                # No digest is left to compare, so nobody asks for the whole shape.
                del self._own[theirs.dataflow], self._agreed[theirs.dataflow]
            return
        self._allocator.send(sender, Shape(theirs.dataflow, digest, shape))
        others = self._whole(sender, theirs, arrived)
        raise ShapeError(difference(theirs.dataflow, self._allocator.index, shape, sender, others))

    def _whole(self, sender: int, theirs: Shape, arrived: Arrived) -> tuple[str, ...]:
        """Wait for a peer's whole shape of a dataflow that differs; return nothing if it does not arrive in time."""
        deadline = clock.monotonic() + PATIENCE
        while True:
            # All else that has arrived is dropped: this worker ends with an error.
            for peer, message in arrived:
                if peer == sender and isinstance(message, Shape) and message.dataflow == theirs.dataflow:
                    theirs = message
            if theirs.operators or clock.monotonic() >= deadline:
                return theirs.operators
            self._allocator.park(0.1)
            arrived = self._allocator.receive()


def difference(dataflow: int, worker: int, shape: tuple[str, ...], other: int, others: tuple[str, ...]) -> str:
    """Return how the shapes of a dataflow on two workers differ; the same text on both.

    >>> ours, theirs = ("dataflow 'words'", "operator 'map'", "wiring 1f"), ("dataflow 'words'", "wiring 2e")
    >>> print(difference(0, 1, theirs, 0, ours).partition(";")[0])
    worker 0 and worker 1 built different dataflows (number 0): operator 'map' on worker 0, nothing more on worker 1
    """
    (first, lines), (second, other_lines) = sorted([(worker, shape), (other, others)])
    where = f"worker {first} and worker {second} built different dataflows (number {dataflow})"
    advice = "every worker must build the same dataflows in the same order"
    if not others:
        return f"{where}; {advice}"
    # The last line of a shape is the digest of its wiring, which means nothing to people.
    for line, other_line in zip_longest(lines[:-1], other_lines[:-1]):
        if line is None or other_line is None or _compared(line) != _compared(other_line):
            return f"{where}: {_shown(line, first)}, {_shown(other_line, second)}; {advice}"
    return f"{where}: the same operators, connected in another way; {advice}"


def _compared(line: str) -> str:
    """Return the part of a line of a dataflow's shape that must be the same everywhere."""
    return line.partition("\t")[0]


def _shown(line: str | None, worker: int) -> str:
    """Return what a worker has at the first difference."""
    if line is None:
        return f"nothing more on worker {worker}"
    described, _, origin = line.partition("\t")
    return f"{described}{f' built at {origin}' if origin else ''} on worker {worker}"
