"""Let captured streams flow again, in another dataflow, program or number of workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from timely.arguments import refusal
from timely.capture.event import EventSource, Messages, Progress
from timely.dataflow.activator import Activator
from timely.dataflow.builder import OperatorBuilder
from timely.dataflow.capability import Capability
from timely.dataflow.capability_set import CapabilitySet
from timely.dataflow.ports import OutputPort
from timely.dataflow.streams import S, ScopeCore, check_scope
from timely.errors import CaptureError
from timely.order import Time
from timely.progress.antichain import Antichain, MutableAntichain

EVENTS_PER_RUN = 64
"""After this many events of each source, other operators run."""

POLL_SECONDS = 0.005
"""How long a worker leaves sources alone that had nothing new."""


def replay_into(scope: ScopeCore[S], sources: Sequence[EventSource], *, name: str = "replay") -> S:
    """Return the stream of what was captured, at the times at which it was, with the frontier that was recorded.

    `sources` are all that was captured, one for each capturing worker, and the same list on every worker, which takes
    its share of them. The frontier is the least of all sources'. Times must be those of `scope`. A source that ends
    before its stream was complete raises `CaptureError`, and so do one that goes on after that, such as files put
    together to one, and one whose frontier goes back.

    >>> from timely.capture import EventQueue
    >>> queues = [EventQueue(), EventQueue()]
    >>> def capture(worker):
    ...     with worker.dataflow() as scope:
    ...         scope.to_stream(np.array([worker.index])).capture_into(queues[worker.index])
    >>> _ = execute(capture, Config(workers=2))
    >>> sorted(example(lambda scope: replay_into(scope, queues)))
    [0, 1]
    """
    check_scope(name, scope)
    check_sources(name, sources)
    share = list(sources[scope.index :: scope.peers])
    builder = OperatorBuilder(scope, name)
    output, stream = builder.add_output(initial=True)
    waker = poller(builder)
    builder.build(lambda capabilities: Replay(share, output, capabilities[0], waker).run)
    for source in share:
        scope.dataflow.when_complete(partial(builder.operator.attempt, source.close))
    return stream


def check_sources(name: str, sources: Any) -> None:
    """Raise BuildError unless what is given to the operator `name` is a list of sources of events.

    >>> check_sources("replay", 3)
    Traceback (most recent call last):
    ...
    timely.errors.BuildError: replay (at ...): `sources` must be a list of sources, such as ...
    """
    if not isinstance(sources, (list, tuple)) or not all(hasattr(each, "next_nowait") for each in sources):
        what = "a list of sources, such as [EventFileReader(path)]"
        raise refusal(name, f"`sources` must be {what}, not {sources!r:.80}")


def poller(builder: OperatorBuilder[Any]) -> Callable[[bool], None]:
    """Return a function that activates the operator again, at once while there is more to read, else after a while."""
    activate = Activator(builder.operator)

    def again(busy: bool) -> None:
        if busy:
            activate()
        else:
            activate.activate_after(POLL_SECONDS)

    return again


class Replay:
    """Emits the messages of its sources, and holds capabilities for the times that these have not given up.

    Invariant: the times held are the minimal ones of all sources' multisets of times.
    """

    def __init__(
        self, sources: list[EventSource], output: OutputPort, capability: Capability, again: Callable[[bool], None]
    ) -> None:
        self._output = output
        self._again = again
        self._width = len(capability.time)
        self._open = [(source, MutableAntichain([(capability.time, 1)])) for source in sources]
        self._held = CapabilitySet.of(capability)

    def run(self) -> None:
        """Replay what there is now."""
        busy = False
        for source, times in self._open:
            busy = self._replay(source, times) or busy
        self._open = [(source, times) for source, times in self._open if times.frontier]
        # Last, for the messages above are sent at times that their source may have given up since.
        self._held.downgrade(Antichain(time for _, times in self._open for time in times.frontier))
        if self._open:
            self._again(busy)

    def _replay(self, source: EventSource, times: MutableAntichain) -> bool:
        """Return whether the source may have more right now."""
        for _ in range(EVENTS_PER_RUN):
            event = source.next_nowait()
            if event is None:
                # Asked after the event: a source that another thread fills is not exhausted while it has one.
                if source.exhausted:
                    raise CaptureError(
                        f"{source} ended before its stream was complete, at the frontier {times.frontier}: "
                        "its writer did not finish"
                    )
                return False
            if isinstance(event, Progress):
                self._move(source, event, times)
                if not times.frontier:
                    _end(source)
                    return False
            elif isinstance(event, Messages):
                self._send(source, event, times)
            else:
                raise CaptureError(f"{source} holds {event.kind!r}, not an event of a stream")
        return True

    def _move(self, source: EventSource, event: Progress, times: MutableAntichain) -> None:
        for time, _ in event.changes:
            self._check(source, time)
        before = times.frontier
        times.update_all(event.changes)
        for time, _ in event.changes:
            if times.count(time) < 0:
                raise CaptureError(f"{source} takes {time} away more often than it was there")
        if not before.dominates(Antichain([time for time, diff in event.changes if diff > 0])):
            raise CaptureError(f"{source} goes back from the frontier {before} to {times.frontier}")

    def _send(self, source: EventSource, event: Messages, times: MutableAntichain) -> None:
        self._check(source, event.time)
        if not times.frontier.less_equal(event.time):
            raise CaptureError(f"{source} has a message at {event.time}, before its frontier {times.frontier}")
        fits = getattr(event.batch, "is_in_advance_of", None)  # of batches that have times of their own
        if fits is not None and not fits(event.time):
            raise CaptureError(f"{source} has a batch at {event.time}, with updates at other times")
        with self._held.covering(event.time).delayed(event.time) as capability:
            self._output.give_owned(capability, event.batch)

    def _check(self, source: EventSource, time: Time) -> None:
        if len(time) != self._width:
            raise CaptureError(
                f"{source} has times of {len(time)} coordinate(s), such as {time!r:.80}; those here have "
                f"{self._width}: replay it in a dataflow with as many (dataflow(outer=...)) as the captured one"
            )


def _end(source: EventSource) -> None:
    """Close a source whose stream is complete; refuse one that goes on."""
    event = source.next_nowait()
    if event is not None:
        raise CaptureError(
            f"{source} holds more than one capture: {event!r:.80} follows the end of its stream; give each a source"
        )
    source.close()
