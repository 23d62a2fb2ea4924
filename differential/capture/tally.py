"""Find which times of a captured collection are complete, from the statements and the numbers of updates seen.

Invariant: a time is complete exactly if it is not in advance of `frontier`. That is so if statements that form a chain
from the least time cover it, and as many distinct updates were seen at it as stated. Counts are kept only for times
that are not complete. Statements may arrive twice and in any order; those beyond a gap in the chain wait.
"""

from __future__ import annotations

from collections.abc import Iterable

from differential.capture.messages import Statement
from timely.errors import CaptureError
from timely.lowlevel import Antichain, Time


class Tally:
    """Adds up statements and sightings.

    >>> tally = Tally(Antichain([(0,)]))
    >>> tally.see([((0,), 2)])
    >>> tally.state(Statement(Antichain([(0,)]), Antichain([(5,)]), (((0,), 2), ((3,), 1))))
    >>> tally.frontier
    Antichain([(3,)])
    """

    def __init__(self, minimum: Antichain) -> None:
        self.stated = minimum
        """Times in advance of this have not been stated."""
        self._width = len(minimum.elements[0])
        self._seen: dict[Time, int] = {}
        self._expected: dict[Time, int] = {}
        self._waiting: dict[Antichain, Statement] = {}
        self._frontier = minimum
        self._settled = True

    def see(self, counts: Iterable[tuple[Time, int]]) -> None:
        """Add to the numbers of distinct updates seen at each time."""
        for time, count in counts:
            self._seen[time] = self._seen.get(time, 0) + count
        self._settled = False

    def state(self, statement: Statement) -> None:
        """Accept a statement, or a copy of it."""
        lower = statement.lower
        if self._is_known(statement):
            return
        self._waiting[lower] = statement
        while (next := self._waiting.pop(self.stated, None)) is not None:
            self._expected.update((time, count) for time, count in next.counts if count)
            self.stated = next.upper
        self._settled = False

    @property
    def frontier(self) -> Antichain:
        """The least times that are not complete."""
        if not self._settled:
            self._settle()
        return self._frontier

    def missing(self) -> str:
        """Return, for people, what the frontier waits for."""
        self._settle()
        times = [f"{self._expected[t] - self._seen.get(t, 0)} update(s) at {t}" for t in sorted(self._expected)[:5]]
        reasons = [f"{', '.join(times)} did not arrive"] if times else []
        if self.stated:
            lower = " and ".join(map(str, self.stated))
            reasons.append(f"no source states how many updates there are from {lower} on")
        return "; ".join(reasons)

    def _settle(self) -> None:
        seen, expected = self._seen, self._expected
        for time in [time for time in seen if not self.stated.admits(time)]:
            if seen[time] > expected.get(time, 0):
                raise CaptureError(
                    f"{seen[time]} different updates were received at {time}, but {expected.get(time, 0)} were stated: "
                    "the messages are of different runs or contradict each other"
                )
            if seen[time] == expected[time]:  # at least one was seen, so more than none are stated
                del seen[time], expected[time]
        self._frontier = Antichain((*self.stated, *expected))
        self._settled = True

    def _is_known(self, statement: Statement) -> bool:
        """Return whether the statement was accepted before; refuse one that contradicts another."""
        lower, upper = statement.lower, statement.upper
        if any(len(time) != self._width for time in (*lower, *upper, *(time for time, _ in statement.counts))):
            raise CaptureError(
                f"{statement!r:.200} is about times of another scope: those here have {self._width} coordinate(s)"
            )
        if not lower.dominates(upper) or lower == upper:
            raise CaptureError(f"a statement from {lower} up to {upper} is of no interval")
        for time, count in statement.counts:
            if not lower.admits(time) or upper.admits(time) or count < 0:
                raise CaptureError(f"a statement from {lower} up to {upper} cannot count {count} update(s) at {time}")
        waiting = self._waiting.get(lower)
        if waiting is not None:
            if waiting.parts() != statement.parts():
                raise CaptureError(f"{waiting!r:.200} and {statement!r:.200} contradict each other")
            return True
        if self.stated.dominates(lower):
            return False
        # Earlier statements cover this interval. The counts of complete times are gone, and cannot be compared.
        unlike = [time for time, count in statement.counts if self._expected.get(time, count) != count]
        if unlike or not upper.dominates(self.stated):
            raise CaptureError(f"{statement!r:.200} contradicts an earlier one at {unlike[:1] or upper!r:.80}")
        return True
