"""Which updates a batch has, and as of which times it may be read.

Three frontiers describe a batch, as in the differential dataflow of Frank McSherry. Below, `F ≤ t` means that some
element of the frontier `F` is at or before the time `t`: `t` is *in advance of* `F`.

**The interval.** Of the updates of a collection, a batch has all those, and only those, at the times

    { t : lower ≤ t and not upper ≤ t }

Batches are inserted into a trace one after the other, so that each begins where the one before ends: `first` and
`second` are *adjacent* if `first.upper = second.lower`. Then no time is in both intervals, because the times of `first`
are not in advance of `first.upper`, and those of `second` are. Every time in advance of `first.lower` and not of
`second.upper` is in one of the two, for `first.upper ≤ t` either holds or does not. So the rows of both together are
all the updates in the interval from `first.lower` to `second.upper`, and a merge describes them so (`through`).

**The contents.** Accumulated as of a time `a`, a batch answers what the updates of its interval add up to:

    Σ { diff : (data, t, diff) in the batch, t ≤ a }    if since ≤ a

For other `a` the sum means nothing: compaction has replaced each time `t` by its representative

    rep(t) = meet of { join(t, f) : f in since }

which no `a` in advance of `since` can tell from `t`: `t ≤ a` exactly if `rep(t) ≤ a`. If `t ≤ a`, take an `f ≤ a` of
`since`; then `rep(t) ≤ join(t, f) ≤ a`. And `t ≤ rep(t)`, for `t` is at or before every `join(t, f)`.
Representatives may lie beyond `upper`; the interval is that of the original times.

**Since only advances.** Two times with equal representatives have had their updates summed, and nothing can take the
sum apart again. A batch with `since` can be made one with `later` if `since.dominates(later)`: every `a` in advance of
`later` is in advance of `since`, so nothing is lost that may still be asked for.

(McSherry, Lattuada, Schwarzkopf and Roscoe, "Shared Arrangements", VLDB 2020, prove that no other representatives
make more times equal.)
"""

from __future__ import annotations

from timely.lowlevel import Antichain


class Description:
    """The interval of times that a batch covers, and the frontier from which on its contents may be read. Immutable.

    >>> least, then, later = Antichain([(0,)]), Antichain([(3,)]), Antichain([(5,)])
    >>> first, second = Description(least, then, least), Description(then, later, least)
    >>> first.precedes(second), second.precedes(first)
    (True, False)
    >>> first.through(second, since=then)
    Description(lower=Antichain([(0,)]), upper=Antichain([(5,)]), since=Antichain([(3,)]))
    """

    __slots__ = ("lower", "since", "upper")

    def __init__(self, lower: Antichain, upper: Antichain, since: Antichain) -> None:
        self.lower = lower
        self.upper = upper
        self.since = since

    def precedes(self, other: Description) -> bool:
        """Return whether the interval of `other` begins where this one ends."""
        return self.upper == other.lower

    def through(self, last: Description, since: Antichain) -> Description:
        """Return the description of adjacent batches merged, from this one's to `last`'s, with times advanced."""
        return Description(self.lower, last.upper, since)

    def up_to(self, upper: Antichain) -> Description:
        """Return the description of the same updates in an interval that ends at `upper`; there are none in between."""
        return Description(self.lower, upper, self.since)

    def as_of(self, since: Antichain) -> Description:
        """Return the description of the same updates with their times advanced to `since`, too."""
        return Description(self.lower, self.upper, self.since.join(since))

    def enter(self) -> Description:
        """Return the description of the batch as an inner scope sees it."""
        return Description(entered(self.lower), entered(self.upper), entered(self.since))

    def __repr__(self) -> str:
        return f"Description(lower={self.lower}, upper={self.upper}, since={self.since})"


def entered(frontier: Antichain) -> Antichain:
    """Return a frontier as an inner scope sees it: every element has one more coordinate, 0."""
    return Antichain.of_minimal(tuple((*time, 0) for time in frontier.elements))


NO_TIMES = Description(Antichain(), Antichain(), Antichain())
"""For rows that are in no trace."""
