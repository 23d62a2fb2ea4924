"""Make how often records occur a function of how often they did, where times are totally ordered.

How often a record occurred before a change is looked up in the input's trace, so what was said is not read, and not
kept unless somebody needs it by key.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from differential.arrangement import Arrangement
from differential.codes import Codes, Encoder
from differential.interning import interner_of
from differential.kernels.compile import NOTHING
from differential.kernels.count import record_changes
from differential.operators.arrange import Sealer, new_trace
from differential.operators.reduce import negative_count
from differential.trace.batch import Batch
from differential.trace.batcher import Batcher
from differential.trace.handle import TraceHandle
from differential.trace.parts import consolidated
from timely.dataflow.builder import OperatorBuilder
from timely.dataflow.pact import Pipeline
from timely.dataflow.ports import InputPort


def threshold_in_order(source: Arrangement, function: Callable[[Codes], Codes], name: str) -> Arrangement:
    """Return the arrangement in which a record that occurs n times, n > 0, occurs `function(n)` times."""
    scope = source.scope
    builder = OperatorBuilder(scope, name)
    input = builder.add_input(source.stream, Pipeline(), frontier=True, drains=True)
    output, stream = builder.add_output()
    spine = new_trace(scope)
    value = Encoder(interner_of(scope.dataflow.worker), "value")
    operator = ThresholdInOrder(input, source, Sealer(output, spine), function, value)
    builder.build(lambda _: operator.run)
    scope.dataflow.when_complete(operator.drop)
    return Arrangement(stream, TraceHandle(spine), source.key, value, source.keys)


class ThresholdInOrder:
    """The operator. Batches come in the order of their intervals, each is final, and is answered at once."""

    def __init__(
        self,
        input: InputPort,
        source: Arrangement,
        sealer: Sealer,
        function: Callable[[Codes], Codes],
        said: Encoder,
    ) -> None:
        self._input = input
        self._source = source.reader()
        self._key, self._value, self._said = source.key, source.value, said
        self._sealer = sealer
        self._function = function
        self._batcher = Batcher(self._source.depth)
        input.operator.waits = False

    def run(self) -> None:
        new: list[Batch] = []
        for time, message in self._input.drain():
            self._sealer.held.insert(time)
            new.append(cast(Batch, message))
        if new:
            upper = new[-1].upper
            self._answer(new, self._source.table(self._source.batches_through(upper)))
            self._sealer.seal(self._batcher, upper)
            self._source.set_logical_compaction(upper)
            self._source.set_physical_compaction(upper)

    def drop(self) -> None:
        """Stop reading."""
        self._source.drop()

    def _answer(self, new: list[Batch], through: Codes) -> None:
        if self._value.kinds is not None:
            self._said.adopt(self._value)
        rows = [(batch.keys, batch.vals, batch.time_index, batch.diffs, batch.times) for batch in new]
        keys, vals, time_index, diffs, times = rows[0] if len(rows) == 1 else consolidated(rows)
        before, after = record_changes(keys, vals, diffs, through)
        if len(after) and int(after.min()) < 0:
            row = int(after.argmin())
            time = times[time_index[row] if len(time_index) else 0]
            record = self._key.decode(keys[row : row + 1], 1) + self._value.decode(vals[row : row + 1], 1)
            raise negative_count(record, int(after[row]), tuple(time.tolist()))
        said = self._function(after) - self._function(before)
        kept = said != 0
        if kept.all():
            self._batcher.push(keys, vals, times, time_index, said)
        elif kept.any():
            kept_vals, kept_index = (column[kept] if len(column) else NOTHING for column in (vals, time_index))
            self._batcher.push(keys[kept], kept_vals, times, kept_index, said[kept])
