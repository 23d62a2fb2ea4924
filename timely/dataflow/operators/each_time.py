"""Fold all batches of a time once the time is complete: the construct in which aggregations are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from timely.data.container import Batch, Columns, concatenate, of_columns
from timely.dataflow.notificator import Notificator
from timely.dataflow.operators.generic import unary_notify
from timely.dataflow.pact import Pact
from timely.dataflow.ports import InputPort, OutputPort
from timely.dataflow.streams import S
from timely.order import Time

State = TypeVar("State")


def fold_each_time(
    stream: S,
    pact: Pact,
    begin: Callable[[], State],
    include: Callable[[State, Batch], State],
    conclude: Callable[[State], Batch],
    *,
    name: str,
) -> S:
    """Return, for each time and worker with batches, `conclude(state)` after `include(state, batch)` of each of them.

    >>> from timely.dataflow.pact import Pipeline
    >>> def include(total, batch):
    ...     return total + sum(batch)
    >>> example(lambda scope: fold_each_time(
    ...     scope.to_stream([1, 2]), Pipeline(), int, include, lambda total: [total], name="sum"))
    [3]
    """
    states: dict[Time, State] = {}

    def logic(input: InputPort, output: OutputPort, notificator: Notificator) -> None:
        for capability, batch in input:
            time = capability.time
            states[time] = include(states[time] if time in states else begin(), batch)
            notificator.notify_at(capability)
        for time, due in notificator:
            assert due is not None
            output.give(due, conclude(states.pop(time)))

    return unary_notify(stream, pact, logic, name=name)


def map_each_time(stream: S, pact: Pact, function: Callable[[Columns], Batch], *, name: str) -> S:
    """Return, for each time and worker with records, `function` of all of them as one batch of columns.

    >>> from timely.dataflow.pact import Pipeline
    >>> example(lambda scope: map_each_time(
    ...     scope.to_stream(np.arange(4)), Pipeline(), lambda batch: [batch.columns[0].sum().item()], name="sum"))
    [6]
    """

    def include(batches: list[Columns], batch: Batch) -> list[Columns]:
        batches.append(Columns.of_equals(of_columns(batch)))
        return batches

    empty: Callable[[], list[Columns]] = list
    return fold_each_time(stream, pact, empty, include, lambda batches: function(concatenate(batches)), name=name)
