"""Record in a worker's log what happens to its traces.

A trace's spine has an observer while the log has listeners for such events, and otherwise none.

>>> def program(worker):
...     rows = []
...     worker.log.listen(lambda events: rows.extend(event.rows for event in events), BatchInserted)
...     with worker.dataflow() as scope:
...         Collection.of(scope, np.array([1, 1, 2]), np.array([10, 20, 30])).sum()
...     while worker.step():
...         pass
...     return rows
>>> from timely import execute_directly
>>> execute_directly(program)  # the input by key, and the sums
[3, 2]
"""

from __future__ import annotations

from collections.abc import Sequence

from differential.trace.batch import Batch
from differential.trace.events import TRACES, BatchesMerged, BatchInserted, TraceDropped
from differential.trace.report import size_of
from differential.trace.spine import Spine
from timely.lowlevel import Log, OutputPort, StateResized


def log_trace(spine: Spine, output: OutputPort) -> None:
    """Record what happens to the trace that an operator writes, while its dataflow runs and the log has listeners.

    The operator also answers, to any thread, how much the trace keeps.
    """
    observer = TraceObserver(output)
    output.operator.kept = spine.size

    def attach(log: Log) -> None:
        if log.kinds.isdisjoint((*TRACES, StateResized)):
            spine.observer = None
        elif spine.observer is None:
            spine.observer = observer
            # Whoever adds sizes up begins with what is there; without this the first merges would make them negative.
            for batch in spine.batches():
                observer.inserted(batch)

    dataflow = output.dataflow
    dataflow.when_complete(dataflow.host.log.gauge(attach))


class TraceObserver:
    """Records what becomes of a spine's batches (see `differential.trace.report.Observer`)."""

    def __init__(self, output: OutputPort) -> None:
        self._dataflow = output.dataflow
        self._operator = output.operator.index

    def inserted(self, batch: Batch) -> None:
        if len(batch):
            self._record(BatchInserted, len(batch), batch.nbytes)
            self._record(StateResized, len(batch), batch.nbytes)

    def merged(self, sources: Sequence[Batch], result: Batch) -> None:
        rows, size = size_of(sources)
        self._record(BatchesMerged, len(sources), rows, len(result), size, result.nbytes)
        self._record(StateResized, len(result) - rows, result.nbytes - size)

    def dropped(self, batches: Sequence[Batch]) -> None:
        rows, size = size_of(batches)
        self._record(TraceDropped, rows, size)
        self._record(StateResized, -rows, -size)

    def _record(self, kind: type, *sizes: int) -> None:
        dataflow = self._dataflow
        if dataflow.is_logged:
            log = dataflow.host.log
            log.record(kind(log.now(), dataflow.worker_index, dataflow.index, self._operator, *sizes))
