"""What a dataflow's operators and ports are while somebody listens to what happens inside it.

The classes here record and then do what those they derive from do. A dataflow is switched over by changing the class of
its parts and having its tees look their consumers up again, so that one that nobody listens to pays nothing: no test,
no call. The derived classes add no attributes to slots; what they need besides is kept by the dataflow.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from timely.container import Batch, weight_of
from timely.dataflow.capability import Capability
from timely.dataflow.dataflow import Dataflow
from timely.dataflow.inline import Inline
from timely.dataflow.operator import Operator
from timely.dataflow.ports import InputPort, OutputPort, Push
from timely.events import (
    CAPABILITIES,
    INLINE,
    MESSAGES,
    PROGRESS,
    SCHEDULE,
    CapabilityDropped,
    CapabilityMade,
    CapabilityMoved,
    ChannelBuilt,
    DataflowBuilt,
    FrontierChanged,
    InlineBuilt,
    InlineRan,
    MessageReceived,
    MessageSent,
    OperatorBuilt,
    ProgressReceived,
    ProgressSent,
    ScheduleStarted,
    ScheduleStopped,
)
from timely.order import Time
from timely.progress.protocol import Changes

if TYPE_CHECKING:
    from timely.logging import Log


class LoggedOperator(Operator):
    """Records its activations."""

    __slots__ = ()

    def run(self) -> None:
        dataflow = self.dataflow
        log: Log = dataflow.worker.log
        begun = log.now()
        log.record(ScheduleStarted(begun, dataflow.worker_index, dataflow.index, self.index))
        try:
            super().run()
        finally:
            ended = log.now()
            log.record(ScheduleStopped(ended, dataflow.worker_index, dataflow.index, self.index, ended - begun))


class LoggedInline(Inline):
    """Records what its function does, and how long it takes; not what happens to the result."""

    __slots__ = ()

    def pusher(self) -> Push:
        log: Log = self.dataflow.worker.log
        where = self.dataflow.worker_index, self.dataflow.index, self.index
        function = self.function

        def measured(time: Time, batch: Batch) -> Any:
            begun = log.now()
            made = function(time, batch)
            ended = log.now()
            pieces = made if isinstance(made, list) else [made]
            records = sum([len(piece) for _, piece in pieces if piece is not None])
            log.record(InlineRan(ended, *where, len(batch), records, ended - begun))
            return made

        return self.bind(measured)


class LoggedInput(InputPort):
    """Records messages that go in and that the operator takes."""

    __slots__ = ()

    def drain(self) -> Iterator[tuple[Time, Batch]]:
        dataflow = self.dataflow
        assert isinstance(dataflow, LoggedDataflow)
        sources = dataflow.sources[self.channel]
        while len(sources) > len(self.queue):
            sources.popleft()  # taken by an activation that had begun before anybody listened
        log: Log = dataflow.worker.log
        for time, batch in super().drain():
            source = sources.popleft() if sources else -1
            log.record(
                MessageReceived(
                    log.now(),
                    dataflow.worker_index,
                    dataflow.index,
                    self.channel,
                    len(batch),
                    weight_of(batch),
                    source,
                )
            )
            yield time, batch

    def _push_here(self, time: Time, batch: Batch) -> None:
        dataflow = self.dataflow
        assert isinstance(dataflow, LoggedDataflow)
        dataflow.record_sent(self.channel, batch, dataflow.worker_index)
        super()._push_here(time, batch)

    def deliver(self, sender: int, time: Time, batch: Batch) -> None:
        dataflow = self.dataflow
        assert isinstance(dataflow, LoggedDataflow)
        dataflow.sources[self.channel].append(sender)
        super().deliver(sender, time, batch)


class LoggedOutput(OutputPort):
    """Records capabilities."""

    __slots__ = ()

    def adopt(self, capability: Capability) -> None:
        super().adopt(capability)
        self._record_made(capability)

    def hold(self, capability: Capability) -> None:
        super().hold(capability)
        self._record_made(capability)

    def _record_made(self, capability: Capability) -> None:
        if CapabilityMade in self.dataflow.worker.log.kinds:
            self._record(CapabilityMade, capability.time, str(capability.origin))

    def move(self, capability: Capability, time: Time) -> None:
        before = capability.time
        super().move(capability, time)
        self._record(CapabilityMoved, before, time)

    def release(self, capability: Capability) -> None:
        super().release(capability)
        self._record(CapabilityDropped, capability.time)

    def _record(self, kind: Any, at: Time, *more: Any) -> None:
        dataflow, log = self.dataflow, self.dataflow.worker.log
        where = dataflow.worker_index, dataflow.index, self.operator.index, self.index
        log.record(kind(log.now(), *where, at, *more))


class LoggedDataflow(Dataflow):
    """Records messages to and from other workers, progress, and frontiers.

    `sources` are, for each channel, the workers that the messages in its queue came from.
    """

    sources: list[deque[int]]

    def send(self, worker: int, channel: int, time: Time, batch: Batch) -> None:
        self.record_sent(channel, batch, worker)
        super().send(worker, channel, time, batch)

    def record_sent(self, channel: int, batch: Batch, target: int) -> None:
        """Record that a batch was handed to a channel."""
        log: Log = self.worker.log
        where = self.worker_index, self.index, channel
        log.record(MessageSent(log.now(), *where, len(batch), weight_of(batch), target))

    def receive(self, sender: int, changes: Changes) -> None:
        super().receive(sender, changes)
        log: Log = self.worker.log
        log.record(ProgressReceived(log.now(), self.worker_index, self.index, changes, sender))

    def _send_progress(self, changes: Changes) -> None:
        log: Log = self.worker.log
        log.record(ProgressSent(log.now(), self.worker_index, self.index, changes))
        super()._send_progress(changes)

    def _notify(self, changed: list[int]) -> None:
        log: Log = self.worker.log
        if FrontierChanged in log.kinds:
            now = log.now()
            for location in changed:
                frontier = self.tracker.frontier(location).elements
                port = self.describe(location)
                log.record(FrontierChanged(now, self.worker_index, self.index, location, port, frontier))
        super()._notify(changed)


def switch(dataflow: Dataflow, kinds: frozenset[Any]) -> None:
    """Have what happens in a dataflow recorded as far as it is of these kinds, and no more than that."""
    inside = MESSAGES + PROGRESS + (FrontierChanged,)
    dataflow.__class__ = Dataflow if kinds.isdisjoint(inside) else LoggedDataflow
    operator_class = Operator if kinds.isdisjoint(SCHEDULE) else LoggedOperator
    input_class = InputPort if kinds.isdisjoint(MESSAGES) else LoggedInput
    output_class = OutputPort if kinds.isdisjoint(CAPABILITIES) else LoggedOutput
    if isinstance(dataflow, LoggedDataflow) and not any(isinstance(port, LoggedInput) for port in dataflow.channels):
        dataflow.sources = [deque([-1] * len(port.queue)) for port in dataflow.channels]
    for operator in dataflow.operators:
        operator.__class__ = operator_class
        for output in operator.outputs:
            output.__class__ = output_class
    for inline in dataflow.inlines:
        inline.__class__ = Inline if kinds.isdisjoint(INLINE) else LoggedInline
    for input in dataflow.channels:
        input.__class__ = input_class
    dataflow.resolve_tees()


def descriptions(dataflow: Dataflow, now: int) -> Iterator[Any]:
    """Yield what a dataflow consists of, and the capabilities held in it."""
    where = dataflow.worker_index, dataflow.index
    yield DataflowBuilt(now, *where, dataflow.name)
    for operator in dataflow.operators:
        if operator.inline is None:
            path, origin = operator.scope.path, str(operator.origin)
            yield OperatorBuilt(now, *where, operator.index, operator.name, path, origin)
    for inline in dataflow.inlines:
        yield InlineBuilt(now, *where, inline.index, inline.name, inline.scope.path, str(inline.origin))
    sources = dataflow.wiring.sources_of(dataflow.channels)
    for port in dataflow.channels:
        operator = port.operator
        if operator.inline is None:
            number = operator.inputs.index(port)
            yield ChannelBuilt(
                now, *where, port.channel, operator.index, number, port.pact.name, sources[port.channel]
            )
    for operator in dataflow.operators:
        for output in operator.outputs:
            for held in output.live:
                yield CapabilityMade(now, *where, operator.index, output.index, held.time, str(held.origin))
