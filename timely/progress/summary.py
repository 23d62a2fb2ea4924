"""What a path does to a timestamp.

A path summary `(keep, increments, suffix)` truncates a time to its first `keep` coordinates, adds
`increments` to them and appends `suffix`. Entering a loop appends a counter of 0, leaving it truncates, going
round adds one to the innermost counter; every path through a dataflow composes to the same three fields:

    results_in((t_0, ..., t_n)) = (t_0 + increments_0, ..., t_{keep-1} + increments_{keep-1}, *suffix)

Summaries are monotone: `a ≤ b` implies `s(a) ≤ s(b)`. Coordinates are bounded by 2**62: a summary that would
pass it results in no time at all, and whoever makes times refuses later ones.

>>> into_loop = PathSummary.enter(1)
>>> into_loop.results_in((7,))
(7, 0)
>>> round_twice = PathSummary.feedback(2).followed_by(PathSummary.feedback(2))
>>> into_loop.followed_by(round_twice).results_in((7,))
(7, 2)
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from timely.order import LIMIT, Time


class PathSummary(NamedTuple):
    """Keep a prefix of the time, add to it, append to it. All fields are non-negative.

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
        """Return the summary that leaves times of `length` coordinates as they are."""
        return _identity(length)

    @classmethod
    def enter(cls, length: int) -> PathSummary:
        """Return the summary of the way into a loop, for times of `length` coordinates outside it."""
        return cls(length, (0,) * length, (0,))

    @classmethod
    def leave(cls, length: int) -> PathSummary:
        """Return the summary of the way out of a loop, for times of `length` coordinates inside it."""
        return cls(length - 1, (0,) * (length - 1), ())

    @classmethod
    def feedback(cls, length: int, step: int = 1) -> PathSummary:
        """Return the summary of going round a loop: `step` on the innermost of `length` coordinates."""
        return cls(length, (0,) * (length - 1) + (step,), ())

    @property
    def length(self) -> int:
        """How many coordinates the resulting times have."""
        return self.keep + len(self.suffix)

    @property
    def advances(self) -> bool:
        """Whether some coordinate that is kept grows."""
        return any(self.increments)

    def results_in(self, time: Time) -> Time | None:
        """Return the least time at the end of the path for a message at `time` at its start, or None."""
        if not any(self.increments):
            return time[: self.keep] + self.suffix
        moved = tuple([t + more for t, more in zip(time, self.increments)])
        return None if max(moved) > LIMIT else moved + self.suffix

    def followed_by(self, other: PathSummary) -> PathSummary:
        """Return the summary of this path and then `other`.

        >>> PathSummary.feedback(2).followed_by(PathSummary.leave(2)) == PathSummary.leave(2)
        True
        """
        keep = min(self.keep, other.keep)
        increments = tuple([a + b for a, b in zip(self.increments, other.increments)])
        kept_suffix = [a + b for a, b in zip(self.suffix, other.increments[self.keep :])]
        return PathSummary(keep, increments, tuple(kept_suffix) + other.suffix)

    def less_equal(self, other: PathSummary) -> bool:
        """Return whether this path results in a time at or before that of `other`, from wherever it starts.

        >>> PathSummary.identity(2).less_equal(PathSummary.feedback(2))
        True
        >>> PathSummary(1, (0,), (0,)).less_equal(PathSummary.identity(2))  # a fresh counter is never the later one
        True
        >>> PathSummary.identity(2).less_equal(PathSummary(1, (0,), (3,)))
        False
        """
        if self.keep > other.keep:
            return False
        least = self.increments + self.suffix
        return all(a <= b for a, b in zip(least, other.increments + other.suffix))


@cache
def _identity(length: int) -> PathSummary:
    """Return the summary that most edges have: one for all of them."""
    return PathSummary(length, (0,) * length, ())
