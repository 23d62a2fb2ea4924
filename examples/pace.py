"""How fast a stream is followed: the latency of each epoch, and a line of progress now and then."""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

import numpy as np

PAUSE = 2.0
"""Seconds between lines of progress."""


class Pace:
    """Epochs as they pass; an epoch's latency is the time from when its data was handed over until it is final."""

    def __init__(self, unit: str, tell: Callable[[], str] | None = None) -> None:
        """Count `unit`s, say tweets. With `tell`, which says what the answers are, print progress."""
        self.latencies: list[float] = []
        self.busy = 0.0
        """Seconds of the processor, in the whole process, that the epochs took."""
        self.items = 0
        self._unit = unit
        self._tell = tell
        self._told_at = clock.monotonic()

    @contextmanager
    def epoch(self, items: int) -> Iterator[None]:
        """Measure what is done inside as one epoch of so many items."""
        busy, begun = clock.process_time(), clock.perf_counter()
        yield
        self.busy += clock.process_time() - busy
        self.latencies.append(clock.perf_counter() - begun)
        self.items += items
        if self._tell is not None and clock.monotonic() >= self._told_at + PAUSE:
            print(f"{self.items:,} {self._unit} | {self.rate:,.0f} a second | {self._tell()}", flush=True)
            self._told_at = clock.monotonic()

    @property
    def seconds(self) -> float:
        """How long all epochs took."""
        return sum(self.latencies)

    @property
    def rate(self) -> float:
        """How many items passed in a second."""
        return self.items / max(self.seconds, 1e-9)

    def percentiles(self) -> tuple[float, float, float]:
        """Return the median, 95th and 99th percentile of the latencies in milliseconds."""
        return percentiles(self.latencies)

    def summary(self) -> str:
        """Return rate and latencies as text."""
        median, p95, p99 = self.percentiles()
        return (
            f"{self.items:,} {self._unit} in {self.seconds:.2f} s, {self.rate:,.0f} a second; "
            f"an epoch: median {median:.2f} ms, p95 {p95:.2f}, p99 {p99:.2f}"
        )


def percentiles(seconds: Collection[float]) -> tuple[float, float, float]:
    """Return the median, 95th and 99th percentile of some seconds in milliseconds; zeros if there are none."""
    median, p95, p99 = np.percentile(1e3 * np.array([*seconds] or [0.0]), (50, 95, 99))
    return float(median), float(p95), float(p99)
