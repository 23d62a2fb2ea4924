"""An arrangement as other dataflows see it.

An `Export` is made once for each arrangement that has a trace, while its dataflow is built. It knows the frontier of
the arrangement's stream. Once the frontier has passed a time, no batch with updates at that time follows, because the
operator that seals holds a capability for what it has gathered. When the dataflow is complete or dropped, the frontier
is empty, and the export releases the dataflow.

Guests are the operators that import the arrangement. While there are guests, the export consumes the stream, follows
its frontier, and passes on each batch as it is sealed. Without guests it does nothing, and sealing costs no more.
"""

from __future__ import annotations

from typing import Protocol, cast

from differential.data.codes import Encoder
from differential.trace.batch import Batch
from timely import Stream
from timely.errors import BuildError
from timely.lowlevel import CLOSED, Antichain, Batch as AnyBatch, Push, Time


class ImportingOperator(Protocol):
    """An operator that imports an arrangement."""

    def receive(self, time: Time, batch: Batch) -> None:
        """Receive a batch that was emitted at `time`."""

    def wake(self) -> None:
        """Look at the export's frontier again before long."""


class Export:
    """The stream of an arrangement, as other dataflows see it."""

    def __init__(self, stream: Stream, key: Encoder, value: Encoder, keys: int) -> None:
        dataflow = stream.scope.dataflow
        self.host = dataflow.host
        self.key = key
        self.value = value
        self.keys = keys
        self._name = str(dataflow)
        self._stream: Stream | None = stream
        self._guests: list[ImportingOperator] = []
        dataflow.observe(stream.location)  # or else the frontier there might not be tracked
        dataflow.when_complete(self._end)

    def __str__(self) -> str:
        return self._name

    @property
    def frontier(self) -> Antichain:
        """The times at which batches may still arrive."""
        if self._stream is None:
            return CLOSED
        self.check()
        dataflow = self._stream.scope.dataflow
        return dataflow.tracker.frontier(dataflow.location(self._stream.location))

    def check(self) -> None:
        """Raise BuildError before the dataflow is complete, and where it could not be built."""
        if self._stream is not None and not self._stream.scope.dataflow.built:
            raise BuildError(self._stream.scope.dataflow.until_built("a trace can be read"))

    @property
    def imports(self) -> int:
        """How many dataflows import this arrangement."""
        return len(self._guests)

    def attach(self, guest: ImportingOperator) -> None:
        """Pass every batch from now on to `guest`, and wake it whenever the frontier moves."""
        if self._stream is None:
            return  # no batch follows, and `frontier` is empty
        if not self._guests:
            self._stream.tee.consumers.append(self)
            self._stream.tee.resolve()
            dataflow = self._stream.scope.dataflow
            dataflow.follow(dataflow.location(self._stream.location), self._moved)
        self._guests.append(guest)

    def detach(self, guest: ImportingOperator) -> None:
        """Pass nothing more to `guest`."""
        if guest not in self._guests:
            return
        self._guests.remove(guest)
        if not self._guests and self._stream is not None:
            self._stream.tee.consumers.remove(self)
            self._stream.tee.resolve()
            dataflow = self._stream.scope.dataflow
            dataflow.unfollow(dataflow.location(self._stream.location), self._moved)

    def pusher(self) -> Push:
        """Return the function that passes a batch to the guests (see `timely.dataflow.tee.Consumer`)."""
        return self._pass_on

    def _pass_on(self, time: Time, batch: AnyBatch) -> None:
        # The guests queue the same batch. It is in the trace, so nobody writes to it.
        for guest in tuple(self._guests):
            guest.receive(time, cast(Batch, batch))

    def _moved(self, locations: list[int]) -> None:
        self._wake()

    def _wake(self) -> None:
        for guest in tuple(self._guests):
            guest.wake()

    def _end(self) -> None:
        if self._stream is not None and self._stream.scope.dataflow.is_abandoned:
            return  # whoever reads the trace is refused
        self._stream = None
        self._wake()
        self._guests.clear()
