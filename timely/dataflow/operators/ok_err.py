"""Tell what could be computed from what could not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from timely.arguments import check_functions
from timely.data.container import Batch, Columns, as_columns, as_mask, of_columns
from timely.data.user_functions import call
from timely.dataflow.inline import split
from timely.dataflow.streams import S
from timely.errors import DataError
from timely.order import Time


def ok_err(stream: S, function: Callable[..., Any], *, name: str = "ok_err") -> tuple[S, S]:
    """Return the stream of results and the stream of errors of `function`.

    `function` receives a batch's columns and returns (whether it went well, results, errors), each a column or, for the
    latter two, a tuple of columns, of the batch's length. For list batches it receives one record and returns
    (whether it went well, the result or the error).

    A DataError ends the run where `function` does not return these three.

    >>> def halve(x):
    ...     return x % 2 == 0, x // 2, (x, "odd")
    >>> example(lambda scope: scope.to_stream(range(4)).ok_err(halve)[0])
    [0, 1]
    >>> example(lambda scope: scope.to_stream(range(4)).ok_err(halve)[1])
    [(1, 'odd'), (3, 'odd')]
    """
    check_functions(name, function=function)

    def divide(time: Time, batch: Batch) -> Iterator[tuple[int, Batch]]:
        if isinstance(batch, list):
            results = [function(record) for record in batch]
            for each in results:
                if not isinstance(each, tuple) or len(each) != 2:
                    raise DataError(
                        f"{name}: the function must return (whether it went well, result), not {each!r:.80}"
                    )
            yield 0, [value for went_well, value in results if went_well]
            yield 1, [value for went_well, value in results if not went_well]
            return
        given = call(function, of_columns(batch))
        if not isinstance(given, tuple) or len(given) != 3:
            raise DataError(f"{name}: the function must return (whether it went well, results, errors), in columns")
        went_well, results, errors = given
        mask = as_mask(went_well, len(batch))
        yield 0, Columns.of_equals(as_columns(results, len(batch))).compress(mask)
        yield 1, Columns.of_equals(as_columns(errors, len(batch))).compress(~mask)

    results, errors = split(stream, divide, 2, name=name)
    return results, errors
