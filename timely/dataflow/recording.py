"""Record what happens in a dataflow, as far as somebody listens."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from timely.dataflow.counting import CountedDataflow, emitting
from timely.dataflow.dataflow import Dataflow
from timely.dataflow.recorder import CountingRecorder, Recorder
from timely.observe.events import (
    CAPABILITIES,
    INLINE,
    MESSAGES,
    PROGRESS,
    SCHEDULE,
    BatchEmitted,
    CapabilityMade,
    ChannelBuilt,
    DataflowBuilt,
    DataflowCompleted,
    FrontierChanged,
    InlineBuilt,
    OperatorBuilt,
)
from timely.observe.log import Log


def record(dataflow: Dataflow) -> None:
    """Log a dataflow that begins to run, until it is complete or dropped."""
    if not dataflow.is_logged:
        return
    log = dataflow.host.log
    recorded: frozenset[Any] = frozenset()
    counted: CountedDataflow | None = None

    def attach(log: Log) -> None:
        nonlocal recorded, counted
        is_counted = counted is not None
        if recorded == log.kinds and is_counted == log.is_counting:
            return  # a dataflow that begins while nobody listens is as it should be
        if counted is not None and not log.is_counting:
            counted.end()
            counted = None
        elif counted is None and log.is_counting:
            counted = CountedDataflow(dataflow)
        before, recorded = recorded, log.kinds
        _switch(dataflow, before, recorded, log.is_counting)

    def end() -> None:
        log.record(DataflowCompleted(log.now(), dataflow.worker_index, dataflow.index))
        forget()

    if log.kinds:
        for event in _descriptions(dataflow):
            log.record(event)
    forget = log.gauge(attach, lambda: _descriptions(dataflow))
    dataflow.when_complete(end)


def _switch(dataflow: Dataflow, before: frozenset[Any], kinds: frozenset[Any], is_counting: bool) -> None:
    """Record what happens in a dataflow if it is of these kinds, and nothing else.

    The parts concerned share one recorder. If messages were recorded `before`, it goes on with their senders.
    """
    channels = dataflow.channels
    sources: list[deque[int]] = []
    if not before.isdisjoint(MESSAGES):
        sources = next((port.recorder.sources for port in channels if port.recorder is not None), sources)
    elif not kinds.isdisjoint(MESSAGES):
        # One for each message: an operator takes a sender with each that it takes from the queue.
        sources = [deque([-1] * len(port.queue)) for port in channels]
    recorder = Recorder(dataflow.host.log, dataflow.worker_index, dataflow.index, sources)

    def wanted(*some: Any) -> Recorder | None:
        return None if kinds.isdisjoint(some) else recorder

    of_messages = wanted(*MESSAGES)
    if kinds != before:
        dataflow.recorder = wanted(*MESSAGES, *PROGRESS, FrontierChanged)
        of_runs, of_capabilities, of_inlines = wanted(*SCHEDULE), wanted(*CAPABILITIES), wanted(*INLINE)
        for operator in dataflow.operators:
            operator.recorder = of_runs
            for output in operator.outputs:
                output.recorder = of_capabilities
        for inline in dataflow.inlines:
            inline.recorder = of_inlines
    counts = dataflow.counts if is_counting else None
    for operator in dataflow.operators:
        for number, tee in enumerate(operator.tees):
            tee.observers = [] if counts is None else [emitting(operator.index, counts)]
            if BatchEmitted in kinds:
                tee.observers.append(recorder.emitting(operator.index, number))
    of_spread = of_messages
    if counts is not None:
        where = dataflow.host.log, dataflow.worker_index, dataflow.index
        of_spread = CountingRecorder(*where, sources, counts, of_messages is not None)
    for input in channels:
        input.recorder = of_spread if input.spreads else of_messages
    # Tees hold the functions that consumers gave them, which depend on recorders, observers and counters.
    dataflow.resolve_tees()


def _descriptions(dataflow: Dataflow) -> Iterator[Any]:
    """Yield records of what a dataflow consists of, and of the capabilities held in it."""
    now = dataflow.host.log.now()
    where = dataflow.worker_index, dataflow.index
    yield DataflowBuilt(now, *where, dataflow.name)
    for operator in dataflow.operators:
        if operator.inline is None:
            path, origin = operator.scope.path, str(operator.origin)
            yield OperatorBuilt(now, *where, operator.index, operator.name, path, origin)
    for inline in dataflow.inlines:
        yield InlineBuilt(now, *where, inline.index, inline.name, inline.scope.path, str(inline.origin))
    sources = dataflow.producers()
    for port in dataflow.channels:
        if port.operator.inline is None:
            receiver = port.operator.index, port.index
            yield ChannelBuilt(now, *where, port.channel, *receiver, port.pact.name, sources[port.channel])
    for operator in dataflow.operators:
        for output in operator.outputs:
            for held in output.live:
                yield CapabilityMade(now, *where, operator.index, output.index, held.time, str(held.origin))
