"""Record what flows on a stream, so that it can be replayed."""

from __future__ import annotations

from typing import Any

from timely.arguments import refusal
from timely.capture.event import EventSink, Messages, Progress
from timely.data.container import for_other_worker
from timely.dataflow.builder import OperatorBuilder
from timely.dataflow.pact import Pipeline
from timely.dataflow.streams import S
from timely.order import Time
from timely.progress.antichain import Antichain


def capture_into(stream: S, sink: EventSink, *, name: str = "capture") -> S:
    """Return the stream itself; this worker's share of it, and its frontier, go to `sink` as events.

    Each worker needs a sink of its own. It is flushed after each activation and closed when the dataflow ends.

    >>> from timely.capture import EventQueue
    >>> queue = EventQueue()
    >>> _ = example(lambda scope: scope.to_stream(range(2)).capture_into(queue))
    >>> queue.next_nowait()
    Messages((0,), Columns(array([0, 1])))
    >>> queue.next_nowait()
    Progress((((0,), -1),))
    """
    check_sink(name, sink)
    before = Antichain([stream.scope.minimum])

    builder = OperatorBuilder(stream.scope, name)
    input = builder.add_input(stream, Pipeline(), frontier=True)

    def logic() -> None:
        nonlocal before
        # Messages first: progress that has passed their times would contradict them.
        for time, batch in input.drain():
            sink.push(Messages(time, for_other_worker(batch)))
        frontier = input.frontier
        if frontier != before:
            sink.push(Progress(difference(before, frontier)))
            before = frontier
        sink.flush()

    builder.build_from(logic)
    stream.scope.dataflow.when_complete(lambda: builder.operator.attempt(sink.close))
    return stream


def difference(before: Antichain, after: Antichain) -> tuple[tuple[Time, int], ...]:
    """Return the times that a frontier gains, each with 1, and then those that it loses, each with -1.

    >>> difference(Antichain([(0, 3), (1, 0)]), Antichain([(0, 3), (2, 0)]))
    (((2, 0), 1), ((1, 0), -1))
    """
    old, new = set(before), set(after)
    gained = [(time, 1) for time in after if time not in old]
    return (*gained, *[(time, -1) for time in before if time not in new])


def check_sink(name: str, sink: Any) -> None:
    """Raise BuildError unless events can be pushed into what is given to the operator `name`.

    >>> check_sink("capture", None)
    Traceback (most recent call last):
    ...
    timely.errors.BuildError: capture (at ...): `sink` must be what events are pushed into, such as ...
    """
    if not hasattr(sink, "push"):
        what = "what events are pushed into, such as EventFileWriter(path)"
        raise refusal(name, f"`sink` must be {what}, not {sink!r:.80}")
