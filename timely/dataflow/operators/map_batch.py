"""Replace every batch by another batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timely.arguments import check_functions
from timely.data.container import Batch, Columns, as_columns, of_columns
from timely.data.user_functions import call
from timely.dataflow.inline import inline
from timely.dataflow.streams import S


def map_batch(stream: S, function: Callable[..., Any], *, name: str = "map_batch") -> S:
    """Return the stream of what `function` makes of each batch, of any length.

    `function` receives a batch's columns and returns columns of any common length. For list batches it receives the
    list and returns an iterable of records. How records are grouped into batches is not part of a program's meaning:
    use it for what may be done batch by batch, such as to add up before an exchange.

    >>> example(lambda scope: scope.to_stream(np.array([3, 1, 3])).map_batch(np.unique))
    [1, 3]
    """
    check_functions(name, function=function)

    def transform(batch: Batch) -> Batch:
        if isinstance(batch, list):
            return list(function(batch))
        return Columns.of_equals(as_columns(call(function, of_columns(batch))))

    return inline(stream, transform, name=name)
