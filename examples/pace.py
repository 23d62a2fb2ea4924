"""Measures how fast a program follows a stream: the latency of each epoch."""

from __future__ import annotations

import time as clock
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Pace:
    """The latencies of epochs: each is the time from sending the data of the epoch until its answer is final."""

    def __init__(self) -> None:
        self.latencies: list[float] = []
        self.busy = 0.0
        """Processor seconds of the whole process in all epochs."""
        self.items = 0

    @contextmanager
    def epoch(self, items: int) -> Iterator[None]:
        """Measure the block as one epoch with that many items."""
        busy, begun = clock.process_time(), clock.perf_counter()
        yield
        self.busy += clock.process_time() - busy
        self.latencies.append(clock.perf_counter() - begun)
        self.items += items

    @property
    def seconds(self) -> float:
        """The seconds of all epochs."""
        return sum(self.latencies)

    @property
    def rate(self) -> float:
        """Items in a second."""
        return self.items / max(self.seconds, 1e-9)

    def milliseconds(self) -> NDArray[np.float64]:
        """Return the latencies in milliseconds."""
        return 1e3 * np.array(self.latencies)

    def percentiles(self) -> tuple[float, float, float]:
        """Return the median, 95th and 99th percentile of the latencies in milliseconds."""
        return percentiles(self.latencies)

    def summary(self, unit: str) -> str:
        """Return the rate and the latencies as text; `unit` is what the items are, such as tweets."""
        median, p95, p99 = self.percentiles()
        return (
            f"{self.items:,} {unit} in {self.seconds:.2f} s, {self.rate:,.0f} a second; "
            f"an epoch: median {median:.2f} ms, p95 {p95:.2f}, p99 {p99:.2f}"
        )

    def figures(self) -> dict[str, Any]:
        """Return the number of epochs, their seconds and their latencies, in their JSON form."""
        median, p95, p99 = self.percentiles()
        latency = {"median": median, "p95": p95, "p99": p99, "max": 1e3 * max(self.latencies, default=0.0)}
        return {
            "epochs": len(self.latencies),
            "seconds": round(self.seconds, 4),
            "latency_ms": {name: round(value, 4) for name, value in latency.items()},
        }


def percentiles(seconds: Collection[float]) -> tuple[float, float, float]:
    """Return the median, 95th and 99th percentile of times in seconds, in milliseconds; zeros if there are none."""
    median, p95, p99 = np.percentile(1e3 * np.array([*seconds] or [0.0]), (50, 95, 99))
    return float(median), float(p95), float(p99)
