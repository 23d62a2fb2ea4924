"""Capabilities for an antichain of times on one output."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Any

from timely.dataflow.capability import Capability, Holder
from timely.dataflow.input_capability import InputCapability
from timely.errors import CapabilityError
from timely.order import LIMIT, Moment, Time, as_time, less_equal
from timely.progress.antichain import Antichain, minimal
from timely.progress.earliest import FEW


class CapabilitySet:
    """Capabilities for an antichain of times on one output: the least that still permits all that is wanted.

    >>> def constructor(capability, activate):
    ...     def logic(output):
    ...         held = CapabilitySet(output)
    ...         for time in [(5,), (2,), (3,)]:
    ...             with capability.delayed(time) as right:
    ...                 held.insert(right)
    ...         capability.drop()
    ...         print(held.times)
    ...         output.give(held.covering((4,)), ["sent"])
    ...         held.downgrade([(4,)])
    ...         print(held.times)
    ...         held.drop()
    ...     return logic
    >>> example(lambda scope: source(scope, constructor))
    [(2,)]
    [(4,)]
    ['sent']
    """

    __slots__ = ("_held", "_output")

    def __init__(self, output: Holder) -> None:
        self._output = output
        self._held: dict[Time, Capability] = {}

    def __repr__(self) -> str:
        return f"CapabilitySet({self.times}, on {self._output})"

    def __len__(self) -> int:
        return len(self._held)

    @property
    def times(self) -> list[Time]:
        """The times held, in lexicographic order."""
        times = list(self._held.keys())
        return sorted(times) if len(times) > 1 else times

    # `Any`, because mypyc would refuse other classes with a message of its own.
    def insert(self, right: Capability | InputCapability | Any) -> None:
        """Hold what `right`, a capability or what came with a message, permits on this output. It stays the caller's.

        Raises CapabilityError where it permits nothing there.
        """
        self._output.refuse_elsewhere("capabilities.insert(...)")
        self._hold(self._output.time_of(right), False)

    def __getitem__(self, time: Moment) -> Capability:
        return self._held[as_time(time)]

    def covering(self, time: Moment) -> Capability:
        """Return a held capability that permits sending at `time`; raise CapabilityError if none does."""
        given = as_time(time)
        for other, capability in self._held.items():
            if len(other) != len(given) or less_equal(other, given):  # `check` refuses another number of coordinates
                capability.check(given)
                return capability
        raise CapabilityError(f"none of the capabilities held ({self.times}) permits sending at {given}")

    def downgrade(self, frontier: Antichain | Iterable[Moment]) -> None:
        """Hold exactly the least times of `frontier`.

        Raises CapabilityError, and holds what it held, where one of them is not permitted by what is held now.
        """
        held = self._held
        if isinstance(frontier, Antichain):
            times = frontier.elements
        else:
            times = tuple([as_time(time) for time in frontier])
        if not times:
            for capability in held.values():
                capability.drop()
            held.clear()
            return
        if len(times) == len(held) == 1:
            later = times[0]
            for time, capability in held.items():
                if later == time:
                    return
                if len(later) == len(time) and less_equal(time, later):  # moving on costs less than another capability
                    capability.downgrade(later)
                    self._held = {later: capability}
                    return
        sources = self._sources(times)
        if sources.keys() == held.keys():
            return
        least = minimal(tuple(sources))
        # `_sources` has checked all times, so nothing raises halfway. New capabilities are made before the old ones are
        # dropped, which permit them.
        kept = {time: sources[time] if time in held else sources[time].delayed(time) for time in least}
        for time, capability in held.items():
            if time not in kept:
                capability.drop()
        self._held = kept

    def drop(self) -> None:
        """Give up everything held."""
        self.downgrade(())

    # Called by operators of this library alone.

    @classmethod
    def of(cls, capability: Capability) -> CapabilitySet:
        """Return a set that takes over what a capability holds, which is dropped."""
        with capability:
            held = cls(capability.live())
            held.insert(capability)
        return held

    def hold(self, time: Time) -> None:
        """Hold the right to send at `time`, which the caller must have at this moment; nothing is checked."""
        self._hold(time, True)

    def is_any_due(self, frontier: Antichain) -> bool:
        """Return whether a time held is not in advance of `frontier`."""
        for time in self._held:  # noqa: SIM110 (a generator would double the cost)
            if not frontier.admits(time):
                return True
        return False

    def _sources(self, times: tuple[Time, ...]) -> dict[Time, Capability]:
        """Return a held capability that permits sending at each of some times; raise CapabilityError as `covering`."""
        held = self._held
        if len(held) <= FEW or len(times) <= FEW or len(next(iter(held))) != 2:
            return {time: held[time] if time in held else self.covering(time) for time in times}
        # Of the times held whose first coordinate is not larger than that of a time, the last has the least second one.
        stairs = sorted(held)
        sources: dict[Time, Capability] = {}
        for time in times:
            place = bisect_right(stairs, (time[0], LIMIT)) - 1
            if len(time) == 2 and place >= 0 and less_equal(stairs[place], time):
                sources[time] = capability = held[stairs[place]]
                capability.check(time)
            else:
                sources[time] = self.covering(time)
        return sources

    def _hold(self, time: Time, is_own: bool) -> None:
        held = self._held
        if held:
            if time in held or any(less_equal(other, time) for other in held):
                return
            # Nothing is given up that `time` does not permit, and the caller has the right to that until this returns.
            for other in [other for other in held if less_equal(time, other)]:
                held.pop(other).drop()
        held[time] = Capability(self._output, time, is_own=is_own)
