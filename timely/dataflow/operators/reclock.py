"""Let another stream decide when records are emitted."""

from __future__ import annotations

from heapq import heappop, heappush

from timely.data.container import Batch
from timely.dataflow.notificator import Notificator
from timely.dataflow.operators.generic import binary_notify
from timely.dataflow.pact import Pipeline
from timely.dataflow.ports import InputPort, OutputPort
from timely.dataflow.streams import S, check_streams
from timely.order import Time, less_equal


def reclock(stream: S, clock: S, *, name: str = "reclock") -> S:
    """Return the records of `stream`, each at the first time not before its own at which `clock` has a message.

    Of `clock` only the times matter, not the records, on each worker for itself. Records that no tick follows are
    never sent. They wait for one as long as the clock may still tick, at no matter how much later a time; when it has
    ended, and its last tick was answered, they are dropped.

    >>> example(lambda scope: scope.to_stream(range(2)).reclock(scope.to_stream(["tick"])))
    [0, 1]
    """
    check_streams(name, clock=clock)
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
            for time in _taken(times, now):
                for batch in waiting.pop(time):
                    output.give_owned(due, batch)
        if not right.frontier and not notificator:
            waiting.clear()
            times.clear()

    return binary_notify(stream, clock, Pipeline(), Pipeline(), logic, name=name)


def _taken(times: list[Time], now: Time) -> list[Time]:
    """Take the times at or before `now` from a heap, and return them."""
    taken: list[Time] = []
    others: list[Time] = []
    while times and times[0] <= now:  # in lexicographic order, in which all that are at or before `now` come first
        time = heappop(times)
        (taken if less_equal(time, now) else others).append(time)
    for time in others:
        heappush(times, time)
    return taken
