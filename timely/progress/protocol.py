"""The progress protocol: workers agree on frontiers without agreeing on a moment.

Every worker keeps a *view*: a count for each pointstamp of the dataflow, its own and those of other workers, as far as
their changes have arrived. A step of a worker changes counts: +1 for a message sent or a capability acquired, -1 for a
message received or a capability dropped. `Protocol` sums these changes up and releases them as one *batch*, which goes
to all peers and, at the same moment, into the worker's own view.

Batches of one sender must arrive in the order in which they were sent. Nothing else is required: no order among
senders, and none between batches and the messages that they count. (Some inputs require the latter as well: see
`timely.dataflow.ports`.)

If workers form trees (`timely.progress.accumulation`), a worker that is not a root sums its changes up for its parent,
and the batches of a root cover its whole tree. A worker's own changes come back to it from its root.

**Safety.** No frontier in any view is ahead of the truth: for each message or capability x that exists anywhere, every
view counts a positive number at some pointstamp that could-result-in x.

Proof. Call messages and capabilities tokens. The parent of a token is the token under which it was created. The worker
that creates a token holds the parent at that moment, and gives the parent up in the same batch or a later one. A view
has a prefix of what each worker did, so:

    (1) if a view lacks the creation of a token, it also lacks the end of the token's parent.

Take a view, and a token x that has not ended. If the view lacks the creation of x, go to the parent of x, whose end the
view lacks by (1), and so on, up to a token whose creation the view has (all views have those of the initial tokens).
This token is *open* in the view, which has its creation and lacks its end; and it could-result-in x. Among all open
tokens that could-result-in x, take those at a minimal pointstamp p. Each counts +1 at p.

What counts -1 at p is a token y whose end is in the view and whose creation is not. Then y is a message, sent by one
worker and received by another, because the view has the changes of each worker in order. Go up from the parent of y
in the same way, to an open token. It is strictly before p, since a message is counted at another location than the
token it was sent under, and no cycle leads back without advancing time. This contradicts the choice of p. Hence nothing
counts -1 at p, and its count is positive.

So a view may well count the receipt of a message before its sending, and the negative count does no harm. All that the
proof requires of the route from a worker to a view is that the view always has a prefix of what the worker did. Trees
preserve this: there is one route between two workers, batches keep their order on each stretch of it, and a parent adds
up whole batches, in the order in which they arrived.

**Demand and eager mode.** In eager mode each flush releases all changes whose sum is not zero. In demand mode a root
holds changes back as long as they cannot move a frontier anywhere (Naiad, SOSP 2013, section 3.3); the proof above does
not depend on when a batch is sent. It releases all of them as soon as one of them decreases the count of a pointstamp
that is live in its view and alone supports an element of its location's frontier. Only roots hold changes back.

**Liveness.** Let everything that was sent be delivered. Then all views are equal, and the truth is this view plus what
is held back. Let p be live in the view and minimal under could-result-in. Nothing else supports its time at its
location, since that support would come from a live pointstamp before p. If p has in truth ended, some root holds back a
decrease of p, and the rule makes it release that. So this stops only when every minimal live pointstamp of the view
exists: the frontiers are exact. In particular, once the last token has ended, all frontiers are empty and nothing is
held back. This requires the rule to be applied again after every propagation; `dirty` reports when.

A single worker needs none of this: its changes go directly to the tracker, and a flush costs a comparison.

>>> from timely.progress.graph import Edge
>>> from timely.progress.summary import PathSummary
>>> tracker = Tracker([1, 1], [Edge(0, 1, PathSummary.identity(1))])
>>> tracker.update(0, (0,), 2)  # both workers start with a capability
>>> tracker.propagate()
[0, 1]
>>> protocol = Protocol(tracker, "demand", Route.direct(0, peers=2))
>>> protocol.update(1, (0,), 1)  # a message has been sent: no frontier depends on this
>>> protocol.flush()
>>> protocol.update(0, (0,), -1)
>>> protocol.flush()
((1, (0,), 1), (0, (0,), -1))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from timely.config import PROGRESS_MODES
from timely.order import Changes, Time
from timely.progress.accumulation import Route
from timely.progress.change_batch import ChangeBatch
from timely.progress.reachability import Tracker

ALONE = Route(None, (), ())


class ProtocolStatistics(NamedTuple):
    """What one worker's side of the protocol has done so far, and how many changes it holds back now."""

    batches_sent: int
    updates_sent: int
    batches_received: int
    updates_received: int
    flushes_held: int
    updates_held: int
    bytes_sent: int = 0
    """What batches took on the wire to other processes, those included that were passed on for others."""


