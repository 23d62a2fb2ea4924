"""Replace every record by any number of records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timely.arguments import check_functions
from timely.data.columns import rows_and_columns
from timely.data.container import Batch, Columns, of_columns
from timely.data.user_functions import call
from timely.dataflow.inline import inline
from timely.dataflow.streams import S


def flat_map(stream: S, function: Callable[..., Any], *, name: str = "flat_map") -> S:
    """Return the stream of all the records that `function` makes of each.

    `function` receives a batch's columns and returns `(rows, *columns)`: for each record it makes, the position of the
    row it comes from, and its fields; as for `Collection.flat_map`, so that one function serves both. For list batches
    it receives one record and returns an iterable of records.

    A DataError ends the run where `function` returns something else, or positions that are none.

    >>> def repeated(x):
    ...     rows = np.repeat(np.arange(len(x)), x)
    ...     return rows, x[rows]
    >>> example(lambda scope: scope.to_stream(range(4)).flat_map(repeated))
    [1, 2, 2, 3, 3, 3]
    """
    check_functions(name, function=function)

    def transform(batch: Batch) -> Batch:
        if isinstance(batch, list):
            return [result for record in batch for result in function(record)]
        _, columns = rows_and_columns(call(function, of_columns(batch)), len(batch))
        return Columns.of_equals(columns)

    return inline(stream, transform, name=name)
