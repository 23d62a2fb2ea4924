"""Apply a function to how often each record occurs, where times are totally ordered.

The operator looks up in the input's trace how often a record occurred before a change. So it does not read its own
trace, which is not kept unless another operator reads it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from differential.arrangement.arrange import new_trace
from differential.arrangement.core import ArrangementCore, C
from differential.data.codes import Codes, Encoder
from differential.data.interning import interner_of
from differential.data.negative import negative_count
from differential.data.overflow import naming, too_often
from differential.kernels.count import Negative, distinct_block, record_changes
from differential.kernels.wide import Overflow
from differential.trace.batch import Batch
from differential.trace.columns import FEW, Rows, UpdateColumns
from differential.trace.description import Description
from differential.trace.handle import TraceHandle
from differential.trace.parts import consolidated
from differential.trace.spine import Spine
from timely.errors import DataError
from timely.lowlevel import InputPort, OperatorBuilder, OutputPort, Pipeline, Time


def threshold_in_order(
    source: ArrangementCore[C], function: Callable[[Codes], Codes] | None, name: str
) -> ArrangementCore[C]:
    """Return the arrangement in which a record that occurs n times, n > 0, occurs `function(n)` times.

    Without a function it occurs once.
    """
    scope = source.scope
    builder = OperatorBuilder(scope, name, static=True)
    input = builder.add_input(source.stream, Pipeline(), drains=True)
    output, stream = builder.add_output()
    value = Encoder(interner_of(scope.dataflow.host), "value")
    spine = new_trace(output, source.key, value)
    operator = ThresholdInOrder(input, source, output, spine, function, value)
    builder.build_from(operator.run, naming(source.key, source.value))
    scope.dataflow.when_complete(operator.drop)
    return source.derived(stream, TraceHandle(spine), value)


class ThresholdInOrder:
    """The operator. Batches come in the order of their intervals, each final; those that wait are answered by one."""

    def __init__(
        self,
        input: InputPort,
        source: ArrangementCore[C],
        output: OutputPort,
        spine: Spine,
        function: Callable[[Codes], Codes] | None,
        result: Encoder,
    ) -> None:
        self._input = input
        self._source = source.reader()
        self._key, self._value, self._result = source.key, source.value, result
        self._output = output
        self._spine = spine
        self._function = function

    def run(self) -> None:
        arrived = list(self._input.drain())
        if arrived:
            new = [cast(Batch, message) for _, message in arrived]
            upper = new[-1].upper
            answer = self._answer(new, self._source.table(self._source.batches_through(upper)))
            if len(answer):
                # The first message has the least time, so it permits the times of all.
                self._output.answer(arrived[0][0], cast(Any, self._spine.insert(answer)))
            self._source.allow_compaction(upper)

    def drop(self) -> None:
        """Stop reading."""
        self._source.drop()

    def _answer(self, new: list[Batch], through: Codes) -> Batch:
        if self._value.kinds is not None:
            self._result.adopt(self._value)
        description = Description(self._spine.upper, new[-1].upper, self._spine.origin)
        first = new[0].columns
        if self._function is None and len(new) == 1 and first.time_count == 1 and len(first) <= FEW:
            try:
                block, count = distinct_block((first.head,), through)
            except Negative as fault:
                _, occurrences, row = fault.args
                raise self._negative(first.rows, int(row), int(occurrences)) from None
            except Overflow as fault:
                raise too_often(*self._occurrence(first.rows, fault.args[2])) from None
            return Batch(UpdateColumns(count, 1, first.depth, block, None), description)
        parts = [batch.columns.rows for batch in new]
        rows = parts[0] if len(parts) == 1 else consolidated(parts)
        keys, vals, time_index, diffs, times = rows
        try:
            before, after = record_changes(keys, vals, diffs, through)
        except Overflow as fault:
            raise too_often(*self._occurrence(rows, fault.args[2])) from None
        if len(after) and int(after.min()) < 0:
            raise self._negative(rows, int(after.argmin()), int(after.min()))
        if self._function is None:
            change = (after != 0).astype(np.int64) - (before != 0)
        else:
            new_count, old_count = self._function(after), self._function(before)
            change = new_count - old_count
            # A difference wraps around exactly if its terms differ in sign, and it differs in sign from the first.
            wide = np.flatnonzero(((new_count ^ old_count) & (new_count ^ change)) < 0)
            if len(wide):
                raise too_often(*self._occurrence(rows, int(wide[0])))
        return Batch.build(keys, vals, time_index, change, times, description)

    def _negative(self, rows: Rows, row: int, occurrences: int) -> DataError:
        """Return the error for the record of a row, which occurs a negative number of times."""
        record, time = self._occurrence(rows, row)
        return negative_count(record, occurrences, time)

    def _occurrence(self, rows: Rows, row: int) -> tuple[tuple[NDArray[Any], ...], Time]:
        """Return the record of a row, and its time."""
        keys, vals, time_index, _, times = rows
        time = times[time_index[row] if len(time_index) else 0]
        record = self._key.decode(keys[row : row + 1], 1) + self._value.decode(vals[row : row + 1], 1)
        return record, tuple(time.tolist())
