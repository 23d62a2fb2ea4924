"""How workers agree on progress without ever agreeing on a moment.

Every worker holds all counts, its own and those of the others, as far as it has heard. A step of a worker
changes counts: messages consumed (-1), messages produced (+1), capabilities gained and lost. `Protocol` sums
these changes up and, when it must, hands out all of them as one batch for every peer; the worker's own
tracker sees them at that moment too, and not before. Batches of one sender must arrive in the order in which
they were sent; nothing is assumed between senders, nor between batches and messages. (Some inputs ask for the latter,
too: `timely.dataflow.operator`.)

Where workers form trees (`timely.progress.accumulation`), one that is no root sums its changes up for its parent, and
the batches of a root are of its whole tree. A worker's own changes come back to it from the root.

**Safe.** No frontier is ever ahead of the truth: for each capability or message x alive anywhere, a worker's
view has a positive count that could-result-in x. Call capabilities and messages tokens, and let a token's
parent be the one under which it was made. The worker that makes a token holds the parent then, and gives the
parent up in the same batch or later. So where a token's making is not in the view, its parent's end is not
either. Go from x to its parent, and on, up to a token that is open in the view: its making is there, its end
is not. Among all open tokens that could-result-in x consider those at a pointstamp p that is minimal. They
count +1 there. What counts -1 at p is a token whose end is in the view though its making is not: a message,
made by one worker and consumed by another. Going up from its parent one meets an open token too, strictly
before p, since a message is counted at another pointstamp than what it was sent under and no cycle leads back
in no time. But p is minimal, so nothing counts -1 there. Hence a consumption may well be heard of before the
production, and the negative count does no harm.

All that this asks of the way from a worker to a view is that what the view has of a worker is always all that the
worker did up to some moment. Trees keep to it: there is one way between two workers; on each stretch of it batches
keep their order; and who adds up adds whole batches, those it was sent first before those it was sent later.

**Eager** mode sends whatever is not zero at each flush. **Demand** mode keeps changes back while they cannot
move a frontier anywhere (Naiad, SOSP 2013, section 3.3; the proof above does not ask when a batch is sent).
It sends everything it kept as soon as one of the changes takes from a pointstamp that, in this worker's view,
is live and alone supports an element of its location's frontier. Only roots keep changes back.

**Live.** Let everything sent be delivered. All views are the same then, and the truth is this view plus what
is kept back. Let p be live in the view and minimal under could-result-in. Nothing else supports its time at
its location, since that would come from a live pointstamp before it. If in truth p is gone, some root keeps
back a decrease of it, and by the rule sends it. So this ends only when every minimal live pointstamp of the
view is alive in truth: the frontiers are exact. In particular they are empty everywhere, and nothing is kept
back, once the last token is gone. For this the rule has to be asked again after every propagation; `dirty`
tells when.

A single worker needs none of this: its changes go to the tracker, and a flush costs a comparison.

>>> from timely.progress.graph import Edge
>>> from timely.progress.summary import PathSummary
>>> tracker = Tracker([1, 1], [Edge(0, 1, PathSummary.identity(1))])
>>> tracker.update(0, (0,), 2)  # both workers start with a capability
>>> tracker.propagate()
[0, 1]
>>> protocol = Protocol(tracker, "demand", Route.direct(0, peers=2))
>>> protocol.update(1, (0,), 1)  # a message is on its way: no frontier depends on saying so
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


class Statistics(NamedTuple):
    """What one worker's side of the protocol has done so far, and how many changes it is keeping back now."""

    batches_sent: int
    updates_sent: int
    batches_received: int
    updates_received: int
    flushes_held: int
    updates_held: int


