"""Replace every record by another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timely.arguments import check_functions
from timely.data.container import Batch, Columns, as_columns, of_columns
from timely.data.user_functions import call
from timely.dataflow.inline import inline
from timely.dataflow.streams import S


def map(stream: S, function: Callable[..., Any], *, name: str = "map") -> S:
    """Return the stream of `function` of every record.

    `function` receives a batch's columns and returns a column or a tuple of columns of the same length; a scalar among
    them stands for a column of it. For list batches it receives one record and returns one.

    >>> example(lambda scope: scope.to_stream(range(3)).map(lambda x: (x, x * x)))
    [(0, 0), (1, 1), (2, 4)]
    """
    check_functions(name, function=function)

    def transform(batch: Batch) -> Batch:
        if isinstance(batch, list):
            return [function(record) for record in batch]
        columns = of_columns(batch)
        return Columns.of_equals(as_columns(call(function, columns), len(batch)))

    return inline(stream, transform, name=name)
