"""The ends of channels: an operator's inputs and outputs, and the tees between them.

A port is a location of the progress tracker. Everything that happens at it changes counts there, and all changes made
in one scheduling step become visible to the tracker together:

- a message handed to a channel counts +1 at the receiving input, on whichever worker that is; taking it from the
  queue, -1;
- a capability counts +1 at its output while it is held.

An input that nobody asks for a frontier, of an operator with one output and nothing in between, needs no location of
its own: its queued messages are counted at the output, which they could equally reach (`InputPort.location` is then
the output's).

A port's `place` is its number in the graph as it was built; its `location`, from then on, is the tracker's number of
where it is counted.

A `Tee` hands a message to everything that consumes a stream. Stateless operators are functions between two tees and run
in line with the producer: no queue, no location, no scheduling.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

from timely.data.container import Batch, as_read_only, weight_of
from timely.dataflow.capability import Capability, Held
from timely.dataflow.outstanding import Ledger
from timely.dataflow.pact import Pipeline
from timely.errors import BuildError, CapabilityError
from timely.order import LIMIT, Moment, Time, as_time, less_equal
from timely.progress.antichain import Antichain
from timely.progress.summary import PathSummary

if TYPE_CHECKING:
    from timely.dataflow.dataflow import Dataflow
    from timely.dataflow.operator import Operator
    from timely.dataflow.pact import Pact
    from timely.dataflow.recorder import Recorder

Push = Callable[[Time, Batch], None]

OVERHEAD = 512
"""About so many bytes a message takes besides its columns."""


class Consumer(Protocol):
    """Something that can be attached to a tee; says what to call once the dataflow is complete."""

    def pusher(self) -> Push: ...


class Tee:
    """Hands each message of a stream to all its consumers. `push` is final once the dataflow is built."""

    __slots__ = ("consumers", "push")

    def __init__(self) -> None:
        self.consumers: list[Consumer] = []
        self.push: Push = _not_built

    def resolve(self) -> None:
        pushers = [consumer.pusher() for consumer in self.consumers]
        if len(pushers) == 1:
            self.push = pushers[0]
            return

        def push(time: Time, batch: Batch) -> None:
            for pusher in pushers:
                pusher(time, batch)

        self.push = push


def _not_built(time: Time, batch: Batch) -> None:
    raise BuildError("data was sent before the dataflow was complete: leave its `with` block first")


class InputCapability:
    """The right that comes with a message: to send at its time, until the activation ends in which it was taken."""

    __slots__ = ("activation", "input", "time")

    def __init__(self, input: InputPort, time: Time, activation: int) -> None:
        self.input = input
        self.time = time
        self.activation = activation

    def delayed(self, time: Moment) -> InputCapability:
        """Return the same right at a later time."""
        time = as_time(time)
        if len(time) != len(self.time):
            raise CapabilityError(f"{time} is not a time of this scope, whose times look like {self.time}")
        if not less_equal(self.time, time):
            raise CapabilityError(f"a message at {self.time} gives no right to send at {time}: times only move forward")
        if max(time) > LIMIT:
            raise CapabilityError(f"{time} is too late: no coordinate of a time may be larger than 2 ** 62")
        return InputCapability(self.input, time, self.activation)

    def retain(self, output: int = 0) -> Capability:
        """Return a capability on the operator's `output` that may be held after the message was handled."""
        port = self.input.operator.outputs[output]
        return Capability(port, port.time_of(self))


