"""Compare one figure of two cases: the speed-up by a second process, or the growth with the amount of work."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.harness import PEAK, Figures
from benchmarks.incremental import INITIAL
from benchmarks.wordcount import RATE


@dataclass(frozen=True)
class Comparison:
    """A figure of the case named `case`, relative to that of the case named `base`."""

    name: str
    figure: str
    base: str
    case: str
    growth: float = 0.0
    """How many times the work of `base` the `case` does; 0 for the same work on more processes."""
    target: float | None = None
    is_rate: bool = False
    """Whether more of the figure is better."""

    def of(self, results: Mapping[str, Figures]) -> float | None:
        """Return the exponent of the growth, or the speed-up; None unless both cases ran and measured something."""
        if self.base not in results or self.case not in results:
            return None
        base, other = results[self.base][self.figure], results[self.case][self.figure]
        if min(base, other) <= 0:  # memory that was resident already has no peak above it
            return None
        if self.growth:
            return math.log(other / base, self.growth)
        return other / base if self.is_rate else base / other

    def is_met(self, found: float) -> bool:
        """Return whether the target is met, if there is one."""
        if self.target is None:
            return True
        return found <= self.target if self.growth else found >= self.target


WORDS = "wordcount 10M words"
COMPARISONS = [
    *(
        Comparison(f"speed-up of {case} by {other}", INITIAL, case, f"{case}, 2 processes{apart}", target=target)
        for case in ("bfs 100k/1M", "bfs 1M/10M", "wcc 100k/1M", "wcc 1M/10M")
        for other, apart, target in (("a 2nd process", "", 1.6), ("one that runs apart", " apart", None))
    ),
    *(
        Comparison(f"speed-up of {WORDS} by {other}", RATE, WORDS, f"{WORDS}, {case}", target=target, is_rate=True)
        for other, case, target in (
            ("a 2nd process", "2 processes", 1.7),
            ("one that runs apart", "2 processes apart", None),
        )
    ),
    *(
        Comparison(f"exponent of {figure!r}, {name} x 10", figure, f"{name} {small}", f"{name} {large}", growth=10.0)
        for name, small, large in (
            ("degrees", "100k/1M", "1M/10M"),
            ("bfs", "100k/1M", "1M/10M"),
            ("wcc", "10k/100k", "100k/1M"),
            ("wcc", "100k/1M", "1M/10M"),
        )
        for figure in (INITIAL, PEAK)
    ),
]
