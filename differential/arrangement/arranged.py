"""The parts of an arrangement, as the operators that index updates return them, and what the codes in its batches mean.

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


def watcher(key: Encoder, value: Encoder) -> Callable[[Batch], None]:
    """Return a function that keeps the items in a batch's key and value columns for as long as the columns exist."""
    interner = key.interner

    def watch(batch: Batch) -> None:
        if interner.is_used:  # a batch from before the first item was interned has none
            if key.interns:
                interner.watch(key, batch.keys)
            if value.interns:
                interner.watch(value, batch.vals)

    return watch
