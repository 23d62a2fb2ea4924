"""The record of a job's run, and the lines that describe it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass
class Report:
    """What a job read and computed, and how long it took.

    A batch is the changes that were inserted together. The latency of a change is the time of its batch, from inserting
    it until the answer was final, divided by the number of its changes.
    """

    graph: str
    edges: int = 0
    """How many edges were read."""
    rejected: int = 0
    """How many lines were refused, of the graph or of the changes."""
    read_seconds: float = 0.0
    initial_seconds: float = 0.0
    differences: int = 0
    changes: int = 0
    """How many changes were made."""
    updates: int = 0
    """How many edges the changes have added or removed."""
    batches: list[tuple[int, float]] = field(default_factory=list)
    """The number of changes of each batch, and its seconds."""

    def took(self, changes: int, seconds: float) -> None:
        self.changes += changes
        self.batches.append((changes, seconds))

    @property
    def change_seconds(self) -> float:
        return sum(seconds for _, seconds in self.batches)

    def latencies(self) -> NDArray[np.float64]:
        """Return the latency of each change in milliseconds."""
        if not self.batches:
            return np.zeros(0)
        changes, seconds = np.array(self.batches).T
        return np.repeat(1000 * seconds / changes, changes.astype(np.int64))

    def as_json(self) -> dict[str, Any]:
        return {
            "graph": self.graph,
            "edges": self.edges,
            "rejected_lines": self.rejected,
            "changes": self.changes,
            "updates": self.updates,
            "seconds": {
                "read": round(self.read_seconds, 4),
                "initial": round(self.initial_seconds, 4),
                "changes": round(self.change_seconds, 4),
            },
            "latency_ms": {name: round(value, 4) for name, value in percentiles(self.latencies()).items()},
            "differences": self.differences,
        }

    def lines(self) -> Iterator[str]:
        """Yield the lines of the summary that all jobs share."""
        yield (
            f"{counted(self.edges, 'edge')} read in {self.read_seconds:.2f} s, "
            f"answer {self.initial_seconds:.2f} s later"
        )
        if self.rejected:
            yield f"{counted(self.rejected, 'line')} rejected"
        if self.batches:
            rate = f"{self.changes / self.change_seconds:,.0f}" if self.change_seconds else "many"
            yield (
                f"{counted(self.changes, 'change')} of {counted(self.updates, 'edge')} "
                f"in {self.change_seconds:.2f} s: {rate} a second"
            )
            latency = ", ".join(f"{name} {value:.2f}" for name, value in percentiles(self.latencies()).items())
            yield f"latency of a change: {latency} ms"


def percentiles(each: NDArray[np.float64]) -> dict[str, float]:
    """Return the median, high percentiles and the maximum; nothing if there is nothing.

    >>> percentiles(np.arange(101.0))
    {'median': 50.0, 'p95': 95.0, 'p99': 99.0, 'max': 100.0}
    """
    if not len(each):
        return {}
    median, p95, p99 = np.percentile(each, (50, 95, 99)).tolist()
    return {"median": median, "p95": p95, "p99": p99, "max": float(each.max())}


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun, whose plural ends in s unless one is given.

    >>> counted(1, "edge"), counted(1200, "edge"), counted(2, "community", "communities")
    ('1 edge', '1,200 edges', '2 communities')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {plural or noun + 's'}"
