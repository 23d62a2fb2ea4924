"""Measures how fast a program follows a stream: the latency of each epoch, with a line of progress now and then."""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

import numpy as np

PAUSE = 2.0
"""Seconds between lines of progress."""


class Pace:
    """The latencies of epochs: each is the time from sending the data of the epoch until its answer is final."""

    def __init__(self, unit: str, describe: Callable[[], str] | None = None) -> None:
        """Count `unit`s, such as tweets. With `describe`, which returns the answers as text, print progress."""
        self.latencies: list[float] = []
        self.busy = 0.0
        """Processor seconds of the whole process in all epochs."""
        self.items = 0
        self._unit = unit
        self._describe = describe
        self._printed_at = clock.monotonic()

    @contextmanager
    def epoch(self, items: int) -> Iterator[None]:
        """Measure the block as one epoch with that many items."""
        busy, begun = clock.process_time(), clock.perf_counter()
        yield
        self.busy += clock.process_time() - busy
        self.latencies.append(clock.perf_counter() - begun)
        self.items += items
        if self._describe is not None and clock.monotonic() >= self._printed_at + PAUSE:
            print(f"{self.items:,} {self._unit} | {self.rate:,.0f} a second | {self._describe()}", flush=True)
            self._printed_at = clock.monotonic()

    @property
    def seconds(self) -> float:
        """The seconds of all epochs."""
        return sum(self.latencies)

    @property
    def rate(self) -> float:
        """Items in a second."""
        return self.items / max(self.seconds, 1e-9)

    def percentiles(self) -> tuple[float, float, float]:
        """Return the median, 95th and 99th percentile of the latencies in milliseconds."""
        return percentiles(self.latencies)

    def summary(self) -> str:
        """Return the rate and the latencies as text."""
        median, p95, p99 = self.percentiles()
        return (
            f"{self.items:,} {self._unit} in {self.seconds:.2f} s, {self.rate:,.0f} a second; "
            f"an epoch: median {median:.2f} ms, p95 {p95:.2f}, p99 {p99:.2f}"
        )


def percentiles(seconds: Collection[float]) -> tuple[float, float, float]:
    """Return the median, 95th and 99th percentile of times in seconds, in milliseconds; zeros if there are none."""
    median, p95, p99 = np.percentile(1e3 * np.array([*seconds] or [0.0]), (50, 95, 99))
    return float(median), float(p95), float(p99)
