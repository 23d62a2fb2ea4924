"""What may arrive at a dataflow from other workers; everything else is refused, and changes nothing.

- A batch arrives at an input that spreads what it takes over the workers, at a time of that input's scope. Its kind is
  one that the input's pact admits, if the pact is `Selective`; otherwise, if the batch has times of its own, these are
  in advance of its time.
- Progress arrives from the workers that report it to this one (`accumulation`), at existing locations, and at times of
  these.
- A worker reports that it has taken messages of an input of the first kind, no more than it was sent.

Peers that agree on a dataflow's shape never send anything else. The check costs a dictionary lookup for a batch, and
for each change. A well-formed message that is untrue is believed: only peers with the same keys can send one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from timely.data.container import Batch
from timely.dataflow.core import DataflowCore
from timely.dataflow.pact import Selective
from timely.dataflow.ports import InputPort
from timely.errors import FrameError
from timely.order import Changes, Time


class Entrance(NamedTuple):
    """An input that batches come to from other workers, how many coordinates its times have, and what else it asks."""

    port: InputPort
    width: int
    admits: Callable[[Batch, int], bool] | None


class Arrivals:
    """The inputs and locations of a dataflow that messages of other workers may name."""

    __slots__ = ("_channels", "_dataflow", "_entrances", "_reporters", "_widths")

    def __init__(
        self, dataflow: DataflowCore, channels: Sequence[InputPort], reporters: frozenset[int], widths: list[int]
    ) -> None:
        """Accept what comes to `channels`, and progress from the workers `reporters`.

        `widths` are the numbers of coordinates of the times of all locations.
        """
        self._dataflow = dataflow
        self._channels = channels
        self._entrances: dict[int, Entrance] = {}
        for port in channels:
            if port.spreads:
                admits = port.pact.admits if isinstance(port.pact, Selective) else None
                self._entrances[port.channel] = Entrance(port, port.operator.scope.width, admits)
        self._reporters = reporters
        self._widths = dict(enumerate(widths)) if reporters else {}

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
        port.arrive(sender, time, batch)

    def settle(self, sender: int, channel: int, messages: int) -> None:
        """Settle that operators of another worker took messages of this one; raise `FrameError` if they cannot have."""
        entrance = self._entrances.get(channel)
        ledger = None if entrance is None else entrance.port.ledger
        if ledger is None:
            raise FrameError(f"worker {sender} took messages of {self._no_entrance(channel)}")
        ledger.settle(sender, messages)

    def check(self, sender: int, changes: Changes) -> None:
        """Raise `FrameError` unless a peer's batch of progress can be meant for this worker and this dataflow."""
        if sender not in self._reporters:
            raise FrameError(
                f"worker {sender} reported progress in {self._dataflow}, which others report to this worker"
            )
        widths = self._widths
        for location, time, _ in changes:
            if widths.get(location) != len(time):
                raise FrameError(f"worker {sender} reported progress at {time} at {self._no_place(location)}")

    def check_place(self, sender: int, location: int, time: Time) -> None:
        """Raise `FrameError` unless a peer may ask about a time at a location."""
        if self._widths.get(location) != len(time):
            raise FrameError(f"worker {sender} asked about {time} at {self._no_place(location)}")

    def _no_entrance(self, channel: int) -> str:
        channels = self._channels
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


def _times_of(width: int) -> str:
    """Return what the times of a place look like, for people."""
    return f"whose times have {width} coordinate{'s' if width > 1 else ''}"
