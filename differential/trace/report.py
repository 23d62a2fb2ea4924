"""What a spine reports: what becomes of its batches, as it happens, and how much there is of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from differential.trace.batch import Batch
from differential.trace.merge import Merge


class Observer(Protocol):
    """Receives what becomes of a spine's batches."""

    def inserted(self, batch: Batch) -> None:
        """A batch was added."""

    def merged(self, sources: Sequence[Batch], result: Batch) -> None:
        """Batches were replaced by the one made of them."""

    def dropped(self, batches: Sequence[Batch]) -> None:
        """Nobody reads the trace any more; these were the batches in it."""


class SpineStatistics(NamedTuple):
    """What a spine holds and what it has done."""

    layers: int
    merging: int
    rows: int
    inserted: int
    moved: int


def size_of(layers: Sequence[Batch | Merge]) -> tuple[int, int]:
    """Return how many rows and bytes there are in layers; those of a merge under way are those of its sources."""
    rows = size = 0
    for layer in layers:
        for batch in (layer.first, layer.second) if isinstance(layer, Merge) else (layer,):
            rows += len(batch)
            size += batch.nbytes
    return rows, size
