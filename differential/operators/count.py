"""Count the records of each key.

Where times are totally ordered a change is answered from what was said last and nothing else (`kernels.count`): the
input's trace is not read, and if nobody else does, not kept. In loops, and where the outermost times have several
coordinates, counting is a reduction like others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from differential.arrangement import Arrangement
from differential.codes import Encoder, Kind
from differential.interning import interner_of
from differential.kernels import reduce as kernels
from differential.kernels.compile import NOTHING
from differential.kernels.consolidate import consolidate
from differential.kernels.count import count_changes
from differential.operators.arrange import Sealer, new_trace
from differential.operators.reduce import BuiltIn, reduce_arrangement
from differential.trace.batch import Batch
from differential.trace.batcher import Batcher
from differential.trace.handle import TraceHandle
from timely.dataflow.builder import OperatorBuilder
from timely.dataflow.pact import Pipeline

if TYPE_CHECKING:
    from differential.collection import Collection
    from timely.dataflow.ports import InputPort


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
    input = builder.add_input(source.stream, Pipeline(), frontier=True, drains=True)
    output, stream = builder.add_output()
    spine = new_trace(scope)
    counter = CounterInOrder(input, Sealer(output, spine), TraceHandle(spine))
    builder.build(lambda _: counter.run)
    scope.dataflow.when_complete(counter.drop)
    value = Encoder(interner_of(scope.dataflow.worker), "value", (Kind.INT,))
    return Arrangement(stream, TraceHandle(spine), source.key, value, source.keys)


class CounterInOrder:
    """The operator, where times are totally ordered.

    Invariant: the output's trace is, at every time before its upper, the count of the input. Batches come in the order
    of their intervals, each is final, and is answered at once.
    """

    def __init__(self, input: InputPort, sealer: Sealer, said: TraceHandle) -> None:
        self._input = input
        self._sealer = sealer
        self._said = said
        self._batcher = Batcher(said.depth)
        input.operator.waits = False

    def run(self) -> None:
        for time, message in self._input.drain():
            batch = cast(Batch, message)
            self._sealer.held.insert(time)
            self._answer(batch)
            self._sealer.seal(self._batcher, batch.upper)
            self._said.set_logical_compaction(batch.upper)
            self._said.set_physical_compaction(batch.upper)

    def drop(self) -> None:
        """Stop reading."""
        self._said.drop()

    def _answer(self, batch: Batch) -> None:
        keys, time_index, diffs, times = batch.keys, batch.time_index, batch.diffs, batch.times
        if len(times) > 1:
            keys, _, time_index, diffs, times = consolidate(keys, NOTHING, time_index, diffs, times)
        keys, counts, time_index, diffs = count_changes(keys, time_index, diffs, self._said.table(self._said.batches()))
        self._batcher.push(keys, counts, times, time_index, diffs)
