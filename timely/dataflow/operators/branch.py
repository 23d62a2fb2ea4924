"""Divide a stream into two."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from timely.arguments import check_functions
from timely.data.container import Batch, as_mask, of_columns, take
from timely.data.user_functions import consult
from timely.dataflow.inline import split
from timely.dataflow.streams import S
from timely.order import Time


def branch(stream: S, predicate: Callable[..., Any], *, name: str = "branch") -> tuple[S, S]:
    """Return the stream of the records that do not satisfy `predicate`, and that of those that do.

    `predicate` receives a batch's columns and returns a boolean column; for list batches it receives one record.

    >>> example(lambda scope: scope.to_stream(range(6)).branch(lambda x: x > 3)[1])
    [4, 5]
    """
    check_functions(name, predicate=predicate)

    def divide(time: Time, batch: Batch) -> Iterator[tuple[int, Batch]]:
        if isinstance(batch, list):
            mask = np.array([bool(predicate(record)) for record in batch])
        else:
            mask = as_mask(consult(predicate, of_columns(batch)), len(batch))
        for which, rows in enumerate((~mask, mask)):
            yield which, take(batch, np.flatnonzero(rows))

    rejected, accepted = split(stream, divide, 2, name=name)
    return rejected, accepted


def branch_when(stream: S, condition: Callable[[Time], bool], *, name: str = "branch_when") -> tuple[S, S]:
    """Return the stream of what comes at times for which `condition` does not hold, and that of the rest.

    >>> example(lambda scope: scope.to_stream(range(3)).branch_when(lambda time: time < (1,))[1])
    [0, 1, 2]
    """
    check_functions(name, condition=condition)
    earlier, later = split(stream, lambda time, batch: [(int(bool(condition(time))), batch)], 2, name=name)
    return earlier, later
