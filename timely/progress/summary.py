"""What a path does to a timestamp.

A path summary `(keep, increments, suffix)` truncates a time to its first `keep` coordinates, adds `increments` to them
and appends `suffix`:

    results_in((t_0, ..., t_n)) = (t_0 + increments_0, ..., t_{keep-1} + increments_{keep-1}, *suffix)

Entering a loop appends a counter of 0, leaving the loop truncates it, and going round adds one to the innermost
counter. Every path through a dataflow composes to the same three fields.

Summaries are monotone: `a ≤ b` implies `s(a) ≤ s(b)`. Coordinates are at most 2**62. A summary that would exceed this
results in no time at all, and no message with such a time can be sent.

>>> into_loop = PathSummary.enter(1)
>>> into_loop.results_in((7,))
(7, 0)
>>> round_twice = PathSummary.feedback(2).followed_by(PathSummary.feedback(2))
>>> into_loop.followed_by(round_twice).results_in((7,))
(7, 2)
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from timely.order import LIMIT, Time


class PathSummary(NamedTuple):
    """Keep a prefix of the time, add to its coordinates, and append others. No field is negative.

    >>> (PathSummary.identity(2).results_in((7, 3)), PathSummary.enter(2).results_in((7, 3)),
    ...     PathSummary.leave(2).results_in((7, 3)), PathSummary.feedback(2).results_in((7, 3)))
    ((7, 3), (7, 3, 0), (7,), (7, 4))
    >>> PathSummary(1, (1,), ()).results_in((2**62,)) is None
    True
    """

    keep: int
    increments: Time
    suffix: Time

    @classmethod
    def identity(cls, length: int) -> PathSummary:
        """Return the summary that leaves times of `length` coordinates unchanged."""
        return _identity(length)

    @classmethod
    def between(cls, length: int, other: int) -> PathSummary:
        """Return the summary of entering or leaving loops: times of `length` coordinates become times of `other`.

        >>> PathSummary.between(1, 3).results_in((7,)), PathSummary.between(3, 1).results_in((7, 2, 4))
        ((7, 0, 0), (7,))
        """
        keep = min(length, other)
        return cls(keep, (0,) * keep, (0,) * (other - keep))

    @classmethod
    def enter(cls, length: int) -> PathSummary:
        """Return the summary of entering a loop; times outside the loop have `length` coordinates."""
        return cls.between(length, length + 1)

    @classmethod
    def leave(cls, length: int) -> PathSummary:
        """Return the summary of leaving a loop; times inside the loop have `length` coordinates."""
        return cls.between(length, length - 1)

    @classmethod
    def feedback(cls, length: int, step: int = 1) -> PathSummary:
        """Return the summary of going round a loop: add `step` to the innermost of `length` coordinates."""
        return cls(length, (0,) * (length - 1) + (step,), ())

    @property
    def length(self) -> int:
        """The number of coordinates of the resulting times."""
        return self.keep + len(self.suffix)

    @property
    def advances(self) -> bool:
        """Whether the path adds to a coordinate that it keeps."""
        return any(self.increments)

    def results_in(self, time: Time) -> Time | None:
        """Return the least time at the end of the path for a message at `time` at its start; None if past the limit."""
        if not any(self.increments):
            return time[: self.keep] + self.suffix
        # There are `keep` increments, so this truncates the time as well.
        moved = tuple([t + more for t, more in zip(time, self.increments)])
        return None if max(moved) > LIMIT else moved + self.suffix

    def followed_by(self, other: PathSummary) -> PathSummary:
        """Return the summary of this path followed by `other`.

        >>> PathSummary.feedback(2).followed_by(PathSummary.leave(2)) == PathSummary.leave(2)
        True
        """
        keep = min(self.keep, other.keep)
        increments = tuple([a + b for a, b in zip(self.increments, other.increments)])
        # Beyond `self.keep`, the coordinates that `other` keeps are those of this path's suffix.
        kept_suffix = [a + b for a, b in zip(self.suffix, other.increments[self.keep :])]
        return PathSummary(keep, increments, tuple(kept_suffix) + other.suffix)

    def less_equal(self, other: PathSummary) -> bool:
        """Return whether this path results in a time at or before that of `other`, whatever time both start with.

        >>> PathSummary.identity(2).less_equal(PathSummary.feedback(2))
        True
        >>> PathSummary(1, (0,), (0,)).less_equal(PathSummary.identity(2))  # no counter is before a fresh one
        True
        >>> PathSummary.identity(2).less_equal(PathSummary(1, (0,), (3,)))
        False
        """
        if self.keep > other.keep:
            return False  # a coordinate that only this path keeps may be arbitrarily large
        # For a coordinate that only `other` keeps, `other` results in its increment at least: the coordinate may be 0.
        least = self.increments + self.suffix
        return all(a <= b for a, b in zip(least, other.increments + other.suffix))


@cache
def _identity(length: int) -> PathSummary:
    """Return the identity; cached, because most edges have it."""
    return PathSummary(length, (0,) * length, ())


def images(times: Iterable[Time], summary: PathSummary) -> list[Time]:
    """Return what times result in along a path.

    >>> images([(3, 1), (2, 4)], PathSummary.leave(2))
    [(3,), (2,)]
    """
    return [image for time in times if (image := summary.results_in(time)) is not None]
