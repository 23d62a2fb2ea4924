"""What makes the records of one dataflow while somebody listens.

Each part of a dataflow has a `recorder`, None while nobody wants to know what that part does: so a dataflow that nobody
listens to pays for comparisons with None (`timely.dataflow.recording` gives and takes recorders). A part reports what
happens as plain numbers, times and batches.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from timely.data.container import Batch
from timely.data.weight import weight_of
from timely.dataflow.tee import Push
from timely.observe.events import (
    BatchEmitted,
    CapabilityDropped,
    CapabilityMade,
    CapabilityMoved,
    FrontierChanged,
    InlineRan,
    MessageReceived,
    MessageSent,
    ProgressReceived,
    ProgressSent,
    ScheduleStarted,
    ScheduleStopped,
)
from timely.observe.log import Log
from timely.order import Changes, Time
from timely.origin import Origin
from timely.progress.reachability import Tracker


class Recorder:
    """Makes the records of one dataflow.

    `sources` are, for each channel, the workers that sent the messages in its queue; -1 for messages that were queued
    before anybody listened.
    """

    __slots__ = ("_log", "_where", "sources")

    def __init__(self, log: Log, worker: int, dataflow: int, sources: Iterable[deque[int]]) -> None:
        self._log = log
        self._where = worker, dataflow
        self.sources = list(sources)

    # Operators

    def run(self, operator: int, run: Callable[[], object]) -> None:
        """Activate an operator, and record that."""
        log = self._log
        begun = log.now()
        log.record(ScheduleStarted(begun, *self._where, operator))
        try:
            run()
        finally:
            ended = log.now()
            log.record(ScheduleStopped(ended, *self._where, operator, ended - begun))

    def measured(self, inline: int, function: Callable[[Time, Batch], Any]) -> Callable[[Time, Batch], Any]:
        """Return a function that records what one that runs in line emits, and how long that takes."""
        log = self._log

        def measured(time: Time, batch: Batch) -> Any:
            begun = log.now()
            made = function(time, batch)
            ended = log.now()
            pieces = made if isinstance(made, list) else [made]
            records = sum([len(piece) for _, piece in pieces if piece is not None])
            log.record(InlineRan(ended, *self._where, inline, len(batch), records, ended - begun))
            return made

        return measured

    # Messages

    def emitting(self, operator: int, output: int) -> Push:
        """Return a function of messages that records that they leave an operator."""
        log = self._log

        def emit(time: Time, batch: Batch) -> None:
            log.record(BatchEmitted(log.now(), *self._where, operator, output, len(batch), weight_of(batch)))

        return emit

    def sent(self, channel: int, batch: Batch, target: int) -> None:
        """Record that a batch was sent on a channel."""
        self._log.record(MessageSent(self._log.now(), *self._where, channel, len(batch), weight_of(batch), target))

    def queued(self, channel: int, sender: int) -> None:
        """Note the sender of a message that is queued at an input."""
        self.sources[channel].append(sender)

    def draining(self, channel: int, queued: int) -> None:
        """Note how many messages are queued at an input when an operator begins to take them."""
        sources = self.sources[channel]
        while len(sources) > queued:
            sources.popleft()  # taken by an activation that had begun before anybody listened

    def sort(self, channel: int, order: list[int]) -> None:
        """Note that the queue of an input has another order (see `Ledger.sort`)."""
        sources = list(self.sources[channel])
        if len(sources) == len(order):
            self.sources[channel] = deque([sources[place] for place in order])

    def received(self, channel: int, batch: Batch) -> None:
        """Record that an operator received a message."""
        sources = self.sources[channel]
        source = sources.popleft() if sources else -1
        self._log.record(MessageReceived(self._log.now(), *self._where, channel, len(batch), weight_of(batch), source))

    # Capabilities, at an output of an operator

    def made(self, operator: int, output: int, time: Time, origin: Origin) -> None:
        """Record that a capability is held from now on."""
        if CapabilityMade in self._log.kinds:
            self._log.record(CapabilityMade(self._log.now(), *self._where, operator, output, time, str(origin)))

    def moved(self, operator: int, output: int, before: Time, time: Time) -> None:
        """Record that a capability was downgraded."""
        self._log.record(CapabilityMoved(self._log.now(), *self._where, operator, output, before, time))

    def dropped(self, operator: int, output: int, time: Time) -> None:
        """Record that a capability was released."""
        self._log.record(CapabilityDropped(self._log.now(), *self._where, operator, output, time))

    # Progress

    def sent_progress(self, changes: Changes, nbytes: int) -> None:
        """Record that changes were sent to other workers, and how many bytes they took on the wire."""
        self._log.record(ProgressSent(self._log.now(), *self._where, changes, nbytes))

    def received_progress(self, changes: Changes, sender: int) -> None:
        """Record that a peer's changes arrived."""
        self._log.record(ProgressReceived(self._log.now(), *self._where, changes, sender))

    def frontiers_moved(self, locations: list[int], tracker: Tracker, describe: Callable[[int], str]) -> None:
        """Record the new frontiers at these locations."""
        log = self._log
        if FrontierChanged in log.kinds:
            now = log.now()
            for location in locations:
                frontier = tracker.frontier(location).elements
                log.record(FrontierChanged(now, *self._where, location, describe(location), frontier))


class Counts:
    """What the operators of one dataflow have done on one worker while they were counted (`timely.dataflow.counting`).

    These numbers only grow. The worker's own thread adds to them, and any thread may read them.
    """

    def __init__(self, operators: int, channels: int, inlines: int) -> None:
        self.nanoseconds = [0] * operators
        """The time inside of activations, with that of what runs in line."""
        self.emitted = [0] * operators
        """Records that have left each operator, whatever receives them."""
        self.received = [0] * channels
        """Records of each channel that this worker's operator has received."""
        self.inline_received = [0] * inlines
        self.inline_sent = [0] * inlines


class CountingRecorder(Recorder):
    """Counts what an input receives; and makes records, too, if `is_recording`."""

    __slots__ = ("_is_recording", "_received")

    def __init__(
        self, log: Log, worker: int, dataflow: int, sources: Iterable[deque[int]], counts: Counts, is_recording: bool
    ) -> None:
        super().__init__(log, worker, dataflow, sources)
        self._received = counts.received
        self._is_recording = is_recording

    def sent(self, channel: int, batch: Batch, target: int) -> None:
        if self._is_recording:
            super().sent(channel, batch, target)

    def queued(self, channel: int, sender: int) -> None:
        if self._is_recording:
            super().queued(channel, sender)

    def draining(self, channel: int, queued: int) -> None:
        if self._is_recording:
            super().draining(channel, queued)

    def received(self, channel: int, batch: Batch) -> None:
        self._received[channel] += len(batch)
        if self._is_recording:
            super().received(channel, batch)
