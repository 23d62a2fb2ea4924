"""Which workers add up the progress changes of which others, before all hear of them.

Where every worker tells every other one, P workers send each other P (P - 1) messages for whatever all of them do once.
So workers may form trees. A worker that is no root passes its changes to its parent, which adds them to its own and
those of its other children. The roots tell each other, and each passes on to its children what it tells and hears.
Between two workers there is one way, on which nothing overtakes: that is all that the protocol asks for.

With N processes of W workers, for whatever all workers do once:

    accumulation   roots                           messages between processes   inside   hops
    "worker"       every worker                    W N (W N - W)                W N (W - 1)   1
    "process"      the first worker of a process   N (N - 1)                    2 N (W - 1)   3
    "cluster"      the first worker of all         2 (N - 1)                    2 N (W - 1)   4

(Workers of a single process with "process" are all roots: nothing would be saved between processes.)

The price is the hops, and that whoever adds up must be there to do it: while it is in a long operator, or has dropped
the dataflow, those below it hear nothing, and are not heard. It leaves out trees with more levels, and moving a root.

>>> Route.of(3, processes=2, workers=2, accumulation="process")
Route(parent=2, children=(), fellows=())
>>> Route.of(2, processes=2, workers=2, accumulation="process")
Route(parent=None, children=(3,), fellows=(0,))
"""

from __future__ import annotations

from typing import NamedTuple


class Route(NamedTuple):
    """A worker's place: its parent unless it is a root, its children, and the other roots if it is one."""

    parent: int | None
    children: tuple[int, ...]
    fellows: tuple[int, ...]

    @staticmethod
    def direct(worker: int, peers: int) -> Route:
        """Return the place of a worker where every worker tells every other one."""
        return Route(None, (), tuple(peer for peer in range(peers) if peer != worker))

    @staticmethod
    def of(worker: int, processes: int, workers: int, accumulation: str) -> Route:
        """Return the place of a worker among `processes` times `workers`, with one of `config.ACCUMULATIONS`."""
        peers = processes * workers
        if accumulation == "worker" or (accumulation == "process" and processes == 1):
            return Route.direct(worker, peers)
        first = worker - worker % workers
        if worker != first:
            return Route(first, (), ())
        children = tuple(range(first + 1, first + workers))
        others = tuple(other for other in range(0, peers, workers) if other != first)
        if accumulation == "process":
            return Route(None, children, others)
        return Route(0, children, ()) if first else Route(None, (*others, *children), ())

    @property
    def is_direct(self) -> bool:
        """Whether every worker tells every other one; the same on all workers."""
        return self.parent is None and not self.children

    @property
    def targets(self) -> tuple[int, ...]:
        """The workers to whom this one sends its own batches."""
        return (*self.fellows, *self.children) if self.parent is None else (self.parent,)

    @property
    def sources(self) -> frozenset[int]:
        """The workers whose batches come to this one."""
        return frozenset((*self.fellows, *self.children, *(() if self.parent is None else (self.parent,))))
