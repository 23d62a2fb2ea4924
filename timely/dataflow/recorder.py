"""What records what happens in a dataflow while somebody listens.

Each of its parts has a `recorder`, None while nobody wants to know what that part does: so a dataflow that nobody
listens to pays for comparisons with None. A listener gives the parts concerned one recorder, the last takes it away.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from timely.data.container import Batch, weight_of
from timely.observe.events import (
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
from timely.order import Changes, Time

if TYPE_CHECKING:
    from timely.dataflow.capability import Held
    from timely.dataflow.dataflow import Dataflow
    from timely.dataflow.inline import Function, Inline
    from timely.dataflow.operator import Operator
    from timely.dataflow.ports import InputPort, OutputPort
    from timely.observe.log import Log


class Recorder:
    """Makes the records of one dataflow.

    `sources` are, for each channel, the workers that the messages in its queue came from; -1 where nobody knows.
    """

    __slots__ = ("_dataflow", "_log", "sources")

    def __init__(self, dataflow: Dataflow) -> None:
        self._dataflow = dataflow
        self._log: Log = dataflow.host.log
        self.sources = [deque([-1] * len(port.queue)) for port in dataflow.channels]

    # Operators

    def run(self, operator: Operator) -> None:
        """Activate an operator, and record that."""
        where = self._dataflow.worker_index, self._dataflow.index, operator.index
        log = self._log
        begun = log.now()
        log.record(ScheduleStarted(begun, *where))
        try:
            operator.run()
        finally:
            ended = log.now()
            log.record(ScheduleStopped(ended, *where, ended - begun))

    def measured(self, inline: Inline) -> Function:
        """Return a function that records what one that runs in line does, and how long it takes; not what happens to
        the result."""
        log, function = self._log, inline.function
        where = self._dataflow.worker_index, self._dataflow.index, inline.index

        def measured(time: Time, batch: Batch) -> Any:
            begun = log.now()
            made = function(time, batch)
            ended = log.now()
            pieces = made if isinstance(made, list) else [made]
            records = sum([len(piece) for _, piece in pieces if piece is not None])
            log.record(InlineRan(ended, *where, len(batch), records, ended - begun))
            return made

        return measured

    # Messages

    def sent(self, channel: int, batch: Batch, target: int) -> None:
        """A batch is handed to a channel."""
        where = self._dataflow.worker_index, self._dataflow.index, channel
        self._log.record(MessageSent(self._log.now(), *where, len(batch), weight_of(batch), target))

    def queued(self, port: InputPort, sender: int) -> None:
        """A message is put into an input's queue."""
        self.sources[port.channel].append(sender)

    def draining(self, port: InputPort) -> None:
        """An operator begins to take what is queued."""
        sources = self.sources[port.channel]
        while len(sources) > len(port.queue):
            sources.popleft()  # taken by an activation that had begun before anybody listened

    def received(self, port: InputPort, batch: Batch) -> None:
        """An operator has taken a message."""
        sources = self.sources[port.channel]
        source = sources.popleft() if sources else -1
        where = self._dataflow.worker_index, self._dataflow.index, port.channel
        self._log.record(MessageReceived(self._log.now(), *where, len(batch), weight_of(batch), source))

    # Capabilities

    def made(self, capability: Held, output: OutputPort) -> None:
        """A capability is held from now on."""
        if CapabilityMade in self._log.kinds:
            self._of_capability(CapabilityMade, output, capability.time, str(capability.origin))

    def moved(self, capability: Held, output: OutputPort, before: Time) -> None:
        """A capability was downgraded."""
        self._of_capability(CapabilityMoved, output, before, capability.time)

    def dropped(self, capability: Held, output: OutputPort) -> None:
        """A capability is held no longer."""
        self._of_capability(CapabilityDropped, output, capability.time)

    def _of_capability(self, kind: Any, output: OutputPort, at: Time, *more: Any) -> None:
        where = self._dataflow.worker_index, self._dataflow.index, output.operator.index, output.index
        self._log.record(kind(self._log.now(), *where, at, *more))

    # Progress

    def told(self, changes: Changes) -> None:
        """Changes are sent to others."""
        dataflow, log = self._dataflow, self._log
        log.record(ProgressSent(log.now(), dataflow.worker_index, dataflow.index, changes))

    def heard(self, changes: Changes, sender: int) -> None:
        """A peer's changes were taken in."""
        dataflow, log = self._dataflow, self._log
        log.record(ProgressReceived(log.now(), dataflow.worker_index, dataflow.index, changes, sender))

    def frontiers_moved(self, locations: list[int]) -> None:
        """The frontiers at these locations are other ones."""
        dataflow, log = self._dataflow, self._log
        if FrontierChanged in log.kinds:
            now = log.now()
            for location in locations:
                frontier = dataflow.tracker.frontier(location).elements
                port = dataflow.describe(location)
                log.record(FrontierChanged(now, dataflow.worker_index, dataflow.index, location, port, frontier))


def switch(dataflow: Dataflow, kinds: frozenset[Any]) -> None:
    """Have what happens in a dataflow recorded as far as it is of these kinds, and no more than that."""
    recording = [port.recorder for port in dataflow.channels if port.recorder is not None]
    recorder = recording[0] if recording else Recorder(dataflow)

    def wanted(*some: Any) -> Recorder | None:
        return None if kinds.isdisjoint(some) else recorder

    dataflow.recorder = wanted(*MESSAGES, *PROGRESS, FrontierChanged)
    of_runs, of_capabilities = wanted(*SCHEDULE), wanted(*CAPABILITIES)
    for operator in dataflow.operators:
        operator.recorder = of_runs
        for output in operator.outputs:
            output.recorder = of_capabilities
    of_inlines, of_messages = wanted(*INLINE), wanted(*MESSAGES)
    for inline in dataflow.inlines:
        inline.recorder = of_inlines
    for input in dataflow.channels:
        input.recorder = of_messages
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
            yield ChannelBuilt(now, *where, port.channel, operator.index, number, port.pact.name, sources[port.channel])
    for operator in dataflow.operators:
        for output in operator.outputs:
            for held in output.live:
                yield CapabilityMade(now, *where, operator.index, output.index, held.time, str(held.origin))
