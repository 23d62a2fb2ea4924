"""Notifications: receive the news, once, that a time is complete.

A request has two times, as in Naiad (Murray et al., SOSP 2013, section 2.4). The *guarantee* time is what must be
complete: the notification comes when no input can receive a message at it or before it. The *capability* time is when
the operator wants to send then; the request holds a capability for it, and so holds back frontiers downstream. A
request without a capability holds nobody back and permits nothing to be sent: it is for forgetting state.

Invariants: no notification comes while a frontier has an element at or before its guarantee time; requests for the same
two times are one; those available come in lexicographic order of their guarantee times. (This extends the product order
of times: whatever is before an available time is available too, and comes first.)

A request in a loop whose capability time can come round to its guarantee time waits for itself; `explain` shows it.
Asking costs a dictionary entry. Where times have one coordinate, to look for what is due costs a look at what is due,
and at the first guarantee time that is not; elsewhere it costs a look at every pending guarantee time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from heapq import heappop, heappush
from typing import Any

from timely.dataflow.capability import Capability
from timely.dataflow.input_capability import InputCapability
from timely.dataflow.operator_core import OperatorCore
from timely.dataflow.ports import InputPort, OutputPort
from timely.errors import CapabilityError
from timely.order import Moment, Time, as_time
from timely.progress.antichain import Antichain

Notification = tuple[Time, Capability | None]
"""The guarantee time, and the capability that the request held."""


class FrontierNotificator:
    """Requests for notifications, delivered as of frontiers that the caller gives.

    >>> requests = FrontierNotificator()
    >>> requests.notify_after((1,)); requests.notify_after((0,)); requests.notify_after((2,))
    >>> [time for time, _ in requests.available([Antichain([(2,)])])]
    [(0,), (1,)]
    >>> requests.is_asked((2,), None)
    True

    In an operator, with the right to send then:

    >>> def last_of_each_time(capability):
    ...     capability.drop()
    ...     requests, last = FrontierNotificator(), {}
    ...     def logic(input, output):
    ...         for right, batch in input:
    ...             if right.time not in last:
    ...                 requests.notify_at(right.retain())
    ...             last[right.time] = batch[-1]
    ...         for time, held in requests.available([input.frontier]):
    ...             output.give(held, [last.pop(time)])
    ...     return logic
    >>> example(lambda scope: scope.to_stream([3, 1, 2]).unary_frontier(Pipeline(), last_of_each_time))
    [2]
    """

    __slots__ = ("_delivered", "_first", "_held", "_is_left", "_is_total", "_pending", "_unseen")

    def __init__(self) -> None:
        self._pending: dict[Time, dict[Time | None, Capability | None]] = {}
        # Guarantee times to compare with the frontiers: a heap of all that are pending, as long as times are totally
        # ordered and no loop was left before its end.
        self._unseen: list[Time] = []
        self._first: Time | None = None  # the least of them, if it was compared and is not due
        self._is_total = True
        self._is_left = False
        self._held: set[Capability] = set()
        self._delivered: Capability | None = None

    def __len__(self) -> int:
        return sum(map(len, self._pending.values()))

    # `Any`, because mypyc would refuse other classes with a message of its own.
    def notify_at(self, capability: Capability | Any, guarantee: Moment | None = None) -> None:
        """Request a notification for `guarantee` (by default the capability's time), and take the capability.

        Raises CapabilityError where it is not a capability, or was dropped.
        """
        if not isinstance(capability, Capability):
            raise CapabilityError(
                f"notify_at takes a capability that lasts, not {capability!r:.80}: retain() returns one for a "
                "message; notify_after(time) takes none"
            )
        if capability.output is None:
            raise CapabilityError(f"cannot ask for a notification with {capability!r}")
        if capability is self._delivered:
            self._delivered = None  # the request takes it over, so the loop must not drop it
        asked, held = self._asked(capability.time if guarantee is None else as_time(guarantee)), self._held
        if capability.time not in asked:
            # The same one may be given for several times: each request drops its own.
            asked[capability.time] = kept = capability.clone() if capability in held else capability
            held.add(kept)
        elif capability not in held:  # a request for these two times is pending, and holds another one
            capability.drop()

    def notify_after(self, guarantee: Moment) -> None:
        """Request a notification for `guarantee` without a capability: to forget what belongs to it."""
        self._asked(as_time(guarantee)).setdefault(None, None)

    def is_asked(self, guarantee: Moment, capability: Moment | None) -> bool:
        """Return whether the notification with these two times is pending."""
        return (None if capability is None else as_time(capability)) in self._pending.get(as_time(guarantee), ())

    def available(self, frontiers: Sequence[Antichain]) -> Iterator[Notification]:
        """Yield the notifications due, in order. Each capability is dropped when the next one is asked for.

        Of one guarantee time, those with a capability come first, the one without comes last. What is asked for
        meanwhile is delivered too, if it is due. What is left when a loop is left is due when this is called again,
        and the operator whose capability came last runs again for it.
        """
        return self._deliver(frontiers, None)

    def _deliver(self, frontiers: Sequence[Antichain], of: Notificator | None) -> Iterator[Notification]:
        self._release()
        pending = self._pending
        # The loop that was left kept its due times to itself, so all pending times are compared again. A sorted list
        # is a heap.
        if self._is_left or not self._is_total:
            self._unseen = sorted(pending)
        self._is_left, self._first = True, None  # left, until its end is reached
        # It lives as long as this generator, so its `__del__` runs when the caller's loop is left.
        loop = NotificationLoop(self, of, frontiers)
        due = loop.due
        while True:
            self._compare(frontiers, due)  # in each turn: the caller may have asked for a time that is due already
            while due and due[0] not in pending:
                heappop(due)
            if not due:
                loop.is_over, self._is_left = True, False
                return
            guarantee = due[0]
            asked = pending[guarantee]
            with_capability = [time for time in asked if time is not None]
            chosen = min(with_capability) if with_capability else None
            capability = asked.pop(chosen)
            if not asked:
                del pending[guarantee]
                heappop(due)
            if capability is not None:
                self._held.discard(capability)
                self._delivered = capability
            if of is not None:
                of._inputs[0].handle(guarantee)
            yield guarantee, capability
            self._release()

    def _compare(self, frontiers: Sequence[Antichain], due: list[Time]) -> None:
        """Move guarantee times that are due from those to be compared to the heap `due`."""
        unseen = self._unseen
        if self._is_total:
            # While times are totally ordered, the least that is not due has none after it that is. A pending time is in
            # the heap once, so it is known by identity.
            while unseen and unseen[0] is not self._first:
                if is_due(unseen[0], frontiers):
                    heappush(due, heappop(unseen))
                else:
                    self._first = unseen[0]
            return
        for time in unseen:
            if is_due(time, frontiers):
                heappush(due, time)
        unseen.clear()

    def _release(self) -> None:
        """Drop the capability that was delivered last."""
        capability, self._delivered = self._delivered, None
        if capability is not None:
            capability.drop()

    def _leave(self, operator: OperatorCore, frontiers: Sequence[Antichain]) -> None:
        """Release what a loop had received when it was left, and have an operator run for what it had not."""
        self._release()
        if any(map(partial(is_due, frontiers=frontiers), self._pending)):
            operator.dataflow.activate(operator)

    def _asked(self, guarantee: Time) -> dict[Time | None, Capability | None]:
        """Return what is asked for at a guarantee time, to be added to."""
        if guarantee not in self._pending:
            self._is_total = self._is_total and len(guarantee) == 1
            heappush(self._unseen, guarantee)
        return self._pending.setdefault(guarantee, {})


def is_due(time: Time, frontiers: Sequence[Antichain]) -> bool:
    """Return whether no frontier has an element at or before a time."""
    for frontier in frontiers:  # noqa: SIM110 (a generator costs a class when compiled)
        if frontier.admits(time):
            return False
    return True


class NotificationLoop:
    """A loop over notifications. If it is left before its end, the operator of `of` runs again for the rest.

    Without `of`, the operator is the one that the capability delivered last belongs to.
    """

    __slots__ = ("_frontiers", "_of", "_requests", "due", "is_over")

    def __init__(self, requests: FrontierNotificator, of: Notificator | None, frontiers: Sequence[Antichain]) -> None:
        self._requests = requests
        self._of = of
        self._frontiers = frontiers
        self.due: list[Time] = []
        """A heap of guarantee times that are known to be due."""
        self.is_over = False

    def __del__(self) -> None:
        if not hasattr(self, "is_over") or self.is_over:  # Ctrl-C struck while it was made, or it was not left
            return
        requests, of = self._requests, self._of
        capability = requests._delivered
        output = of._output if of is not None else None if capability is None else capability.output
        if isinstance(output, OutputPort) and (self.due or requests._unseen or capability is not None):
            # Not now: what calls next() uses the capability afterwards, and the garbage collector runs in any thread.
            output.dataflow.host.call(partial(requests._leave, output.operator, self._frontiers))


class Notificator:
    """Notifications of one operator, as of its inputs' frontiers, holding capabilities on one output.

    Iterate over it, after taking the messages, to receive what is due. A capability is dropped when the loop goes on;
    `clone` it to hold it longer. If the loop is left, the operator runs again, in the next step, for the rest.

    >>> def sums(input, output, notificator):
    ...     for capability, batch in input:
    ...         total[capability.time] = total.get(capability.time, 0) + batch.columns[0].sum()
    ...         notificator.notify_at(capability)
    ...     for time, capability in notificator:
    ...         output.give(capability, [int(total.pop(time))])
    >>> total = {}
    >>> example(lambda scope: scope.to_stream(range(4)).unary_notify(Pipeline(), sums))
    [6]

    State that nothing more is sent of is forgotten by a request that holds nothing back:

    >>> def each_once(input, output, notificator):
    ...     for capability, batch in input:
    ...         known = seen.setdefault(capability.time, set())
    ...         output.give(capability, [record for record in dict.fromkeys(batch) if record not in known])
    ...         known.update(batch)
    ...         notificator.notify_after(capability.time)
    ...     for time, _ in notificator:
    ...         del seen[time]
    >>> seen = {}
    >>> example(lambda scope: scope.to_stream([3, 1, 3]).unary_notify(Pipeline(), each_once)), seen
    ([3, 1], {})
    """

    __slots__ = ("_inputs", "_output", "_requests")

    def __init__(self, inputs: Sequence[InputPort], output: OutputPort) -> None:
        self._inputs = inputs
        self._output = output
        self._requests = FrontierNotificator()

    def __len__(self) -> int:
        return len(self._requests)

    @property
    def frontiers(self) -> list[Antichain]:
        """The frontiers of the inputs."""
        return [input.frontier for input in self._inputs]

    # `Any`, because mypyc would refuse other classes with a message of its own.
    def notify_at(self, capability: Capability | InputCapability | Any, *, guarantee: Moment | None = None) -> None:
        """Request a notification for `guarantee` (by default the capability's time), when it is complete on all inputs.

        The capability may be that of a message, or one held, which is taken over. Raises CapabilityError where it is
        neither, and where `guarantee` is not a time of the operator's scope.
        """
        if not isinstance(capability, (Capability, InputCapability)):
            raise CapabilityError(
                f"notify_at takes a capability, not {capability!r:.80}: that of a message, or its delayed(time); "
                "notify_after(time) takes none"
            )
        time = self._output.time_of(capability)
        at = time if guarantee is None else self._time(guarantee)
        if isinstance(capability, Capability):
            self._requests.notify_at(capability, at)
        elif time not in self._requests._pending.get(at, ()):
            self._requests.notify_at(capability.retain(self._output.index), at)
        self._wake(at)

    def notify_after(self, guarantee: Moment) -> None:
        """Request a notification for `guarantee` without a capability: to forget what belongs to it.

        Raises CapabilityError where it is not a time of the operator's scope.
        """
        at = self._time(guarantee)
        self._requests.notify_after(at)
        self._wake(at)

    def __iter__(self) -> Iterator[Notification]:
        """Yield (guarantee time, capability or None) for what is due, in order."""
        return self._requests._deliver(self.frontiers, self)

    def _time(self, guarantee: Moment) -> Time:
        """Return a time that a user gave, which must be one of the operator's scope."""
        time = as_time(guarantee)
        least = self._output.operator.scope.minimum
        if len(time) != len(least):
            raise CapabilityError(f"{time} is not a time of this scope, whose times look like {least}")
        return time

    def _wake(self, guarantee: Time) -> None:
        """Have the operator run again for what is due already, since no frontier will move because of it."""
        if is_due(guarantee, self.frontiers):
            self._output.dataflow.activate(self._output.operator)