class Protocol:
    """One worker's side: sums up its changes, decides when the peers must hear of them, takes in theirs.

    The counts that every worker knows from the start (the capabilities that operators begin with, those of
    all the workers) are given to the tracker itself, on each worker.
    """

    __slots__ = (
        "_batches",
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
    """`update(location, time, diff)` notes that this worker changed the count of a pointstamp.

    Nobody else hears of it before a flush, nor, unless this worker is alone, does the own tracker.
    """

    def __init__(self, tracker: Tracker, mode: str = "demand", route: Route = ALONE) -> None:
        """Feed `tracker`, on a worker with this place among the others; `mode` is one of `config.PROGRESS_MODES`."""
        if mode not in PROGRESS_MODES:
            raise ValueError(f"the progress mode is one of {', '.join(PROGRESS_MODES)}, not {mode!r}")
        self.targets = route.targets
        """The workers that must be sent what `flush` returns."""
        self._route = route
        self._is_root = route.parent is None
        self._tracker = tracker
        self._eager = mode == "eager"
        self._fresh: list[tuple[int, Time, int]] = []
        self._held: dict[int, ChangeBatch[Time]] = {}
        self._examined = -1
        self._flushes_held = 0
        # Batches and updates sent, batches and updates received.
        self._batches = [0, 0, 0, 0]
        self.update = self._note if self.targets else tracker.update

    def flush(self) -> Changes | None:
        """The changes that `targets` must be sent now, as one batch; None when there is nothing to send.

        Called at the end of a scheduling step and after a propagation that followed a received batch (when
        `dirty`). A root's own tracker has been told of what is returned; its `propagate` is left to the caller.
        """
        if self._fresh:
            self._sum_up()
        elif not self._held or self._examined == self._tracker.revision:
            return None
        if not self._held:
            return None
        if self._is_root and not self._eager and not self._must_send():
            self._examined = self._tracker.revision
            self._flushes_held += 1
            return None
        batch = tuple([(location, time, diff) for location, sums in self._held.items() for time, diff in sums])
        self._held.clear()
        if self._is_root:
            self._tracker.update_all(batch)
        self._batches[0] += 1
        self._batches[1] += len(batch)
        return batch

    def receive(self, sender: int, batch: Changes) -> tuple[int, ...]:
        """Take in a batch; return the workers to whom it must be passed on, as it is.

        A root's takes effect with the tracker's next `propagate`; a child's is added to what the next `flush` is of.
        """
        self._batches[2] += 1
        self._batches[3] += len(batch)
        children = self._route.children
        if sender in children:
            self._fresh.extend(batch)
            return ()
        self._tracker.update_all(batch)
        return children

    @property
    def dirty(self) -> bool:
        """Whether a propagation or a flush is due: something was noted or received, or may no longer be kept."""
        tracker = self._tracker
        return bool(tracker.is_behind or self._fresh or (self._held and self._examined != tracker.revision))

    @property
    def holding(self) -> bool:
        """Whether changes are known here that the peers have not been sent."""
        return bool(self._fresh or self._held)

    def statistics(self) -> Statistics:
        """Batches and updates sent, received and kept back."""
        held = sum(map(len, self._held.values())) + len(self._fresh)
        sent, updates_sent, received, updates_received = self._batches
        return Statistics(sent, updates_sent, received, updates_received, self._flushes_held, held)

    def _note(self, location: int, time: Time, diff: int) -> None:
        self._fresh.append((location, time, diff))

    def _sum_up(self) -> None:
        """Add what was noted since the last flush to the sums kept back, without the zeros."""
        held = self._held
        for location, time, diff in self._fresh:
            sums = held.get(location)
            if sums is None:
                sums = held[location] = ChangeBatch()
            sums.update(time, diff)
            if not sums:
                del held[location]
        self._fresh.clear()

    def _must_send(self) -> bool:
        """Whether some sum takes from a live pointstamp on which alone an element of a frontier rests."""
        tracker = self._tracker
        for location, sums in self._held.items():
            for time in tracker.frontier(location).elements:
                if sums[time] < 0 and tracker.is_sole_holder(location, time):
                    return True
        return False
