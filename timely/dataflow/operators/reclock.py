"""Let another stream decide when records come."""

from __future__ import annotations

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
    waiting: list[tuple[Time, Batch]] = []

    def logic(left: InputPort, right: InputPort, output: OutputPort, notificator: Notificator) -> None:
        waiting.extend(left.drain())
        for capability, _ in right.received():
            notificator.notify_at(capability)
        for now, due in notificator:
            assert due is not None
            for time, batch in waiting:
                if less_equal(time, now):
                    output.give_owned(due, batch)
            waiting[:] = [(time, batch) for time, batch in waiting if not less_equal(time, now)]
        if not right.frontier and not notificator:
            waiting.clear()

    return binary_notify(stream, clock, Pipeline(), Pipeline(), logic, name=name)
