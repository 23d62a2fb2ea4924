"""Apply a function to every record, and keep the records for which it raises an error.

In `map`, a function that raises an error ends a run, or drops a view. Here an error is data: the record, the error and
the line of the program become a record of `rejects`. Both `results` and `rejects` are functions of the records, so if a
record is removed, its result or its reject is removed, too.

The function receives whole columns. If it fails, the columns are halved until the records that fail are found. A batch
without errors costs one call, and each error costs about as many calls as the logarithm of the length of its batch; if
most records fail, about one. Results and rejects come from the same calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, Generic, NamedTuple

import numpy as np

from differential.arrangement.core import C
from differential.data.updates import Array, Updates, updates_of
from timely import Stream
from timely.errors import DataError
from timely.lowlevel import Batch, Time, Typed, as_column, as_columns, call, check_functions, raised_at, split

FEW = 16
"""So many rows are tried one by one if both of their halves have failed."""


class Outcome(NamedTuple):
    """The result of a function for some rows: columns; or for one row, an error."""

    rows: Array
    columns: tuple[Array, ...] | None
    error: Exception | None


class Attempt(Generic[C]):
    """The results of a function for the records of a collection, and the records for which it fails.

    >>> def program(scope):
    ...     texts = Collection.of(scope, np.array(["3", "x", "5"]))
    ...     return texts.attempt(lambda text: [int(each) for each in text.tolist()]).results
    >>> example(program)
    [((3,), 1), ((5,), 1)]
    """

    def __init__(self, collection: C, function: Callable[..., Any], keys: int, name: str) -> None:
        self._collection = collection
        self._function = function
        self._keys = keys
        self._name = name

    @property
    def results(self) -> C:
        """The results of the records for which the function does not fail."""
        return self._collection.with_stream(self._streams[0], self._keys)

    @property
    def rejects(self) -> C:
        """The records for which the function raises an error, as texts (record, error, line)."""
        return self._collection.with_stream(self._streams[1], 1)

    @cached_property
    def _streams(self) -> tuple[Stream, ...]:
        """The streams of results and of rejects: the function is called once for each batch, even if both are read."""

        def divide(time: Time, batch: Batch) -> Iterator[tuple[int, Updates]]:
            updates = updates_of(batch)
            made, failed = [], []
            for each in outcomes(self._function, updates.columns):
                if each.error is None:
                    made.append(each)
                else:
                    failed.append((int(each.rows[0]), *_texts(each.error)))
            yield 0, _results(updates, made)
            yield 1, _rejects(updates, failed)

        return split(self._collection.stream, divide, 2, name=self._name)


def _results(updates: Updates, made: Sequence[Outcome]) -> Updates:
    """Return the updates of the rows for which a function has returned columns, with these columns."""
    if not made:
        return updates.take(np.zeros(0, np.int64))
    if len(made[0].rows) == len(updates):  # no row has failed
        return updates.with_columns(made[0].columns or ())
    widths = {len(each.columns or ()) for each in made}
    if len(widths) > 1:
        raise DataError(
            f"the function of attempt returned {min(widths)} column(s) for some records, {max(widths)} for others"
        )
    columns = tuple(map(_whole, zip(*(each.columns or () for each in made))))
    return updates.take(np.concatenate([each.rows for each in made])).with_columns(columns)


def _whole(parts: tuple[Array, ...]) -> Array:
    """Return the parts of a column as one, of the type that it would have if the function had returned it whole."""
    if any(isinstance(part, Typed) for part in parts) or len({part.dtype for part in parts}) == 1:
        return np.concatenate(parts)
    return as_column([value for part in parts for value in part.tolist()])


def _texts(error: Exception) -> tuple[str, str]:
    """Return an error and its line as texts, because the error would keep all frames of its traceback."""
    texts = f"{type(error).__name__}: {error}", str(raised_at(error.__traceback__) or "")
    # Both may have surrogates, of bytes in the name of a file, and a column of text has none.
    shown, line = [text.encode(errors="backslashreplace").decode() for text in texts]
    return shown, line


def _rejects(updates: Updates, failed: Sequence[tuple[int, str, str]]) -> Updates:
    """Return the updates of the rows (row, error, line) for which a function has failed, as texts with the record."""
    rows = np.array([row for row, _, _ in failed], np.int64)
    records = list(zip(*(column[rows].tolist() for column in updates.columns)))
    shown = [str(record if len(record) > 1 else record[0]) for record in records]
    text = np.dtypes.StringDType()
    columns = shown, [error for _, error, _ in failed], [line for _, _, line in failed]
    return updates.take(rows).with_columns(tuple(np.array(each, text) for each in columns))


def attempt(collection: C, function: Callable[..., Any], *, keys: int = 1, name: str = "attempt") -> Attempt[C]:
    """Return `results`, as those of `map`, and `rejects`, the records for which `function` raises an error.

    The function must treat each record by itself, because columns are divided to find the record that fails.

    >>> def program(scope):
    ...     texts = Collection.of(scope, np.array(["3", "x", "5"]))
    ...     rejects = texts.attempt(lambda text: [int(each) for each in text.tolist()]).rejects
    ...     return rejects.map(lambda record, error, line: (record, error))
    >>> example(program)
    [(('x', "ValueError: invalid literal for int() with base 10: 'x'"), 1)]
    """
    check_functions(name, function=function)
    return Attempt(collection, function, keys, name)


def outcomes(function: Callable[..., Any], columns: tuple[Array, ...]) -> Iterator[Outcome]:
    """Yield what a function makes of columns: in the order of the rows, each row once.

    If both halves of a few rows fail, these are tried one by one, which takes no more calls than more halves would.

    >>> [(each.rows.tolist(), each.error) for each in outcomes(lambda x: 6 // x, (np.array([1, 2]),))]
    [([0, 1], None)]
    """
    explains = True  # the rejects have no notes, but only an explanation shows that an algorithm has other columns

    def tried(start: int, end: int) -> Outcome:
        nonlocal explains
        rows = np.arange(start, end)
        try:
            given = tuple([column[start:end] for column in columns])
            return Outcome(rows, as_columns(call(function, given, explains=explains), end - start), None)
        except Exception as error:
            explains = explains and isinstance(error, DataError)
            return Outcome(rows, None, error)

    waiting = [tried(0, len(columns[0]))] if len(columns[0]) else []
    while waiting:
        outcome = waiting.pop()
        count = len(outcome.rows)
        if outcome.error is None or count == 1:
            yield outcome
            continue
        start = int(outcome.rows[0])
        end, middle = start + count, start + count // 2
        parts = [tried(start, middle), tried(middle, end)]
        if 3 < count <= FEW and all(part.error is not None for part in parts):
            parts = [tried(row, row + 1) for row in range(start, end)]
        waiting += reversed(parts)  # the first rows are popped first
