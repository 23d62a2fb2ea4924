"""Data that is there from the start."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any

import numpy as np

from timely.arguments import refusal
from timely.closing import close_all
from timely.data.container import Batch, Columns, Container, as_column, as_columns, frozen, own_columns
from timely.dataflow.activator import Activator
from timely.dataflow.capability import Capability
from timely.dataflow.operators.generic import source
from timely.dataflow.ports import OutputPort
from timely.dataflow.streams import S, ScopeCore
from timely.errors import DataError

ROWS_PER_BATCH = 1 << 16

_MOST = 1 << 63


def to_stream(scope: ScopeCore[S], data: Any, *, name: str = "to_stream") -> S:
    """Return the stream of `data` at the least time.

    Arrays, tuples of arrays and ranges become columns; a list stays a list of records; any other iterable must yield
    batches (`Columns` or lists) and is drawn on one batch an activation; a generator is closed when the dataflow is
    dropped. Every worker sends what it is given. Arrays and lists are copied, and the arrays of `Columns` become
    read-only. Raises BuildError for what is none of these.

    >>> example(lambda scope: scope.to_stream((np.arange(2), np.array(["a", "b"]))))
    [(0, 'a'), (1, 'b')]
    """
    # Now, since `batches_of` reads the data when the dataflow runs, and the program may have written to it by then.
    if isinstance(data, (np.ndarray, tuple)):
        data = own_columns(data)
    elif isinstance(data, Columns):
        data = frozen(data)
    elif isinstance(data, list):
        data = list(data)
    elif not isinstance(data, Iterable):
        what = "`data` must be an array, a tuple of arrays, a list of records or an iterable of batches"
        raise refusal(name, f"{what}, not {data!r:.80}")
    batches = batches_of(data)

    def constructor(capability: Capability, activate: Activator) -> Callable[[OutputPort], None]:
        def logic(output: OutputPort) -> None:
            batch = next(batches, None)
            if batch is None:
                capability.drop()
            else:
                output.give_owned(capability, batch)
                activate()

        return logic

    stream = source(scope, constructor, name=name)
    scope.dataflow.when_complete(lambda: close_generators(batches, data))
    return stream


def close_generators(*iterators: Any) -> None:
    """Close what is a generator, so that it ends now, not when it is found as garbage."""
    close_all([each.close for each in iterators if isinstance(each, Generator)])


def batches_of(data: Any) -> Iterator[Batch]:
    """Yield the batches that `data` consists of."""
    if isinstance(data, range):
        is_small = all(-_MOST <= each < _MOST for each in (data.start, data.stop, data.step))
        # NumPy makes rounded floats of larger ones.
        data = np.arange(data.start, data.stop, data.step) if is_small else as_column(list(data))
    if isinstance(data, (np.ndarray, tuple)):
        data = Columns.of_equals(as_columns(data))
    if isinstance(data, Columns):
        data = frozen(data)
        for start in range(0, len(data), ROWS_PER_BATCH):
            yield Columns.of_equals(tuple(column[start : start + ROWS_PER_BATCH] for column in data.columns))
    elif isinstance(data, list):
        for start in range(0, len(data), ROWS_PER_BATCH):
            yield data[start : start + ROWS_PER_BATCH]
    else:
        for batch in data:
            if not isinstance(batch, (list, Container)):
                given = type(batch).__name__
                raise DataError(f"an iterable must yield batches, `Columns` or lists of records: not {given}")
            yield frozen(batch)
