"""Divide a stream into two."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from timely.dataflow.inline import split
from timely.dataflow.operators.partition import partition
from timely.order import Time

if TYPE_CHECKING:
    from timely.dataflow.stream import Stream


def branch(stream: Stream, predicate: Callable[..., Any], *, name: str = "branch") -> tuple[Stream, Stream]:
    """Return the stream of the records that do not satisfy `predicate`, and that of those that do.

    `predicate` receives a batch's columns and returns a boolean column; for list batches it receives one record.

    >>> example(lambda scope: scope.to_stream(range(6)).branch(lambda x: x > 3)[1])
    [4, 5]
    """
    rejected, accepted = partition(stream, 2, predicate, name=name)
    return rejected, accepted


def branch_when(
    stream: Stream, condition: Callable[[Time], bool], *, name: str = "branch_when"
) -> tuple[Stream, Stream]:
    """Return the stream of what comes at times for which `condition` does not hold, and that of the rest.

    >>> example(lambda scope: scope.to_stream(range(3)).branch_when(lambda time: time < (1,))[1])
    [0, 1, 2]
    """
    earlier, later = split(stream, lambda time, batch: [(int(condition(time)), batch)], 2, name=name)
    return earlier, later
