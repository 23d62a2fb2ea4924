"""What a dataflow tells others of one of its arrangements.

An `Export` is made once for each arrangement that has a trace, while its dataflow is built. It knows the frontier of
the arrangement's stream: no time that it has passed has anything left to seal, for who seals holds a capability for
what it has gathered. When the dataflow is complete, or dropped, the frontier is empty, and the dataflow is let go of.

Guests are those who import it. While there are any, the export consumes the stream and follows its frontier, and hands
each batch on as it is sealed; while there are none, the dataflow does not know of it: sealing costs what it always did.
"""

from __future__ import annotations

from typing import Protocol, cast

from differential.data.codes import Encoder
from differential.trace.batch import Batch
from timely.data.container import Batch as AnyBatch
from timely.dataflow.stream import Stream
from timely.dataflow.tee import Push
from timely.errors import BuildError
from timely.order import Time
from timely.progress.antichain import CLOSED, Antichain


class Guest(Protocol):
    """Who imports an arrangement."""

    def receive(self, time: Time, batch: Batch) -> None:
        """Take a batch that was sent at `time`."""
        ...

    def wake(self) -> None:
        """Look at the export's frontier again before long."""
        ...


class Export:
    """The stream of an arrangement, as it is seen from outside its dataflow."""

    def __init__(self, stream: Stream, key: Encoder, value: Encoder, keys: int) -> None:
        dataflow = stream.scope.dataflow
        self.host = dataflow.host
        self.key = key
        self.value = value
        self.keys = keys
        self._name = str(dataflow)
        self._stream: Stream | None = stream
        self._guests: list[Guest] = []
        dataflow.observe(stream.location)
        dataflow.when_complete(self._end)

    def __str__(self) -> str:
        return self._name

    @property
    def frontier(self) -> Antichain:
        """The times at which batches may still come."""
        if self._stream is None:
            return CLOSED
        dataflow = self._stream.scope.dataflow
        if not dataflow.built:
            raise BuildError("a trace can be asked once its dataflow is complete: leave its `with` block first")
        return dataflow.tracker.frontier(dataflow.location(self._stream.location))

    @property
    def imports(self) -> int:
        """How many dataflows import this arrangement."""
        return len(self._guests)

    def attach(self, guest: Guest) -> None:
        """Tell `guest` of every batch from now on, and of every move of the frontier."""
        if self._stream is None:
            return
        if not self._guests:
            self._stream.tee.consumers.append(self)
            self._stream.tee.resolve()
            dataflow = self._stream.scope.dataflow
            dataflow.follow(dataflow.location(self._stream.location), self._wake)
        self._guests.append(guest)

    def detach(self, guest: Guest) -> None:
        """Tell `guest` no more."""
        if guest not in self._guests:
            return
        self._guests.remove(guest)
        if not self._guests and self._stream is not None:
            self._stream.tee.consumers.remove(self)
            self._stream.tee.resolve()
            self._stream.scope.dataflow.unfollow(self._wake)

    def pusher(self) -> Push:
        """Return what hands a batch to the guests (see `timely.dataflow.tee.Consumer`)."""
        return self._hand_on

    def _hand_on(self, time: Time, batch: AnyBatch) -> None:
        for guest in tuple(self._guests):
            guest.receive(time, cast(Batch, batch))

    def _wake(self) -> None:
        for guest in tuple(self._guests):
            guest.wake()

    def _end(self) -> None:
        self._stream = None
        self._wake()
        self._guests.clear()
