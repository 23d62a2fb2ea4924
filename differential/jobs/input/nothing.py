"""A graph that is read elsewhere: standard input, in a process without worker 0."""

from __future__ import annotations

from collections.abc import Iterator

from differential.jobs.input.edges import Edges, Progress, ignore
from differential.jobs.input.layout import Layout, weight_kind


class Nothing:
    """A graph without rows."""

    names = None
    total = None

    def __init__(self, label: str, layout: Layout) -> None:
        self.label = label
        self.weight = weight_kind(layout.weight)[1]

    def share(self, index: int, peers: int, progress: Progress = ignore) -> Iterator[Edges]:
        """Yield nothing."""
        return iter(())
