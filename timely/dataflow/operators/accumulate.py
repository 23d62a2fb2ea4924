"""Fold everything of one time into one record."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from timely.container import Batch, of_columns
from timely.dataflow.notificator import Notificator
from timely.dataflow.operators.generic import unary_notify
from timely.dataflow.pact import Pipeline
from timely.dataflow.ports import InputPort, OutputPort
from timely.order import Time

if TYPE_CHECKING:
    from timely.dataflow.stream import Stream


def accumulate(stream: Stream, initial: Any, fold: Callable[..., Any], *, name: str = "accumulate") -> Stream:
    """Return, for each time and worker that has records, `fold` over all of them, when the time is complete.

    `fold(state, *columns)` returns the next state, from `initial` on, for each batch; for list batches it receives the
    list. The result is a list batch of one record.

    >>> example(lambda scope: scope.to_stream(range(5)).accumulate(0, lambda total, x: total + int(x.sum())))
    [10]
    """

    def over(state: Any, batch: Batch) -> Any:
        return fold(state, batch) if isinstance(batch, list) else fold(state, *of_columns(batch))

    return fold_batches(stream, initial, over, name)


def fold_batches(stream: Stream, initial: Any, fold: Callable[[Any, Batch], Any], name: str) -> Stream:
    """Return, for each time and worker, the fold over its batches, in a list."""
    states: dict[Time, Any] = {}

    def logic(input: InputPort, output: OutputPort, notificator: Notificator) -> None:
        for capability, batch in input:
            states[capability.time] = fold(states.get(capability.time, initial), batch)
            notificator.notify_at(capability)
        for time, due in notificator:
            assert due is not None
            output.give(due, [states.pop(time)])

    return unary_notify(stream, Pipeline(), logic, name=name)
