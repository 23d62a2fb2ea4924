"""The parts of an arrangement, as the operators that index updates return them, and its batches as updates again.

Batches are decoded for each operator on records, so this is compiled (docs/design/0019-compiled-to-c.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from differential.data.codes import Encoder
from differential.data.updates import Updates
from differential.trace.batch import Batch
from differential.trace.reader import TraceReader
from timely import Stream


class Arranged(NamedTuple):
    """A stream of batches, a reader of the trace that holds them all, and what the codes in them mean.

    The first `keys` columns of a record are its key. `key` and `value` encode and decode the columns of both.
    """

    stream: Stream
    trace: TraceReader
    key: Encoder
    value: Encoder
    keys: int


def decoder(key: Encoder, value: Encoder) -> Callable[[Batch], Updates]:
    """Return a function that makes updates of a batch whose codes `key` and `value` know."""

    def updates_of(batch: Batch) -> Updates:
        keys, vals, time_index, diffs, times = batch.columns.rows
        length = len(batch)  # given to both, because a column of codes that are all 0 is absent
        return Updates(key.decode(keys, length) + value.decode(vals, length), times, time_index, diffs)

    return updates_of
