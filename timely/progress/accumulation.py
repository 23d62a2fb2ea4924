"""Which workers add up the progress changes of which others before everyone receives them.

If every worker sends its changes to every other worker, P workers exchange P (P - 1) messages for each thing that all
of them do once. Trees need fewer. A worker that is not a root sends its changes to its parent. The parent adds them to
its own and to those of its other children. The roots send these sums to each other, and each root forwards to its
children what it sends and what it receives.

Invariant: changes take exactly one path from one worker to another, and keep their order on it. `protocol` requires
nothing else.

Messages among N processes of W workers, for each thing that all workers do once:

    accumulation   roots                           between processes   within them   hops
    "worker"       every worker                    W N (W N - W)       W N (W - 1)   1
    "process"      the first worker of a process   N (N - 1)           2 N (W - 1)   3
    "cluster"      the first worker of all         2 (N - 1)           2 N (W - 1)   4

(With "process", the workers of a single process are all roots: there is nothing to save between processes.)

The price is latency: the hops, and that a parent must be running to add and forward. While a parent is inside a long
operator call, or after it has dropped the dataflow, its descendants neither send nor receive changes. Trees with more
levels and moving a root are left out.

>>> Route.of(3, processes=2, workers=2, accumulation="process")
Route(parent=2, children=(), other_roots=())
>>> Route.of(2, processes=2, workers=2, accumulation="process")
Route(parent=None, children=(3,), other_roots=(0,))
"""

from __future__ import annotations

from typing import NamedTuple


class Route(NamedTuple):
    """A worker's place in the trees: its parent (None for a root), its children, and for a root the other roots."""

    parent: int | None
    children: tuple[int, ...]
    other_roots: tuple[int, ...]

    @staticmethod
    def direct(worker: int, peers: int) -> Route:
        """Return the place of a worker if every worker sends to every other one: all are roots."""
        return Route(None, (), tuple(peer for peer in range(peers) if peer != worker))

    @staticmethod
    def of(worker: int, processes: int, workers: int, accumulation: str) -> Route:
        """Return the place of a worker among `processes` times `workers`, given one of `config.ACCUMULATIONS`."""
        peers = processes * workers
        if accumulation == "worker" or (accumulation == "process" and processes == 1):
            return Route.direct(worker, peers)
        first = worker - worker % workers
        if worker != first:
            return Route(first, (), ())
        # All workers compute the same trees, so `targets` of one worker and `sources` of another always agree.
        children = tuple(range(first + 1, first + workers))
        others = tuple(other for other in range(0, peers, workers) if other != first)
        if accumulation == "process":
            return Route(None, children, others)
        # Worker 0 is the only root. The first worker of another process stands between it and the workers there.
        return Route(0, children, ()) if first else Route(None, (*others, *children), ())

    @property
    def is_direct(self) -> bool:
        """Whether every worker sends its changes to every other one. All workers give the same answer."""
        return self.parent is None and not self.children

    @property
    def targets(self) -> tuple[int, ...]:
        """The workers that receive the batches of this one."""
        return (*self.other_roots, *self.children) if self.parent is None else (self.parent,)

    @property
    def sources(self) -> frozenset[int]:
        """The workers from which this one receives batches."""
        return frozenset((*self.other_roots, *self.children, *(() if self.parent is None else (self.parent,))))
