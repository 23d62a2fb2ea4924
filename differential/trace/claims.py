"""What the readers of a trace hold back.

Each reader makes a claim: two frontiers, which only advance. The trace keeps to the meet of all claims: it compacts
times up to the meet of the logical frontiers, and merges batches up to the meet of the physical ones. A reader may
claim nothing that the meets have passed, because it is gone; so a new claim begins at the meets.

A reader that was not dropped but forgotten is found by the garbage collector: at any moment, in any thread, even while
the trace is in the middle of a merge. Its claim waits, and is given up when the trace is at rest.
"""

from __future__ import annotations

from collections import deque

from timely.lowlevel import Antichain


class Claim:
    """What one reader holds back: the frontiers from which on it may ask for contents, and for cuts."""

    __slots__ = ("logical", "physical")

    def __init__(self, logical: Antichain, physical: Antichain) -> None:
        self.logical = logical
        self.physical = physical


class Claims:
    """The claims of all readers of a trace. Without any, once there were some, the trace is abandoned."""

    __slots__ = ("_held", "_origin", "is_abandoned", "left_behind")

    def __init__(self, origin: Antichain) -> None:
        """Begin without readers, so that the first may claim everything from `origin` on."""
        self._origin = origin
        self._held: set[Claim] = set()
        self.left_behind: deque[Claim] = deque()
        """Claims that were left behind and not discarded yet."""
        self.is_abandoned = False

    def __len__(self) -> int:
        """The number of readers."""
        return len(self._held) - len(self.left_behind)

    @property
    def logical(self) -> Antichain:
        """The meet of the logical frontiers: contents are known as of times in advance of it."""
        # A copy: the loop may set off a garbage collection, which gives up the claims of readers that it finds.
        return self._meet([claim.logical for claim in self._held.copy()])

    @property
    def physical(self) -> Antichain:
        """The meet of the physical frontiers: the trace can be cut at batch boundaries from it on."""
        return self._meet([claim.physical for claim in self._held.copy()])

    def add(self, claim: Claim) -> None:
        """Hold back what `claim` states, from now on."""
        self._held.add(claim)

    def discard(self, claim: Claim) -> bool:
        """Take back `add`; return whether nobody reads the trace any more."""
        self._held.discard(claim)
        self.is_abandoned = self.is_abandoned or not self._held
        return not self._held

    def leave_behind(self, claim: Claim) -> None:
        """Take back `add` when the trace is at rest; called at any moment, in any thread."""
        self.left_behind.append(claim)  # a deque: any thread may append while the worker's thread pops

    def _meet(self, frontiers: list[Antichain]) -> Antichain:
        if not frontiers:
            return Antichain() if self.is_abandoned else self._origin
        meet = frontiers[0]
        for frontier in frontiers:
            if frontier is not meet:
                meet = meet.meet(frontier)
        return meet
