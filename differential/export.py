"""What a dataflow tells others of one of its arrangements.

An `Export` is made once for each arrangement that has a trace, while its dataflow is built. It knows the frontier of
the arrangement's stream: no time that it has passed has anything left to seal, for who seals holds a capability for
what it has gathered. When the dataflow is complete, or dropped, the frontier is empty, and the dataflow is let go of.
"""

from __future__ import annotations

from timely.dataflow.stream import Stream
from timely.errors import BuildError
from timely.progress.antichain import Antichain

CLOSED = Antichain()


class Export:
    """The stream of an arrangement, as it is seen from outside its dataflow."""

    def __init__(self, stream: Stream) -> None:
        dataflow = stream.scope.dataflow
        self.worker = dataflow.worker
        self._name = str(dataflow)
        self._stream: Stream | None = stream
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
        return 0

    def _end(self) -> None:
        self._stream = None
