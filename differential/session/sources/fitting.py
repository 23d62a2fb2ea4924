"""From columns of a file to columns of the types that a table has, and the rows that cannot be converted.

Columns are converted whole. Only if that fails are they halved, until single rows fail: so a clean block costs one
conversion a column, and one of n rows with k bad ones at most about 2 k log n, and never more than 2 n.

>>> from timely.lowlevel import typed
>>> target = Target("t", ("x",), ("decimal(18, 2)",), 1)
>>> fitted(target, [typed(["1.5", "0.125"], "text")])
Traceback (most recent call last):
timely.errors.DataError: column 'x' holds decimal(18, 2), not text such as '1.5'
>>> fitted(target._replace(types=("float64",)), [typed([1, 2**53 + 1], "int64")])
((array([1.]),), {1: "column 'x' (float64) cannot be 9007199254740993"})
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np

from differential.session.schema import as_type
from differential.session.sources.convert import may_be_null
from differential.session.sources.source import Target
from differential.session.table_data import Column
from timely.errors import DataError
from timely.lowlevel import is_null, name_of, typed

T = TypeVar("T")
WRONG = (DataError, ValueError, TypeError, OverflowError)
"""What a conversion of values raises, of Arrow and NumPy too."""
_EMPTY: dict[str, Any] = {"bytes": b"", "value": []}
"""Values of the types of which NumPy has no zero."""


@dataclass(frozen=True)
class Unreadable:
    """Rows of a column whose values cannot be read; `why` is what is wrong with them."""

    why: str
    length: int = 1

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, rows: slice | list[int]) -> Unreadable:
        return Unreadable(self.why, len(range(self.length)[rows] if isinstance(rows, slice) else rows))

    def tolist(self) -> list[str]:
        """Return a text for each value."""
        return ["?"] * self.length


def by_halves(length: int, convert: Callable[[int, int], T]) -> Iterator[tuple[int, int, T | Exception]]:
    """Yield (start, end, converted) for the largest halves of rows that can be converted, in order.

    Of a single row that cannot, this yields the error.

    >>> list(by_halves(4, lambda start, end: list(map(int, "12x4"[start:end]))))
    [(0, 2, [1, 2]), (2, 3, ValueError("invalid literal for int() with base 10: 'x'")), (3, 4, [4])]
    """
    pending = [(0, length)]
    while pending:
        start, end = pending.pop()
        try:
            found: T | Exception = convert(start, end)
        except WRONG as error:
            if end - start > 1:
                middle = (start + end) // 2
                pending += [(middle, end), (start, middle)]  # the first half is taken next, so rows stay in order
                continue
            found = error
        yield start, end, found


def fitted(target: Target, columns: Sequence[Column]) -> tuple[tuple[Column, ...], dict[int, str]]:
    """Return columns of the rows that have values of all types, and what is wrong with the others, by row.

    Raises DataError, which names the column, if no value of a column can have the type.
    """
    named = list(zip(target.names, columns, target.types))
    wrong: dict[int, str] = {}
    # Nulls first: `as_type` would refuse a column because of them, and name no row.
    for name, column, of in named:
        if not isinstance(column, Unreadable) and (not may_be_null(of) or name in target.required):
            for row in is_null(column).nonzero()[0].tolist():
                wrong.setdefault(row, f"column {name!r} ({of}) cannot be null")
    try:
        return _converted(named, wrong), wrong
    except DataError:
        for name, column, of in named:
            _find(name, column, of, wrong)
    return _converted(named, wrong), wrong


def _converted(named: Sequence[tuple[str, Column, str]], wrong: dict[int, str]) -> tuple[Column, ...]:
    """Return the columns without the rows that are wrong."""
    rows = [row for row in range(len(named[0][1])) if row not in wrong] if wrong else None
    return tuple(_as_type(name, column if rows is None else column[rows], of) for name, column, of in named)


def _as_type(name: str, column: Column, of: str) -> Column:
    if not len(column):
        return cast(Column, typed([], of))  # nulls that the table refuses may be of no type
    if isinstance(column, Unreadable):
        raise DataError(f"column {name!r} ({of}): {column.why}")
    try:
        return as_type(column, of)
    except DataError as error:
        raise DataError(f"column {name!r} {error}") from None


def _find(name: str, column: Column, of: str, wrong: dict[int, str]) -> None:
    """Add the rows of a column that cannot be converted to those that are wrong.

    Raises DataError if no value of the column's type can be converted.
    """
    rows = [row for row in range(len(column)) if row not in wrong]
    if isinstance(column, Unreadable):
        wrong |= dict.fromkeys(rows, f"column {name!r} ({of}): {column.why}")
        return
    left = column[rows]
    try:
        _as_type(name, left, of)
        return
    except DataError as error:
        if not _may_have(left, of):
            raise error
    for row, _, found in by_halves(len(rows), lambda start, end: as_type(left[start:end], of)):
        if isinstance(found, Exception):
            wrong[rows[row]] = f"column {name!r} ({of}) cannot be {left[[row]].tolist()[0]!r:.80}"


def _may_have(column: Column, of: str) -> bool:
    """Return whether a column can be converted if its values allow it: if a zero, or an empty value, of its type can.

    If two types have values in common, zero is one: 0 among numbers, 1970 among times, the empty text among texts.
    """
    name = name_of(column)
    base = name.removesuffix("?")
    zero = [_EMPTY[base]] if base in _EMPTY else np.zeros(1, typed([], base).dtype)
    try:
        as_type(typed(typed(zero, base), name), of)
    except DataError:
        return False
    return True
