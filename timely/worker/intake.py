"""What arrives at a worker, delivered to the dataflow, shape or question that it is for.

A message for a dataflow that is not built here yet waits until it is. A message that cannot be meant is refused and
counted, and the run goes on.
"""

from __future__ import annotations

from timely.communication.message import Data, Message, ProgressUpdate, Shape, StallAnswer, StallQuestion, Taken
from timely.data.weight import weight_of
from timely.dataflow.dataflow import Dataflow
from timely.dataflow.host import Host
from timely.errors import FrameError
from timely.worker.dataflows import Dataflows
from timely.worker.explaining import Explainer
from timely.worker.shapes import Arrived, Shapes


class Intake:
    """Delivers what arrives at one worker."""

    def __init__(self, host: Host, dataflows: Dataflows, shapes: Shapes, explainer: Explainer) -> None:
        self._host = host
        self._dataflows = dataflows
        self._shapes = shapes
        self._explainer = explainer
        self.early: dict[int, list[tuple[int, Data | ProgressUpdate]]] = {}
        """Messages and their senders, by the number of a dataflow that is not built here yet."""

    def take_in(self) -> bool:
        """Send peers what has changed here, then deliver what has arrived, running nothing.

        Return whether there was more than questions and answers.
        """
        if self._host.peers > 1:
            self._dataflows.flush_to_peers()  # first: they wait for it while this worker receives
        moved = False
        arrived = self._host.allocator.receive()
        for sender, message in arrived:
            self._deliver(sender, message, arrived)
            # Questions do not count: to ask whether a worker sleeps must not end its sleep.
            moved = moved or not isinstance(message, (StallQuestion, StallAnswer))
        if moved:
            self._host.activity.slept = 0.0
        return moved

    def deliver_early(self, dataflow: Dataflow) -> None:
        """Deliver what has arrived for a dataflow before it was built here."""
        for sender, message in self.early.pop(dataflow.index, ()):
            self._deliver(sender, message)

    def _deliver(self, sender: int, message: Message, arrived: Arrived = ()) -> None:
        """Deliver a message; `arrived` is all that arrived with it, in which a peer's shape may follow its digest."""
        try:
            if isinstance(message, (Data, ProgressUpdate)):
                self._dispatch(sender, message)
            elif isinstance(message, Taken):
                self._settle(sender, message)
            elif isinstance(message, Shape):
                self._shapes.receive(sender, message, arrived)
            else:
                assert isinstance(message, (StallQuestion, StallAnswer))
                self._explainer.receive(sender, message)
        except FrameError as error:
            self._host.allocator.refuse(str(error))

    def _dispatch(self, sender: int, message: Data | ProgressUpdate) -> None:
        """Deliver a message to its dataflow, or keep it until that is built; raise `FrameError` if it is for none."""
        index = message.dataflow
        dataflow = self._dataflows.running.get(index)
        if dataflow is not None:
            if isinstance(message, ProgressUpdate):
                dataflow.receive(sender, message.changes)
            else:
                dataflow.arrivals.deliver(sender, message.channel, message.time, message.batch)
        elif index >= self._dataflows.built:
            # A peer announces a dataflow's shape when it has built it. Operators may send when they are made, just
            # before that: so the dataflow after the last one announced is permitted, too.
            if index > self._shapes.announced[sender]:
                kind = "a batch" if isinstance(message, Data) else "progress"
                raise FrameError(f"worker {sender} sent {kind} of dataflow {index}, which it has not built")
            self.early.setdefault(index, []).append((sender, message))
        # Progress of a dataflow that was dropped or is complete is ignored: no operator here waits for it.
        elif isinstance(message, Data):
            # The dataflow is gone, but its sender may not have dropped it yet and counts the batch until it is taken.
            self._host.outstanding.take(sender, index, message.channel, weight_of(message.batch))

    def _settle(self, sender: int, taken: Taken) -> None:
        """Settle what another worker has taken; raise `FrameError` for what it cannot have."""
        for index, channel, messages in taken.counts:
            dataflow = self._dataflows.running.get(index)
            if dataflow is not None:
                dataflow.arrivals.settle(sender, channel, messages)
            # Of a dropped dataflow there is nothing to settle: its ledgers owe nothing once it is closed.
            elif index >= self._dataflows.built:
                raise FrameError(f"worker {sender} took messages of dataflow {index}, which is not built")
