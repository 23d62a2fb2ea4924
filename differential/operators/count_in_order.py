"""Count the records of each key, where times are totally ordered.

A change is answered from what was said last and nothing else (`kernels.count`): the input's trace is not read, and if
nobody else does, not kept.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from differential.arrangement.arrange import new_trace
from differential.arrangement.core import ArrangementCore, C
from differential.data.codes import Encoder, Kind
from differential.data.interning import interner_of
from differential.data.negative import negative_total
from differential.data.overflow import refusing
from differential.kernels.compile import NOTHING
from differential.kernels.consolidate import consolidate
from differential.kernels.count import Negative, count_changes
from differential.trace.batch import Batch
from differential.trace.description import Description
from differential.trace.handle import TraceHandle
from differential.trace.spine import Spine
from timely.dataflow.builder import OperatorBuilder
from timely.dataflow.operator import InputPort, OutputPort
from timely.dataflow.pact import Pipeline


def count_in_order(source: ArrangementCore[C], name: str, *, signed: bool) -> ArrangementCore[C]:
    """Return the arrangement of (key, number of records with that key), an error if negative and not `signed`."""
    scope = source.scope
    builder = OperatorBuilder(scope, name)
    input = builder.add_input(source.stream, Pipeline(), drains=True)
    output, stream = builder.add_output()
    value = Encoder(interner_of(scope.dataflow.host), "value", (Kind.INT,))
    spine = new_trace(output, source.key, value)
    counter = CounterInOrder(input, output, spine, source.key, signed)
    builder.build(lambda _: refusing(counter.run, source.key))
    scope.dataflow.when_complete(counter.drop)
    return source.derived(stream, TraceHandle(spine), value)


class CounterInOrder:
    """The operator, where times are totally ordered.

    Invariant: the output's trace is, at every time before its upper, the count of the input. Batches come in the order
    of their intervals, each is final, and is answered at once, by a batch.
    """

    def __init__(self, input: InputPort, output: OutputPort, spine: Spine, key: Encoder, signed: bool) -> None:
        self._input = input
        self._output = output
        self._spine = spine
        self._key = key
        self._is_signed = int(signed)
        self._said = TraceHandle(spine)

    def run(self) -> None:
        for capability, message in self._input:
            batch = cast(Batch, message)
            answer = self._answer(batch)
            if len(answer):
                self._output.give(capability, cast(Any, self._spine.insert(answer)))
            self._said.set_logical_compaction(batch.upper)
            self._said.set_physical_compaction(batch.upper)

    def drop(self) -> None:
        """Stop reading."""
        self._said.drop()

    def _answer(self, batch: Batch) -> Batch:
        keys, time_index, diffs, times = batch.keys, batch.time_index, batch.diffs, batch.times
        if len(times) > 1:
            keys, _, time_index, diffs, times = consolidate(keys, NOTHING, time_index, diffs, times)
        past = self._said.table(self._said.batches())
        try:
            keys, counts, time_index, diffs = count_changes(keys, time_index, diffs, past, self._is_signed)
        except Negative as fault:
            key, total, time = fault.args
            where = tuple(times[time].tolist())
            raise negative_total(self._key.decode(np.array([key], np.int64), 1), total, where) from None
        make = Batch.build if len(times) > 1 else Batch  # at one time they come as they are to be
        description = Description(self._spine.upper, batch.upper, self._spine.origin)
        return make(keys, counts, time_index, diffs, times, description)
