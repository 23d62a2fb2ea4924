"""Batches of an arrangement as updates: codes become columns again.

This runs for each batch that an operator on records receives, so it is compiled (docs/design/0019-compiled-to-c.md).
"""

from __future__ import annotations

from collections.abc import Callable

from differential.data.codes import Encoder
from differential.data.updates import Updates
from differential.trace.batch import Batch


def decoder(key: Encoder, value: Encoder) -> Callable[[Batch], Updates]:
    """Return a function that makes updates of a batch whose codes `key` and `value` know."""

    def updates_of(batch: Batch) -> Updates:
        keys, vals, time_index, diffs, times = batch.columns.rows
        length = len(batch)  # given to both, because a column of codes that are all 0 is absent
        return Updates(key.decode(keys, length) + value.decode(vals, length), times, time_index, diffs)

    return updates_of
