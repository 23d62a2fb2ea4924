"""Keep the records that satisfy a predicate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timely.arguments import check_functions
from timely.data.container import Batch, Columns, as_mask, of_columns
from timely.data.user_functions import consult
from timely.dataflow.inline import inline
from timely.dataflow.streams import S


def filter(stream: S, predicate: Callable[..., Any], *, name: str = "filter") -> S:
    """Return the records of `stream` that satisfy `predicate`, at their own times.

    `predicate` receives a batch's columns and returns a boolean column of the same length. For list batches it receives
    one record.

    >>> example(lambda scope: scope.to_stream(range(6)).filter(lambda x: x % 2 == 0))
    [0, 2, 4]
    """
    check_functions(name, predicate=predicate)

    def transform(batch: Batch) -> Batch:
        if isinstance(batch, list):
            return [record for record in batch if predicate(record)]
        columns = of_columns(batch)
        mask = as_mask(consult(predicate, columns), len(batch))
        return Columns.of_equals(tuple(column[mask] for column in columns))

    return inline(stream, transform, name=name)