class InputPort:
    """One input of an operator: a queue of messages and, where asked for, a frontier.

    An operator that `drains`, takes all that is queued before it asks for the frontier. So it has to be told only of
    what has not arrived, and the frontiers at the outputs that feed the input tell it that: where messages stay on the
    worker, for they arrive when they are sent; where they are spread, if whoever sends one tells this worker of its
    progress itself, afterwards (`Route.is_direct`). For when the frontier there has passed a time, this worker has
    heard that the right under which a message was sent at that time has ended, and nothing overtakes on the way from
    one worker to another (`Allocator`): the message is here. Such an input needs no place of its own, and that its
    messages were taken need not be told: where its operator keeps a capability for each, nothing has changed.

    `time` is that of what is handled in the current activation, a message or a notification; None if there was none.

    >>> def large(input, output):
    ...     for capability, batch in input:  # each message with the right to send at its time
    ...         output.give(capability, [record for record in batch if record > 2])
    >>> def show(input):
    ...     for time, batch in input.drain():  # each message with its time alone
    ...         print(time, batch)
    ...     if not input.frontier:
    ...         print("nothing more comes")
    >>> def program(worker):
    ...     with worker.dataflow() as scope:
    ...         scope.to_stream([1, 2, 3]).unary(Pipeline(), large).sink(Gather(), show)
    >>> execute_directly(program)
    (0,) [3]
    nothing more comes
    """

    __slots__ = (
        "_frontier",
        "_sources",
        "channel",
        "dataflow",
        "drains",
        "interest",
        "ledger",
        "location",
        "operator",
        "pact",
        "place",
        "queue",
        "recorder",
        "time",
    )

    def __init__(self, operator: Operator, pact: Pact, interest: bool, drains: bool, channel: int) -> None:
        self.operator = operator
        self.dataflow: Dataflow = operator.dataflow
        self.pact = pact
        self.interest = interest
        self.drains = drains
        self.place = self.location = self.dataflow.add_place(operator.scope, self)
        self.channel = channel
        self.queue: deque[tuple[Time, Batch]] = deque()
        self.ledger: Ledger | None = None
        """Counts what is outstanding on the channel; None where messages never wait longer than a step."""
        self.time: Time | None = None
        self.recorder: Recorder | None = None
        self._sources: list[tuple[int, PathSummary | None]] = []
        self._frontier: tuple[list[Antichain], Antichain] | None = None

    def follow(self, sources: list[tuple[int, PathSummary | None]]) -> None:
        """Have the frontier that results from those at the sources, each along its summary (None: as it is)."""
        self._sources = sources

    def place_frontier(self, number: dict[int, int]) -> list[int]:
        """Return where the frontier is tracked, given the numbers of the places that are."""
        followed = [(number[source], summary) for source, summary in self._sources]
        self._sources = followed or [(self.location, None)]
        return [location for location, _ in self._sources]

    def __iter__(self) -> Iterator[tuple[InputCapability, Batch]]:
        """Take the queued messages; each comes with the right to send at its time."""
        operator = self.operator
        for time, batch in self.drain():
            yield InputCapability(self, time, operator.activations), as_read_only(batch)

    def drain(self) -> Iterator[tuple[Time, Batch]]:
        """Take the queued messages with their bare times.

        What the operator itself sends round a loop meanwhile is left for its next activation, so that each ends; and so
        is what would become messages that nobody has room for, unless the operator `drains`.
        """
        queue = self.queue
        update = self.dataflow.update
        ledger = self.ledger
        recorder = self.recorder
        if recorder is not None:
            recorder.draining(self.channel, len(queue))
        over = None if self.drains or ledger is None else self.dataflow.outstanding.over
        left = len(queue)
        while queue and left:
            if over and self.dataflow.holds_back(self.operator):
                return
            left -= 1
            time, batch = queue.popleft()
            if ledger is not None:
                ledger.take()
            self.time = time
            update(self.location, time, -1)
            if recorder is not None:
                recorder.received(self.channel, batch)
            yield time, batch

    def handle(self, time: Time) -> None:
        """Have an error name `time`, at which the operator does something that no message has it do.

        >>> def refuse(input):
        ...     input.handle((2026,))
        ...     raise ValueError("not yet")
        >>> def program(worker):
        ...     with worker.dataflow() as scope:
        ...         scope.to_stream([1]).sink(Pipeline(), refuse)
        >>> execute_directly(program)
        Traceback (most recent call last):
        ...
        timely.errors.OperatorError: operator 'sink' failed at time (2026,) on worker 0 of 1 (...): ValueError: not yet
        """
        self.time = time
        if self.ledger is not None:
            self.ledger.sender = self.dataflow.worker_index

    @property
    def sender(self) -> int:
        """The worker that what is handled comes from."""
        return self.dataflow.worker_index if self.ledger is None else self.ledger.sender

    @property
    def spreads(self) -> bool:
        """Whether messages may go to other workers."""
        return self.dataflow.peers > 1 and self.pact.name != Pipeline.name

    @property
    def frontier(self) -> Antichain:
        """The times that may still arrive here, from any worker. Asked for when the operator is built."""
        if not self.interest:
            raise BuildError(f"{self} was built without interest in its frontier")
        tracker, sources = self.dataflow.tracker, self._sources
        if len(sources) == 1 and sources[0][1] is None:
            return tracker.frontier(sources[0][0])
        fronts = [tracker.frontier(location) for location, _ in sources]
        if self._frontier is None or self._frontier[0] != fronts:
            self._frontier = fronts, Antichain(_images(fronts, sources))
        return self._frontier[1]

    def __str__(self) -> str:
        return f"input {self.operator.inputs.index(self)} of {self.operator}"

    def pusher(self) -> Push:
        """Return what puts a message on this channel (see `Consumer`)."""
        if self.operator.inline is not None:
            return self.operator.inline
        return self._push_spread if self.spreads else self._push_here

    def deliver(self, sender: int, time: Time, batch: Batch) -> None:
        """Queue a message already counted where it was sent."""
        if self.recorder is not None:
            self.recorder.queued(self.channel, sender)
        self.queue.append((time, batch))
        if self.ledger is not None:
            self.ledger.queue(sender, OVERHEAD + weight_of(batch))
        operator = self.operator
        if not operator.active:
            self.dataflow.activate(operator)

    def _push_here(self, time: Time, batch: Batch) -> None:
        dataflow = self.dataflow
        if self.recorder is not None:
            self.recorder.sent(self.channel, batch, dataflow.worker_index)
        dataflow.update(self.location, time, 1)
        self.deliver(dataflow.worker_index, time, batch)

    def _push_spread(self, time: Time, batch: Batch) -> None:
        dataflow, ledger = self.dataflow, self.ledger
        assert ledger is not None
        try:
            parts = self.pact.split(batch, dataflow.peers)
            if parts is None:
                self._push_here(time, batch)
                return
            for worker, part in parts:
                if worker == dataflow.worker_index:
                    self._push_here(time, part)
                else:
                    # What cannot be sent is not counted: a program may catch the error, and go on.
                    dataflow.send(worker, self.channel, time, part)
                    dataflow.update(self.location, time, 1)
                    ledger.send(worker, OVERHEAD + weight_of(part))
        except Exception as error:
            raise self.operator.failure(error, time) from error


