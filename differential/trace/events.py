"""What happens to traces, as frozen records, for the same log as those of `timely.observe.events`.

The operator that writes a trace, an arrangement or a reduction, names it. Sizes are rows, and bytes of columns. Batches
share equal columns, so the bytes of all traces may be more than those in memory.
"""

from __future__ import annotations

from typing import NamedTuple


class BatchInserted(NamedTuple):
    """A batch was added to a trace, or was there when the first listener began to listen."""

    time: int
    worker: int
    dataflow: int
    operator: int
    rows: int
    bytes: int


class BatchesMerged(NamedTuple):
    """Several batches of a trace were replaced by one, with fewer rows as far as updates cancelled."""

    time: int
    worker: int
    dataflow: int
    operator: int
    batches: int
    rows_before: int
    rows: int
    bytes_before: int
    bytes: int


class TraceDropped(NamedTuple):
    """Nobody reads a trace any more; it had this size."""

    time: int
    worker: int
    dataflow: int
    operator: int
    rows: int
    bytes: int


TRACES = (BatchInserted, BatchesMerged, TraceDropped)
