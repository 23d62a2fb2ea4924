"""What operators may ask of a trace, and promise it.

A reader holds a trace back by two frontiers, which only advance:

- logical compaction at `f`: the reader asks for contents only as of times in advance of `f`;
- physical compaction at `f`: the reader cuts the trace (`batches_through`) only at frontiers not before `f`.

The trace merges and compacts up to the meet of all its readers' frontiers (`differential.trace.claims`). So a reader
that is kept without moving its frontiers keeps history alive: `drop` it when done.

There are four. `TraceHandle` reads the trace as it is, and `Uncut` all of it, without a cut. `AsOf` reads it for a
dataflow that imports it: as of a frontier, and as far as its batches have arrived. `Entered` wraps any of these for an
inner scope.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from differential.kernels.compile import Batches
from differential.trace.batch import Batch, table_of
from timely.lowlevel import Antichain


class TraceReader(ABC):
    """A reader of a trace whose times have `depth` coordinates."""

    is_advanced = False
    """Whether batches may show updates later than at the times of their intervals."""

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self._table: tuple[tuple[Batch, ...], Batches] | None = None

    @property
    @abstractmethod
    def upper(self) -> Antichain:
        """The frontier up to which the trace holds all updates."""

    @property
    @abstractmethod
    def logical(self) -> Antichain:
        """The reader's logical frontier."""

    @property
    @abstractmethod
    def physical(self) -> Antichain:
        """The reader's physical frontier."""

    @abstractmethod
    def set_logical_compaction(self, frontier: Antichain) -> None:
        """Promise to ask for contents only as of times in advance of `frontier`."""

    @abstractmethod
    def set_physical_compaction(self, frontier: Antichain) -> None:
        """Promise to cut the trace only at frontiers not before `frontier`."""

    def allow_compaction(self, frontier: Antichain) -> None:
        """Promise both, for the same frontier."""
        self.set_logical_compaction(frontier)
        self.set_physical_compaction(frontier)

    @abstractmethod
    def batches(self) -> tuple[Batch, ...]:
        """Return all batches, oldest first; the same tuple until something changes."""

    @abstractmethod
    def batches_through(self, frontier: Antichain) -> tuple[Batch, ...]:
        """Return the batches that hold the updates at times not in advance of `frontier`, and no others.

        `frontier` is the upper of some batch, not before the reader's physical frontier.
        """

    def table(self, batches: tuple[Batch, ...]) -> Batches:
        """Return `batches` as kernels take a table of them; kept until the call for another tuple."""
        if self._table is not None:
            known, table = self._table
            if known is batches:
                return table
            # Batches are equal only if they are the same object. Mostly one was inserted since.
            if len(batches) == len(known) + 1 and batches[:-1] == known:
                table = table + (batches[-1].columns.head,)  # noqa: RUF005 (unpacking would make a list first)
                self._table = batches, table
                return table
        table = table_of(batches)
        self._table = batches, table
        return table

    @abstractmethod
    def clone(self) -> TraceReader:
        """Return another reader, with the same frontiers."""

    @abstractmethod
    def drop(self) -> None:
        """Stop reading, and hold nothing back any longer."""
