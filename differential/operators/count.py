"""Count the records of each key.

Where times are totally ordered a change is answered from what was said last and nothing else (`kernels.count`): the
input's trace is not read, and if nobody else does, not kept. In loops, and where the outermost times have several
coordinates, counting is a reduction like others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from differential.arrangement import Arrangement
from differential.codes import Encoder, Kind
from differential.interning import interner_of
from differential.kernels import reduce as kernels
from differential.kernels.compile import NOTHING
from differential.kernels.consolidate import consolidate
from differential.kernels.count import count_changes
from differential.logging import log_trace
from differential.operators.arrange import new_trace
from differential.operators.reduce import BuiltIn, reduce_arrangement
from differential.trace.batch import Batch
from differential.trace.handle import TraceHandle
from timely.dataflow.builder import OperatorBuilder
from timely.dataflow.pact import Pipeline

if TYPE_CHECKING:
    from differential.collection import Collection
    from differential.trace.spine import Spine
    from timely.dataflow.ports import InputPort, OutputPort


def count(collection: Collection, *, name: str = "count") -> Collection:
    """Return (key, number of records with that key), for every key that has records.

    >>> example(lambda scope: Collection.of(scope, np.array([1, 1, 2])).count())
    [((1, 2), 1), ((2, 1), 1)]
    """
    source = collection.arrange_by_key()
    if source.is_in_order:
        return _count_in_order(source, name).as_collection()
    counted = reduce_arrangement(source, lambda key, value, said: BuiltIn(kernels.COUNT, 0), (Kind.INT,), name=name)
    return counted.as_collection()


def _count_in_order(source: Arrangement, name: str) -> Arrangement:
    scope = source.scope
    builder = OperatorBuilder(scope, name)
    input = builder.add_input(source.stream, Pipeline(), drains=True)
    output, stream = builder.add_output()
    spine = new_trace(scope)
    log_trace(spine, output)
    counter = CounterInOrder(input, output, spine)
    builder.build(lambda _: counter.run)
    scope.dataflow.when_complete(counter.drop)
    value = Encoder(interner_of(scope.dataflow.worker), "value", (Kind.INT,))
    return Arrangement(stream, TraceHandle(spine), source.key, value, source.keys)


class CounterInOrder:
    """The operator, where times are totally ordered.

    Invariant: the output's trace is, at every time before its upper, the count of the input. Batches come in the order
    of their intervals, each is final, and is answered at once, by a batch.
    """

    def __init__(self, input: InputPort, output: OutputPort, spine: Spine) -> None:
        self._input = input
        self._output = output
        self._spine = spine
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
        keys, counts, time_index, diffs = count_changes(keys, time_index, diffs, self._said.table(self._said.batches()))
        make = Batch.build if len(times) > 1 else Batch  # at one time they come as they are to be
        return make(keys, counts, time_index, diffs, times, self._spine.upper, batch.upper, self._spine.origin)