class Protocol:
    """One worker's side of the protocol: sums up its changes, decides when to release them, and applies those of peers.

    Counts that every worker knows from the start (the initial capabilities of all operators on all workers) go directly
    to the tracker, on each worker.
    """

    __slots__ = (
        "_batches",
        "_bytes",
        "_due",
        "_eager",
        "_examined",
        "_flushes_held",
        "_fresh",
        "_held",
        "_is_root",
        "_route",
        "_tracker",
        "targets",
        "update",
    )

    update: Callable[[int, Time, int], None]
    """`update(location, time, diff)` records that this worker changed the count of a pointstamp.

    No tracker sees the change before a flush; only if this worker is alone, its own tracker records it at once.
    """

    def __init__(self, tracker: Tracker, mode: str = "demand", route: Route = ALONE) -> None:
        """Feed `tracker` on a worker with this place among the others; `mode` is one of `config.PROGRESS_MODES`."""
        if mode not in PROGRESS_MODES:
            raise ValueError(f"the progress mode is one of {', '.join(PROGRESS_MODES)}, not {mode!r}")
        self.targets = route.targets
        """The workers to which the caller must send what `flush` returns."""
        self._route = route
        self._is_root = route.parent is None
        self._tracker = tracker
        self._due = tracker.due
        self._eager = mode == "eager"
        self._fresh: list[tuple[int, Time, int]] = []
        self._held: dict[int, ChangeBatch[Time]] = {}
        self._examined = -1
        self._flushes_held = 0
        self._bytes = 0
        self._batches = [0, 0, 0, 0]  # batches and updates sent, batches and updates received
        self.update = self._note if self.targets else tracker.update

    def flush(self) -> Changes | None:
        """Return the batch that must go to `targets` now; None if there is nothing to send.

        Called at the end of a scheduling step, and after a propagation that followed a received batch (when `dirty`). A
        root's own tracker has already recorded the batch; calling `propagate` is left to the caller.
        """
        if self._fresh:
            self._sum_up()
        elif not self._held or self._examined == self._tracker.revision:
            return None  # the rule depends on the view and on what is held, and neither has changed
        if not self._held:
            return None
        # Only roots decide: what a child releases here is held back by its root if no frontier depends on it.
        if self._is_root and not self._eager and not self._must_send():
            self._examined = self._tracker.revision
            self._flushes_held += 1
            return None
        batch = tuple([(location, time, diff) for location, sums in self._held.items() for time, diff in sums])
        self._held.clear()
        # The whole batch enters this worker's view at once, as it does at the peers: safety needs whole batches. What a
        # child sends enters its view when its root forwards it.
        if self._is_root:
            self._tracker.update_all(batch)
        self._batches[0] += 1
        self._batches[1] += len(batch)
        return batch

    def receive(self, sender: int, batch: Changes) -> tuple[int, ...]:
        """Apply a batch; return the workers to which the caller must forward it unchanged.

        A root's batch takes effect with the tracker's next `propagate`. A child's is added to what the next `flush`
        releases.
        """
        self._batches[2] += 1
        self._batches[3] += len(batch)
        children = self._route.children
        if sender in children:
            # Whole and in order of arrival: the next batch then covers a prefix of what the child did.
            self._fresh.extend(batch)
            if not self._due.is_set:
                self._due.set()
            return ()
        self._tracker.update_all(batch)
        return children

    @property
    def dirty(self) -> bool:
        """Whether a propagation or a flush is due: changes were recorded or received, or may no longer be held back."""
        tracker = self._tracker
        return bool(tracker.is_behind or self._fresh or (self._held and self._examined != tracker.revision))

    @property
    def holding(self) -> bool:
        """Whether this worker has changes that it has not released."""
        return bool(self._fresh or self._held)

    def statistics(self) -> ProtocolStatistics:
        """Return the numbers of batches and updates sent, received and held back."""
        held = sum(map(len, self._held.values())) + len(self._fresh)
        sent, updates_sent, received, updates_received = self._batches
        return ProtocolStatistics(sent, updates_sent, received, updates_received, self._flushes_held, held, self._bytes)

    def count_bytes(self, sent: int) -> None:
        """Add to the statistics what a batch took on the wire, which only the caller knows."""
        self._bytes += sent

    def _note(self, location: int, time: Time, diff: int) -> None:
        self._fresh.append((location, time, diff))
        if not self._due.is_set:
            self._due.set()

    def _sum_up(self) -> None:
        """Add what was recorded since the last flush to the sums held back; zeros are dropped."""
        held = self._held
        for location, time, diff in self._fresh:
            sums = held.get(location)
            if sums is None:
                sums = held[location] = ChangeBatch()
            sums.update(time, diff)
            if not sums:
                del held[location]  # otherwise `flush` and `holding` would take it for something held back
        self._fresh.clear()

    def _must_send(self) -> bool:
        """Return whether some sum decreases a live pointstamp that alone supports an element of a frontier."""
        tracker = self._tracker
        for location, sums in self._held.items():
            # Only the end of an element moves the frontier of a location, so no other sums are examined.
            for time in tracker.frontier(location).elements:
                if sums[time] < 0 and tracker.is_sole_holder(location, time):
                    return True
        return False
