"""The inputs and outputs of operators, at run time.

A port is a location of the progress tracker. Everything that happens at it changes counts there, and all changes made
in one scheduling step reach the tracker together:

- a message sent on a channel counts +1 at the receiving input, on whichever worker that is; taking it from the queue
  counts -1;
- a capability counts +1 at its output while it is held.

In a region this holds for the region's own counts, and the tracker counts what the region holds in all. A message from
another worker counts with the tracker until the region has run.

Invariant: the worker's own part of the count at a location is the number of capabilities held there plus the number of
messages queued at inputs that are counted there.

A port's `place` is its number in the plan; its `location`, once the dataflow is built, is where the tracker counts it.
For an input that can be the location of the operator's output (`timely.dataflow.compose`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from timely.data.container import Batch, Columns, as_read_only, for_other_worker, frozen
from timely.data.weight import weight_of
from timely.dataflow.alike import joined, leading_alike, order_by_time
from timely.dataflow.capability import Capability, Holder, Update, not_built
from timely.dataflow.input_capability import InputCapability, Port
from timely.dataflow.operator_core import OperatorCore
from timely.dataflow.outstanding import Ledger
from timely.dataflow.pact import Pact, Pipeline, as_worker, checked_once
from timely.dataflow.plan import Inlet, PlannedOutput
from timely.dataflow.recorder import Recorder
from timely.dataflow.tee import Push, Tee
from timely.errors import BuildError, CapabilityError
from timely.order import Time
from timely.progress.antichain import CLOSED, Antichain
from timely.progress.summary import PathSummary, images

OVERHEAD = 512
"""About how many bytes a message takes besides its columns."""


class InputPort(Port):
    """One input of an operator: a queue of messages and, if the operator asks for it, a frontier.

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
        "channel",
        "counter",
        "dataflow",
        "drains",
        "index",
        "inlet",
        "interest",
        "ledger",
        "location",
        "pact",
        "place",
        "queue",
        "recorder",
        "sources",
        "spreads",
        "time",
        "update",
    )

    def __init__(self, operator: OperatorCore, index: int, pact: Pact, interest: bool, drains: bool) -> None:
        super().__init__(operator)
        self.index = index
        self.dataflow = operator.dataflow
        self.pact = pact
        self.interest = interest
        self.drains = drains
        self.spreads = self.dataflow.peers > 1 and pact.name != Pipeline.name
        """Whether messages may go to other workers."""
        self.place = self.location = self.dataflow.add_place(operator.scope, self)
        self.inlet = Inlet(self.place, pact.name, self.spreads, interest, drains)
        operator.node.inlets.append(self.inlet)
        self.channel = self.dataflow.add_channel(self)
        self.queue: deque[tuple[Time, Batch]] = deque()
        self.ledger: Ledger | None = None
        """Counts what is outstanding on the channel; None where messages never wait longer than a step."""
        self.time: Time | None = None
        self.recorder: Recorder | None = None
        self.counter: Callable[[Push], Push] | None = None
        """While messages are counted: what makes a function of messages count them."""
        self.update: Update = not_built
        self.sources: list[tuple[int, PathSummary | None]] = []
        """The locations from whose frontiers the frontier here follows, each with a summary, if any."""
        self._frontier: tuple[list[Antichain], Antichain] | None = None

    def locate(self, location: int, update: Update, sources: list[tuple[int, PathSummary | None]]) -> None:
        """Count messages at `location`; take the frontier from other locations, each along its summary, if any.

        In a region, the frontier is that of the scope: once the region is at rest it is empty if those of the `sources`
        are, where there are some.
        """
        self.location = location
        self.update = update
        self.sources = sources or ([] if self.operator.progress is not None else [(location, None)])

    def __iter__(self) -> Iterator[tuple[InputCapability, Batch]]:
        """Take the queued messages; each comes with the right to send at its time."""
        for time, batch in self.drain():
            yield InputCapability(self, time, self.operator.activations), as_read_only(batch)

    def received(self) -> Iterator[tuple[InputCapability, Batch]]:
        """Take the queued messages as they are: for operators of these packages, which write to none of them."""
        for time, batch in self.drain():
            yield InputCapability(self, time, self.operator.activations), batch

    def drain(self) -> Iterator[tuple[Time, Batch]]:
        """Take the queued messages with their bare times; those of one time may become one batch (see `alike`).

        What the operator itself sends round a loop meanwhile is left for its next activation, so that each ends; and so
        is what would become messages that nobody has room for, unless the operator `drains`.
        """
        queue = self.queue
        ledger = self.ledger
        if self.recorder is not None:
            self.recorder.draining(self.channel, len(queue))
        if self.spreads and len(queue) > 1 and (order := order_by_time(queue)):
            self._sort(order)
        over = None if self.drains or ledger is None else self.dataflow.outstanding.over
        left = len(queue)
        while queue and left:
            if over and self.dataflow.schedule.holds_back(self.operator):
                return
            alike = 1
            if left > 1 and self.spreads and ledger is not None:
                alike = leading_alike(queue, ledger.sizes(), left, self.dataflow.outstanding.joined(self.drains))
            left -= alike
            if alike == 1:
                yield self._take()
            else:
                taken = [self._take() for _ in range(alike)]
                yield taken[0][0], joined([batch for _, batch in taken])

    def take_only(self) -> tuple[Time, Batch] | None:
        """Take the queued message with its bare time if there is exactly one, and None otherwise.

        For operators that drain their input, and for which one message is cheaper to answer than many.
        """
        if len(self.queue) != 1:
            return None
        if self.recorder is not None:
            self.recorder.draining(self.channel, 1)
        return self._take()

    def _sort(self, order: list[int]) -> None:
        messages = list(self.queue)
        self.queue.clear()
        self.queue.extend([messages[place] for place in order])
        if self.ledger is not None:
            self.ledger.sort(order)
        if self.recorder is not None:
            self.recorder.sort(self.channel, order)

    def _take(self) -> tuple[Time, Batch]:
        time, batch = self.queue.popleft()
        if self.ledger is not None:
            self.ledger.take()
        self.time = time
        self.update(self.location, time, -1)
        if self.recorder is not None:
            self.recorder.received(self.channel, batch)
        return time, batch

    def handle(self, time: Time) -> None:
        """Let an error of this activation name `time`, at which the operator acts without a message.

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
    def frontier(self) -> Antichain:
        """The times that may still arrive here, from any worker. Asked for when the operator is built."""
        if not self.interest:
            raise BuildError(f"{self} was built without interest in its frontier")
        tracker, sources = self.dataflow.tracker, self.sources
        operator = self.operator
        if operator.progress is not None:
            # At rest, only what comes in from the sources could result in anything here.
            if sources and operator.progress.is_at_rest and not any(tracker.frontier(each) for each, _ in sources):
                return CLOSED
            return operator.progress.frontier(operator.turn)
        if len(sources) == 1 and sources[0][1] is None:
            return tracker.frontier(sources[0][0])
        fronts = [tracker.frontier(location) for location, _ in sources]
        if self._frontier is None or self._frontier[0] != fronts:
            paths = [summary for _, summary in sources]
            arriving = [f.elements if path is None else images(f.elements, path) for f, path in zip(fronts, paths)]
            self._frontier = fronts, Antichain([time for times in arriving for time in times])
        return self._frontier[1]

    def __str__(self) -> str:
        return f"input {self.index} of {self.operator}"

    def __repr__(self) -> str:
        return f"<{self}>"

    def pusher(self) -> Push:
        """Return what puts a message on this channel (see `Consumer`)."""
        push = self.operator.inline
        if push is None:
            push = self._push_spread if self.spreads else checked_once(self._push_here, self.pact, self.operator)
        return push if self.counter is None else self.counter(push)

    def deliver(self, sender: int, time: Time, batch: Batch) -> None:
        """Queue a message already counted where it was sent."""
        if self.recorder is not None:
            self.recorder.queued(self.channel, sender)
        self.queue.append((time, batch))
        if self.ledger is not None:
            self.ledger.queue(sender, OVERHEAD + weight_of(batch))
        operator = self.operator
        if not operator.active:
            self.dataflow.schedule.activate(operator)

    def arrive(self, sender: int, time: Time, batch: Batch) -> None:
        """Queue a message of another worker, which the tracker counts until it is taken, or until a region has run."""
        if self.operator.progress is not None:
            self.operator.progress.arrived.append(time)
        self.deliver(sender, time, batch)

    def _push_here(self, time: Time, batch: Batch) -> None:
        dataflow = self.dataflow
        if self.recorder is not None:
            self.recorder.sent(self.channel, batch, dataflow.worker_index)
        dataflow.emitted += 1
        self.update(self.location, time, 1)
        self.deliver(dataflow.worker_index, time, batch)

    def _push_spread(self, time: Time, batch: Batch) -> None:
        dataflow, ledger = self.dataflow, self.ledger
        assert ledger is not None
        own: list[Batch] = []
        try:
            # A program's pact may name workers by anything, which compiled code would refuse by itself.
            parts: Iterator[tuple[Any, Batch]] | None = self.pact.split(batch, dataflow.peers)
            for number, part in ((dataflow.worker_index, batch),) if parts is None else parts:
                worker = as_worker(number, dataflow.peers, self.pact.name)
                if worker == dataflow.worker_index:
                    own.append(part)
                    continue
                # Sent before it is counted: if it cannot be sent, a program may catch the error and go on.
                dataflow.send(worker, self.channel, time, part := for_other_worker(part))
                dataflow.emitted += 1
                dataflow.update(self.location, time, 1)
                ledger.send(worker, OVERHEAD + weight_of(part))
            for part in own:  # last, so that nothing of a batch that cannot be sent is here
                self._push_here(time, part)
        except Exception as error:
            raise self.operator.failure(error, time) from error


class OutputPort(Holder):
    """One output of an operator: where its capabilities are counted and its messages leave.

    >>> def twice(input, output):
    ...     for capability, batch in input:
    ...         output.give(capability, batch)
    ...         output.give(capability, [record + 10 for record in batch])
    >>> example(lambda scope: scope.to_stream([1, 2]).unary(Pipeline(), twice))
    [1, 2, 11, 12]
    """

    def __init__(self, operator: OperatorCore, index: int, tee: Tee, initial: bool) -> None:
        super().__init__(operator.dataflow, operator.index, index, operator.origin)
        self.operator = operator
        self.place = self.location = self.dataflow.add_place(operator.scope, self)
        self.outlet = PlannedOutput(self.place)
        operator.node.outlets.append(self.outlet)
        self.tee = tee
        self.initial = initial
        self.summaries: dict[Port, PathSummary | None] = {}

    def __str__(self) -> str:
        return f"output {self.index} of {self.operator}"

    def __repr__(self) -> str:
        return f"<{self}>"

    def give(self, capability: Capability | InputCapability | Any, batch: Batch) -> None:
        """Send a batch, unless it is empty, at the capability's time.

        A list is copied, so the operator may use it again. Columns become read-only, or copies if they are views.
        Raises CapabilityError if sending is not allowed, and DataError where it is not a batch.
        """
        kind = type(batch)
        is_own = kind is not Columns and hasattr(kind, "kind")  # a layer may emit batches of a class of its own
        self.give_owned(capability, batch if is_own else frozen(batch))

    def give_owned(self, capability: Capability | InputCapability | Any, batch: Batch) -> None:
        """Send a batch that nobody writes to any more, as `give` does."""
        if len(batch):
            time, dataflow = self.time_of(capability), self.dataflow
            if dataflow.is_closed and dataflow.running is None:  # else one of its operators has just dropped it
                raise CapabilityError(f"{self} takes no more data: its dataflow was dropped, or is complete")
            self.tee.push(time, batch)

    def answer(self, time: Time, batch: Batch) -> None:
        """Send a batch that is not empty at the time of a message that was taken in this activation.

        For operators of these packages that answer a message at its own time: the message is the right to do so.
        """
        self.tee.push(time, batch)

    def time_of(self, capability: Any) -> Time:
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
        if summary is None:  # times stay as they are, or there is no path
            if capability.input in self.summaries:
                return capability.time
            raise CapabilityError(f"{capability.input} was built without a path to {self}")
        time = summary.results_in(capability.time)
        if time is None:
            raise CapabilityError(f"nothing at {self} can result from time {capability.time}")
        return time

    def connect(self, input: InputPort, summary: PathSummary | None) -> None:
        """State what can result here from a message at `input`: the summary of its time, or None for its time."""
        self.summaries[input] = summary
        self.outlet.summaries[input.inlet] = summary
        identity = PathSummary.identity(self.operator.scope.width)
        self.dataflow.plan.add_edge(input.place, self.place, identity if summary is None else summary)
