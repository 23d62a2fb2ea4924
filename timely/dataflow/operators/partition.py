"""Divide a stream into several, record by record."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from timely.arguments import check_functions, check_whole
from timely.data.container import Batch, Columns, records
from timely.data.user_functions import consult
from timely.dataflow.inline import split
from timely.dataflow.pact import scatter
from timely.dataflow.streams import S
from timely.errors import DataError
from timely.order import Time


def partition(stream: S, parts: int, route: Callable[..., Any], *, name: str = "partition") -> tuple[S, ...]:
    """Return `parts` streams; `route` returns for each record the number, from 0 on, of the one it is on.

    `route` receives a batch's columns and returns a column of integers; for list batches, a record and an integer.

    Raises BuildError unless `parts` is a whole number of at least 1. A DataError ends the run where `route` returns
    another number than 0 to `parts` - 1.

    >>> example(lambda scope: scope.to_stream(range(7)).partition(3, lambda x: x % 3)[1])
    [1, 4]
    """
    check_functions(name, route=route)
    check_whole(name, 1, parts=parts)

    def divide(time: Time, batch: Batch) -> Iterator[tuple[int, Batch]]:
        numbers: Any
        if isinstance(batch, Columns):
            numbers = np.asarray(consult(route, batch.columns))
            if not numbers.ndim:
                numbers = np.full(len(batch), numbers)
        else:
            numbers = np.array([route(record) for record in records(batch)])
        if numbers.shape != (len(batch),):
            raise DataError(
                f"{name}: the route must return an integer for each of {len(batch)} record(s), or one for all, not an "
                f"array of shape {numbers.shape}"
            )
        if numbers.dtype.kind not in "biu" or numbers.min() < 0 or numbers.max() >= parts:
            raise DataError(f"{name}: the route must return integers from 0 to {parts - 1}, got {numbers!r}")
        return scatter(batch, numbers.astype(np.int64))

    return split(stream, divide, parts, name=name)
