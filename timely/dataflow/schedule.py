"""Which operator of a dataflow runs next, and which ones wait for room behind them.

Operators run in topological order: an operator runs before those that consume what it emits, so that one pass over the
ready operators carries a message as far as it goes. Three kinds of operators wait until no other is ready:

- one that has more to emit for the messages it took (`resume_later`): what it emitted is consumed first. Of several
  such operators the last in topological order resumes first;
- one without inputs, a source: it would fill the queues of its consumers. It also waits while the worker is congested;
- one that is held back (`holds_back`): a worker has not taken enough of what this worker sent to operators behind it
  (see `timely.dataflow.outstanding`, which also shows that nothing waits for ever).

Invariant: an operator is at most once among those that are ready, have more to emit, or are sources, and `active`
states whether it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush

from timely.dataflow.outstanding import Ledger, Outstanding
from timely.progress.due import Due


class Schedulable:
    """What a schedule knows of an operator.

    `rank` is its place in the topological order. One with `waits` is activated when a frontier moves that it asked for.
    """

    def __init__(self) -> None:
        self.rank = -1
        self.active = False
        self.waits = True
        self.has_inputs = False
        self.region: Schedulable | None = None
        """What runs this one, where a schedule does not."""
        self.has_more = False
        """Whether this one, in a region, has more to emit for the messages it took, or waits for room to emit it."""
        self.is_running = False
        """Whether this region runs one of its operators."""
        self.is_held_back = False
        """Whether an operator of this region must not emit now."""

    def is_due(self) -> bool:
        """Return whether this runs now that a frontier has moved."""
        return self.waits

    def run(self) -> None:
        """Activate the operator once."""
        raise NotImplementedError


class Schedule:
    """The queues of one dataflow's operators; empty, and refusing nothing, until `start`."""

    def __init__(self, outstanding: Outstanding, is_congested: Callable[[], bool], due: Due) -> None:
        self.operators: Sequence[Schedulable] = ()
        self.outstanding = outstanding
        self._is_congested = is_congested
        self._due = due
        self._ready: list[int] = []
        self._partway: list[int] = []
        self._sources: list[int] = []
        self._held_back: set[int] = set()
        self._counted: list[tuple[int, Ledger]] = []

    def start(self, operators: Sequence[Schedulable]) -> None:
        """Accept these operators, in topological order."""
        self.operators = operators
        for rank, operator in enumerate(operators):
            operator.rank = rank

    def count(self, operator: Schedulable, ledger: Ledger) -> None:
        """Take note of what is outstanding at an operator's input; to be called in topological order."""
        self._counted.append((operator.rank, ledger))

    def activate(self, operator: Schedulable) -> None:
        """Let an operator run in this step or the next, unless it is held back.

        Before the dataflow is built this does nothing: building it activates all operators.
        """
        region = operator.region
        if region is not None:
            operator.active = True
            if region.is_running:
                return  # before it ends, the region looks for members that are active
            operator = region
        rank = operator.rank  # -1 for what runs in line, too
        if rank >= 0 and not operator.active and rank not in self._held_back:
            operator.active = True
            if operator.has_inputs:
                heappush(self._ready, rank)
            else:
                self._sources.append(rank)
            if not self._due.is_set:
                self._due.set()

    def wake(self, operator: Schedulable) -> None:
        """Let an operator run because a frontier moved, if it waits for that."""
        # A step or the start of the dataflow calls this, so the dataflow is on the agenda already.
        if operator.is_due() and not operator.active:
            operator.active = True
            if operator.has_inputs:
                heappush(self._ready, operator.rank)
            else:
                self._sources.append(operator.rank)

    def resume_later(self, operator: Schedulable) -> None:
        """Let an operator that has more to emit run when no other is ready: those that consume its output come first.

        Of several such operators the last in topological order resumes. So what each has emitted is consumed before it
        emits more, however many messages follow from one.
        """
        if operator.region is not None:
            operator.has_more = True
        elif not operator.active and operator.rank not in self._held_back:
            operator.active = True
            heappush(self._partway, -operator.rank)  # negative, so that the last one comes first

    def holds_back(self, operator: Schedulable) -> bool:
        """Return whether an operator must not emit now, for want of room behind it; it is activated when there is room.

        Until then no message activates it, so an operator that asks for this does not keep others from running.
        """
        member, operator = operator, operator.region or operator
        if not self._is_full_behind(operator.rank):
            return False
        if member is not operator:
            member.has_more = True  # so that the region runs it again
        operator.is_held_back = True
        self._held_back.add(operator.rank)
        return True

    def next(self) -> Schedulable | None:
        """Return the operator to run next, or None if none is ready."""
        ready = self._ready
        if not ready:
            return None
        return self.operators[heappop(ready)]

    def resume(self) -> bool:
        """Let operators that waited run if they need to wait no longer; return whether an operator is ready.

        First those held back for which there is room. If none is ready then, the last of those that have more to emit;
        if there is none, the sources.
        """
        ready = self._ready
        if self._held_back:
            for rank in [rank for rank in self._held_back if not self._is_full_behind(rank)]:
                self._held_back.discard(rank)  # first, for `activate` refuses what is held back
                self.activate(self.operators[rank])
        if ready:
            return True
        if self._partway:
            heappush(ready, -heappop(self._partway))
        elif self._sources and not self._is_congested():
            while self._sources:
                heappush(ready, self._sources.pop())
        return bool(ready)

    @property
    def is_ready(self) -> bool:
        """Whether an operator is ready and none is held back: then `resume` has nothing to do."""
        return bool(self._ready) and not self._held_back

    @property
    def has_ready(self) -> bool:
        """Whether an operator is ready."""
        return bool(self._ready)

    @property
    def is_empty(self) -> bool:
        """Whether no operator is waiting to run, except for those that are held back."""
        return not (self._ready or self._partway or self._sources)

    @property
    def is_idle(self) -> bool:
        """Whether no operator is waiting to run."""
        return self.is_empty and not self._held_back

    def close(self) -> None:
        """Drop all that waits, and settle what is outstanding."""
        self._ready.clear()
        self._partway.clear()
        self._sources.clear()
        self._held_back.clear()
        for _, ledger in self._counted:
            ledger.close()

    def _is_full_behind(self, rank: int) -> bool:
        """Return whether a worker is owed more than its share, and some of it behind the operator of a rank."""
        for peer in self.outstanding.over:
            room = self.outstanding.allowance
            for order, ledger in reversed(self._counted):
                if order <= rank:  # ledgers are in topological order, so the rest are not behind the operator either
                    break
                room -= ledger.owed[peer]
                if room < 0:
                    return True
        return False
