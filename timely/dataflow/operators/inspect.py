"""Look at what flows by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timely.arguments import check_functions
from timely.data.container import Batch, as_read_only, records
from timely.dataflow.inline import inline, inline_timed
from timely.dataflow.streams import S
from timely.order import Time


def inspect(stream: S, look: Callable[[Any], object], *, name: str = "inspect") -> S:
    """Return the stream unchanged, after `look(record)` was called for each of its records, as Python values.

    >>> _ = example(lambda scope: scope.to_stream(range(2)).inspect(print))
    0
    1
    """
    check_functions(name, look=look)

    def transform(batch: Batch) -> Batch:
        for record in records(batch):
            look(record)
        return batch

    return inline(stream, transform, name=name)


def inspect_batch(stream: S, look: Callable[[Time, Batch], object], *, name: str = "inspect_batch") -> S:
    """Return the stream unchanged, after `look(time, batch)` was called for each of its batches.

    >>> _ = example(lambda scope: scope.to_stream(range(2)).inspect_batch(lambda time, batch: print(time, len(batch))))
    (0,) 2
    """
    check_functions(name, look=look)

    def transform(time: Time, batch: Batch) -> tuple[Time, Batch]:
        look(time, as_read_only(batch))
        return time, batch

    return inline_timed(stream, transform, name=name)


def inspect_time(stream: S, look: Callable[[Time, Any], object], *, name: str = "inspect_time") -> S:
    """Return the stream unchanged, after `look(time, record)` was called for each of its records, as Python values.

    >>> _ = example(lambda scope: scope.to_stream(range(2)).inspect_time(print))
    (0,) 0
    (0,) 1
    """
    check_functions(name, look=look)

    def look_at_all(time: Time, batch: Batch) -> None:
        for record in records(batch):
            look(time, record)

    return inspect_batch(stream, look_at_all, name=name)