def _images(fronts: list[Antichain], sources: list[tuple[int, PathSummary | None]]) -> list[Time]:
    """Return what results from the elements of the frontiers, each along its summary (None: as it is)."""
    times = []
    for front, (_, summary) in zip(fronts, sources):
        for time in front.elements:
            image = time if summary is None else summary.results_in(time)
            if image is not None:
                times.append(image)
    return times


class OutputPort:
    """One output of an operator: where its capabilities are counted and its messages leave.

    >>> def twice(input, output):
    ...     for capability, batch in input:
    ...         output.give(capability, batch)
    ...         output.give(capability, [record + 10 for record in batch])
    >>> example(lambda scope: scope.to_stream([1, 2]).unary(Pipeline(), twice))
    [1, 2, 11, 12]
    """

    __slots__ = (
        "dataflow",
        "index",
        "initial",
        "live",
        "location",
        "operator",
        "place",
        "recorder",
        "summaries",
        "tee",
    )

    def __init__(self, operator: Operator, index: int, tee: Tee, initial: bool) -> None:
        self.operator = operator
        self.dataflow: Dataflow = operator.dataflow
        self.index = index
        self.place = self.location = self.dataflow.add_place(operator.scope, self)
        self.tee = tee
        self.initial = initial
        self.live: set[Held] = set()
        self.recorder: Recorder | None = None
        self.summaries: dict[InputPort, PathSummary | None] = {}

    def __str__(self) -> str:
        return f"output {self.index} of {self.operator}"

    def give(self, capability: Capability | InputCapability | Any, batch: Batch) -> None:
        """Send a batch at the capability's time. An empty batch is not sent.

        Raises CapabilityError where the capability does not permit sending here.
        """
        if len(batch):
            self.tee.push(self.time_of(capability), batch)

    def time_of(self, capability: Capability | InputCapability | Any) -> Time:
        """Return the time at which `capability` permits sending here; refuse what does not, of whatever type."""
        if type(capability) is Capability:
            if capability.output is not self:
                raise CapabilityError(f"{capability!r} does not permit sending on {self}")
            return capability.time
        if type(capability) is not InputCapability:
            raise CapabilityError(
                f"{self} is given a batch with a capability, such as come with an input's messages or from retain(), "
                f"not with {capability!r:.80}"
            )
        if capability.input.operator is not self.operator:
            raise CapabilityError(f"a message of {capability.input} gives no right to send on {self}")
        if capability.activation != self.operator.activations:
            raise CapabilityError(
                f"the right of a message at {capability.time} ended with the activation of {self.operator} in which it "
                "came: retain() it there, and send with that"
            )
        summary = self.summaries.get(capability.input)
        if summary is None:
            if capability.input in self.summaries:
                return capability.time
            raise CapabilityError(f"{capability.input} was built without a path to {self}")
        time = summary.results_in(capability.time)
        if time is None:
            raise CapabilityError(f"nothing at {self} can result from time {capability.time}")
        return time

    # Called by Capability alone.

    def hold(self, held: Held, is_counted: bool) -> None:
        """Take on what a capability holds, which may be counted already."""
        if not is_counted:
            self.dataflow.update(self.location, held.time, 1)
        self.live.add(held)
        if self.recorder is not None:
            self.recorder.made(self.operator.index, self.index, held.time, held.origin)

    def move(self, held: Held, time: Time) -> None:
        update = self.dataflow.update
        update(self.location, time, 1)
        update(self.location, held.time, -1)
        before, held.time = held.time, time
        if self.recorder is not None:
            self.recorder.moved(self.operator.index, self.index, before, time)

    def release(self, held: Held) -> None:
        self.dataflow.update(self.location, held.time, -1)
        self.live.discard(held)
        if self.recorder is not None:
            self.recorder.dropped(self.operator.index, self.index, held.time)

    def forget(self, held: Held) -> None:
        """Have the worker drop what nobody holds any more. The garbage collector runs in any thread, at any moment."""
        if not self.dataflow.is_closed:
            self.dataflow.host.call(held.drop_forgotten)
