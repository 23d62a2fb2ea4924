"""What may arrive at a dataflow from other workers; all else is refused, and changes nothing.

- A batch comes to an input that spreads what it takes over the workers, at a time of that input's scope, and of a kind
  that its pact admits, if that one is `Selective`; else with times of its own, if it has any, in advance of that time.
- Progress comes from those that tell this worker of it (`accumulation`), at locations there are, and at their times.
- What was taken is told of inputs of the first kind, by whoever was sent as much.

Peers that agree on a dataflow's shape never send anything else. It costs a look into a dictionary for a batch, and
for each change. What is said in good form and is not so is believed: that is between peers with the same keys.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from timely.data.container import Batch
from timely.dataflow.pact import Selective
from timely.errors import FrameError
from timely.order import Changes, Time

if TYPE_CHECKING:
    from timely.dataflow.dataflow import Dataflow
    from timely.dataflow.ports import InputPort


class Entrance(NamedTuple):
    """An input that batches come to from other workers, how many coordinates its times have, and what else it asks."""

    port: InputPort
    width: int
    admits: Callable[[Batch, int], bool] | None


class Arrivals:
    """The inputs and locations of a dataflow that other workers may speak of."""

    __slots__ = ("_dataflow", "_entrances", "_tellers", "_widths")

    def __init__(self, dataflow: Dataflow, tellers: frozenset[int], widths: list[int]) -> None:
        """For a dataflow whose ports are placed, workers that tell of progress, and each location's coordinates."""
        self._dataflow = dataflow
        self._entrances = {port.channel: _entrance(port) for port in dataflow.channels if port.spreads}
        self._tellers = tellers
        self._widths = dict(enumerate(widths)) if tellers else {}

    def deliver(self, sender: int, channel: int, time: Time, batch: Batch) -> None:
        """Queue a batch that came from another worker; raise `FrameError` where it cannot come."""
        entrance = self._entrances.get(channel)
        if entrance is None:
            raise FrameError(f"worker {sender} sent a batch to {self._no_entrance(channel)}")
        port, width, admits = entrance
        if len(time) != width:
            raise FrameError(f"worker {sender} sent a batch at {time} to {self._port(port)}, {_times_of(width)}")
        if admits is None:
            fits = getattr(batch, "is_in_advance_of", None)  # of batches that have times of their own
            if fits is not None and not fits(time):
                raise FrameError(
                    f"worker {sender} sent a batch at {time} to {self._port(port)}, with updates at other times"
                )
        elif not admits(batch, width):
            kind = "list" if isinstance(batch, list) else batch.kind
            raise FrameError(f"worker {sender} sent a batch of kind {kind!r} to {self._port(port)}: it takes none such")
        port.deliver(sender, time, batch)

    def settle(self, sender: int, channel: int, messages: int) -> None:
        """Heed that operators of another worker have taken messages of this one; raise `FrameError` if they cannot."""
        entrance = self._entrances.get(channel)
        ledger = None if entrance is None else entrance.port.ledger
        if ledger is None:
            raise FrameError(f"worker {sender} took messages of {self._no_entrance(channel)}")
        ledger.settle(sender, messages)

    def check(self, sender: int, changes: Changes) -> None:
        """Raise `FrameError` unless a peer's batch of progress can be meant for this worker and this dataflow."""
        if sender not in self._tellers:
            raise FrameError(f"worker {sender} told of progress in {self._dataflow}, which others tell this worker of")
        widths = self._widths
        for location, time, _ in changes:
            if widths.get(location) != len(time):
                raise FrameError(f"worker {sender} told of progress at {time} at {self._no_place(location)}")

    def check_place(self, sender: int, location: int, time: Time) -> None:
        """Raise `FrameError` unless a peer may ask about a time at a location."""
        if self._widths.get(location) != len(time):
            raise FrameError(f"worker {sender} asked about {time} at {self._no_place(location)}")

    def _no_entrance(self, channel: int) -> str:
        channels = self._dataflow.channels
        if not 0 <= channel < len(channels):
            return f"channel {channel} of {self._dataflow}, which has {len(channels)}"
        return f"{self._port(channels[channel])}, which takes nothing from other workers"

    def _port(self, port: InputPort) -> str:
        return f"channel {port.channel} of {self._dataflow}, {port}"

    def _no_place(self, location: int) -> str:
        if location not in self._widths:
            return f"location {location} of {self._dataflow}, which has {len(self._widths)}"
        place = self._dataflow.describe(location)
        return f"location {location} of {self._dataflow}, {place}, {_times_of(self._widths[location])}"


def _entrance(port: InputPort) -> Entrance:
    pact = port.pact
    return Entrance(port, port.operator.scope.width, pact.admits if isinstance(pact, Selective) else None)


def _times_of(width: int) -> str:
    """Return what the times of a place look like, for people."""
    return f"whose times have {width} coordinate{'s' if width > 1 else ''}"
