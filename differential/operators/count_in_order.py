"""Count the records of each key, where times are totally ordered.

The operator computes a change of a count from the count that it last emitted and from nothing else (`kernels.count`).
So it does not read the input's trace, which is not kept unless another operator reads it.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from differential.arrangement.arrange import new_trace
from differential.arrangement.core import ArrangementCore, C
from differential.data.codes import ColumnKind, Encoder
from differential.data.interning import interner_of
from differential.data.negative import negative_total
from differential.data.overflow import naming, too_often
from differential.kernels.compile import NOTHING
from differential.kernels.consolidate import consolidate
from differential.kernels.count import Negative, count_block, count_changes
from differential.kernels.wide import Overflow
from differential.trace.batch import Batch
from differential.trace.columns import UpdateColumns
from differential.trace.description import Description
from differential.trace.handle import TraceHandle
from differential.trace.spine import Spine
from timely.lowlevel import InputPort, OperatorBuilder, OutputPort, Pipeline


def count_in_order(source: ArrangementCore[C], name: str, *, signed: bool) -> ArrangementCore[C]:
    """Return the arrangement of (key, number of records with that key), an error if negative and not `signed`."""
    scope = source.scope
    builder = OperatorBuilder(scope, name, static=True)
    input = builder.add_input(source.stream, Pipeline(), drains=True)
    output, stream = builder.add_output()
    value = Encoder(interner_of(scope.dataflow.host), "value", (ColumnKind.INT,))
    spine = new_trace(output, source.key, value)
    counter = CounterInOrder(input, output, spine, source.key, signed)
    builder.build_from(counter.run, naming(source.key))
    scope.dataflow.when_complete(counter.drop)
    return source.derived(stream, TraceHandle(spine), value)


class CounterInOrder:
    """The operator, where times are totally ordered.

    Invariant: at every time before its upper, the output's trace is the count of the input. Batches arrive in the order
    of their intervals, and each is final, so the operator answers it at once, by one batch.
    """

    def __init__(self, input: InputPort, output: OutputPort, spine: Spine, key: Encoder, signed: bool) -> None:
        self._input = input
        self._output = output
        self._spine = spine
        self._key = key
        self._is_signed = int(signed)
        self._written = TraceHandle(spine)

    def run(self) -> None:
        for time, message in self._input.drain():
            batch = cast(Batch, message)
            answer = self._answer(batch)
            if len(answer):
                self._output.answer(time, cast(Any, self._spine.insert(answer)))
            # Also without an answer: all batches to come are at times in advance of this one's upper.
            self._written.allow_compaction(batch.upper)

    def drop(self) -> None:
        """Stop reading."""
        self._written.drop()

    def _answer(self, batch: Batch) -> Batch:
        past = self._written.table(self._written.batches())
        times = batch.columns
        try:
            if batch.time_count == 1:
                block, rows = count_block((batch.columns.head,), past, self._is_signed)
                columns = UpdateColumns(rows, 1, batch.depth, block, None)
            else:
                together = consolidate(batch.keys, NOTHING, batch.time_index, batch.diffs, batch.times)
                times = UpdateColumns.of(together)
                keys, _, time_index, diffs, table = together
                keys, counts, time_index, diffs = count_changes(keys, time_index, diffs, past, self._is_signed)
                columns = UpdateColumns.of(consolidate(keys, counts, time_index, diffs, table))
        except (Negative, Overflow) as fault:
            if len(fault.args) < 3:
                raise  # from `consolidate`, which does not know the time
            key, total, time = fault.args
            record, where = self._key.decode(np.array([key], np.int64), 1), tuple(times.rows[4][time].tolist())
            if isinstance(fault, Overflow):
                raise too_often(record, where) from None
            raise negative_total(record, total, where) from None
        # From the upper of the trace on: in between, nothing was counted, or no count has changed.
        return Batch(columns, Description(self._spine.upper, batch.upper, self._spine.origin))
