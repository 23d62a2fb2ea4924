"""Edges: batches of rows, and where they come from.

The workers of all processes divide an input between them: each reads its share, and the shares of all workers together
are the whole input, each row once. If nodes are names, worker 0 reads everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from differential.jobs.input.layout import WeightKind
from differential.jobs.input.names import Names

Ints = NDArray[np.int64]
Weights = NDArray[np.int64] | NDArray[np.float64]
Progress = Callable[[int], None]
"""Called with how much more was read, in the units of `OpenedGraph.total`."""


class EdgeBatch(NamedTuple):
    """A batch of edges: columns of equal length."""

    source: Ints
    target: Ints
    weight: Weights | None = None
    """Present if and only if the layout has a column of weights; of one type in all batches of a graph."""
    time: Ints | None = None
    """Present if and only if the layout has a column of times."""


def concatenated(parts: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Return batches of the same columns as one; a column that is absent in the first batch is None."""
    return [None if column[0] is None else np.concatenate(column) for column in zip(*parts)]


def ignore(_: int) -> None:
    """Report nothing."""


@dataclass(frozen=True)
class OpenedGraph:
    """An input that has been opened; its rows are read by `share`."""

    label: str
    """What to call it: the path, `standard input`, or the text of a generated graph."""
    total: int | None
    """How much there is to read, in bytes or rows, or None if that is unknown; all shares together report this much."""
    names: Names | None
    """The names of nodes, or None if nodes are integers.

    Worker 0 numbers them when it reads its share, and they are complete once that share yields the first batch. In
    processes without worker 0 they stay empty.
    """
    weight: WeightKind | None
    """The type of the weights, or None if edges have none."""
    read: Callable[[int, int, Progress], Iterator[EdgeBatch]]

    def share(self, index: int, peers: int, progress: Progress = ignore) -> Iterator[EdgeBatch]:
        """Yield the edges that worker `index` of `peers` reads, and report to `progress` how much was read.

        No batch is empty.

        Raises DataError if the file is damaged, or at the first fault if faults stop the run.
        """
        return self.read(index, peers, progress)
