"""Use an arrangement of another dataflow of this worker: import its trace.

The importing operator is a source. It emits what the trace holds when its dataflow starts (the history), then each
batch as the exporting dataflow seals it, as the same object. The spine is shared, so readers here are readers there.

- Its capabilities follow the frontier of the exported stream, on each worker as that worker sees it. A batch arrives
  here in the step that seals it, when the exporter still holds a capability for its time. So the batch is queued before
  the frontier can pass that time, and the operator emits everything queued before it looks at the frontier. Hence it
  holds a capability for each time at which it emits.
- Every time is replaced by its representative under one frontier, `since`: in the batches emitted and, by the same
  views, in those that readers find in the trace (`differential.trace.as_of`). So a history of a thousand epochs arrives
  as one change, and no operator computes answers for epochs that nobody can ask about. Keys, values and diffs are
  shared; a batch needs a column of its own, that of times, only if `since` cuts its interval.
- Readers here see the trace as far as this operator has emitted it, however late it runs: a join must not find in the
  past of a side a batch that has yet to arrive on its input.
- The operator ends when the exporting dataflow is complete or dropped. Then the frontier here is empty, and the
  collection stays as it was sealed. Workers that drop a dataflow before all have sealed the same epochs keep their
  shares as of different times; wait for the epoch first.
"""

from __future__ import annotations

from collections import deque
from typing import cast

from differential.arrangement.arranged import Arranged
from differential.arrangement.export import Export
from differential.trace.as_of import AsOf
from differential.trace.batch import Batch
from differential.trace.handle import TraceHandle
from timely import Scope
from timely.lowlevel import (
    Antichain,
    Batch as AnyBatch,
    Capability,
    CapabilitySet,
    Logic,
    OperatorBuilder,
    OutputPort,
    Time,
    check_scope,
    refusal,
)


def import_trace(export: Export, trace: TraceHandle, since: Antichain, scope: Scope, name: str) -> Arranged:
    """Return the arrangement exported, which `trace` reads, as of `since` (see `Trace.import_into`)."""
    check_scope(name, scope)
    export.check()
    dataflow = scope.dataflow
    if dataflow.host is not export.host:
        raise refusal(name, f"the trace is one of {export.host}, the dataflow one of {dataflow.host}")
    if scope.width != trace.depth:
        raise refusal(
            name,
            f"the times of the trace have {trace.depth} coordinate(s), those of {scope} have {scope.width}: "
            "import it into the outermost scope of a dataflow with such times, and enter() from there",
        )
    builder = OperatorBuilder(scope, name)
    output, stream = builder.add_output(initial=True)
    reader = AsOf.of(trace, since)
    importer = Importer(export, trace.clone(), reader.clone(), output)
    builder.operator.awaits = lambda: f"{export}, whose frontier is {list(export.frontier.elements)}"
    builder.build(importer.start)
    dataflow.when_complete(importer.drop)
    return Arranged(stream, reader, export.key, export.value, export.keys)


class Importer:
    """The operator: the batches that it still has to emit, and capabilities for them."""

    def __init__(self, export: Export, source: TraceHandle, trace: AsOf, output: OutputPort) -> None:
        self._export = export
        self._source = source
        self._trace = trace
        self._output = output
        self._held = CapabilitySet(output)
        self._queue: deque[tuple[Time, Batch]] = deque()

    def start(self, capabilities: list[Capability]) -> Logic:
        """Queue the history, and attach to the export for what follows."""
        initial = capabilities[0]
        self._held.insert(initial)
        initial.drop()
        # Times are shown in advance of `since`, so all are at or after the meet of its elements.
        first = tuple(map(min, zip(*self._trace.logical.elements)))
        self._queue.extend((first, batch) for batch in self._source.batches())
        self._source.drop()  # the queue holds the batches
        # At once, so that each batch sealed later comes exactly once, after the history.
        self._export.attach(self)
        return self._run

    def receive(self, time: Time, batch: Batch) -> None:
        """Queue a batch just sealed."""
        self._queue.append((time, batch))
        self.wake()

    def wake(self) -> None:
        """Run in this step of the worker, or in the next."""
        self._output.dataflow.activate(self._output.operator)

    def drop(self) -> None:
        """Stop receiving and reading."""
        self._export.detach(self)
        self._queue.clear()
        self._source.drop()
        self._trace.drop()

    def _run(self) -> None:
        queue, held = self._queue, self._held
        while queue:
            time, batch = queue.popleft()
            # Before the batch is sent: what receives it may look it up in the trace.
            shown = self._trace.receive(batch)
            covering = held.covering(time)
            if covering.time == time:
                self._output.give(covering, cast(AnyBatch, shown))
            else:
                with covering.delayed(time) as capability:
                    self._output.give(capability, cast(AnyBatch, shown))
        # After the queue, which has every batch at a time that this frontier has passed.
        held.downgrade(self._export.frontier)
        # From now on this handle would hold the trace back for nobody: the readers here have handles of their own.
        self._trace.drop()
