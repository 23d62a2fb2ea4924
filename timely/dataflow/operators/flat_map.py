"""Replace every record by any number of records."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from timely.container import Batch, Columns, as_columns, of_columns
from timely.dataflow.inline import inline
from timely.user_functions import call

if TYPE_CHECKING:
    from timely.dataflow.stream import Stream


def flat_map(stream: Stream, function: Callable[..., Any], *, name: str = "flat_map") -> Stream:
    """Return the stream of all the records that `function` makes of each.

    `function` receives a batch's columns and returns columns of any common length. For list batches it receives one
    record and returns an iterable of records.

    >>> example(lambda scope: scope.to_stream(range(4)).flat_map(lambda x: np.repeat(x, x)))
    [1, 2, 2, 3, 3, 3]
    """

    def transform(batch: Batch) -> Batch:
        if isinstance(batch, list):
            return [result for record in batch for result in function(record)]
        return Columns.of_equals(as_columns(call(function, of_columns(batch))))

    return inline(stream, transform, name=name)
