"""Let another stream decide when records are emitted."""

from __future__ import annotations

from heapq import heappop, heappush

from timely.arguments import refusal
from timely.data.container import Batch
from timely.dataflow.notificator import Notificator
from timely.dataflow.operators.generic import binary_notify
from timely.dataflow.pact import Pipeline
from timely.dataflow.ports import InputPort, OutputPort
from timely.dataflow.streams import S, check_streams
from timely.order import Time


def reclock(stream: S, clock: S, *, name: str = "reclock") -> S:
    """Return the records of `stream`, each at the first time not before its own at which `clock` has a message.

    Of `clock` only the times matter, not the records, on each worker for itself. Records that no tick follows are
    never sent. They wait for one as long as the clock may still tick, at no matter how much later a time; when it has
    ended, and its last tick was answered, they are dropped.

    Raises BuildError in a scope whose times have more than one coordinate: of two ticks after a record, neither may be
    the first there.

    >>> example(lambda scope: scope.to_stream(range(2)).reclock(scope.to_stream(["tick"])))
    [0, 1]
    """
    check_streams(name, clock=clock)
    scope = stream.scope
    if scope.width != 1:
        raise refusal(
            name,
            f"times of {scope} have {scope.width} coordinates, so of two ticks after a "
            "record neither may be the first: use it in an outermost scope with one coordinate",
        )
    waiting: dict[Time, list[Batch]] = {}
    times: list[Time] = []  # those of `waiting`, as a heap

    def logic(left: InputPort, right: InputPort, output: OutputPort, notificator: Notificator) -> None:
        for time, batch in left.drain():
            if time not in waiting:
                heappush(times, time)
            waiting.setdefault(time, []).append(batch)
        for capability, _ in right.received():
            notificator.notify_at(capability)
        for now, due in notificator:
            assert due is not None
            while times and times[0] <= now:
                for batch in waiting.pop(heappop(times)):
                    output.give_owned(due, batch)
        # The clock has ended, and its last tick is answered: what waits can never be sent.
        if not right.frontier and not notificator:
            waiting.clear()
            times.clear()

    return binary_notify(stream, clock, Pipeline(), Pipeline(), logic, name=name)
