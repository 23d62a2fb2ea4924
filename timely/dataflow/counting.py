"""Count what operators do, for displays that look at a worker now and then, at a fraction of the cost of records.

A record of each activation and of each message costs about a microsecond. While a dataflow is counted, an activation
costs two readings of a clock, and a message an addition: what is called anyway is called through a function that counts
as well. So a dataflow that is not counted has no place that asks whether it is. Only the inputs that receive from other
workers count by their recorder, since several places put messages into their queues.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from typing import Any

from timely.data.container import Batch
from timely.dataflow.dataflow import Dataflow
from timely.dataflow.operator import Logic, Operator
from timely.dataflow.recorder import Counts
from timely.dataflow.tee import Push
from timely.order import Time


class CountedDataflow:
    """A dataflow that is counted, from now until `end`. Its tees must be resolved again after either."""

    def __init__(self, dataflow: Dataflow) -> None:
        self._dataflow = dataflow
        counts = dataflow.counts
        if counts is None:
            counts = Counts(len(dataflow.operators), len(dataflow.channels), len(dataflow.inlines))
            dataflow.counts = counts
        self._replaced: list[tuple[Operator, Logic, Logic]] = []
        self._time_activations()
        if len(self._replaced) < sum(operator.inline is None for operator in dataflow.operators):
            # The dataflow is about to start, which makes the logic of its operators first.
            dataflow.when_built(self._time_activations)
        for port in dataflow.channels:
            if not port.spreads:
                port.counter = _counter(port.channel, counts.received)
        for inline in dataflow.inlines:
            inline.counter = _inline_counter(inline.index, counts)

    def _time_activations(self) -> None:
        counts = self._dataflow.counts
        assert counts is not None
        for operator in self._dataflow.operators:
            if operator.logic is not None and operator.inline is None:
                logic = _timed(operator.logic, operator.index, counts.nanoseconds)
                self._replaced.append((operator, operator.logic, logic))
                operator.logic = logic

    def end(self) -> None:
        """Call everything as before."""
        for operator, before, logic in self._replaced:
            if operator.logic is logic:
                operator.logic = before
        for port in self._dataflow.channels:
            port.counter = None
        for inline in self._dataflow.inlines:
            inline.counter = None


def _timed(logic: Logic, operator: int, nanoseconds: list[int]) -> Logic:
    now = clock.perf_counter_ns

    def timed() -> None:
        begun = now()
        logic()
        nanoseconds[operator] += now() - begun

    return timed


def emitting(operator: int, counts: Counts) -> Push:
    """Return what counts the records of messages that leave an operator."""
    emitted = counts.emitted

    def emit(time: Time, batch: Batch) -> None:
        emitted[operator] += len(batch)

    return emit


def _counter(channel: int, received: list[int]) -> Callable[[Push], Push]:
    """Return what makes a function of messages count their records."""

    def counter(push: Push) -> Push:
        def counted(time: Time, batch: Batch) -> None:
            received[channel] += len(batch)
            push(time, batch)

        return counted

    return counter


def _inline_counter(inline: int, counts: Counts) -> Callable[[Any], Any]:
    received, sent = counts.inline_received, counts.inline_sent

    def counter(function: Callable[[Time, Batch], Any]) -> Callable[[Time, Batch], Any]:
        def counted(time: Time, batch: Batch) -> Any:
            made = function(time, batch)
            received[inline] += len(batch)
            if type(made) is list:
                sent[inline] += sum([len(piece) for _, piece in made if piece is not None])
            elif made[1] is not None:
                sent[inline] += len(made[1])
            return made

        return counted

    return counter
