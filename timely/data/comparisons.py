"""Comparisons that no two values satisfy: of numbers with text, of times with text, of anything with None.

NumPy answers some of them with False for each row, which looks like a condition that no row satisfies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from timely.data.column_like import ColumnLike
from timely.errors import ComparisonError

NUMBERS, TEXTS, BYTES = "numbers", "text", "bytes"
MOMENTS, DURATIONS = "dates and timestamps", "durations and times of day"

COMPARISONS = frozenset((np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal))
"""The functions of NumPy that compare the values of two columns, or of a column and one value."""

_NULL = "None"
_LOOKED_AT = 100
_OF_DTYPES = {"T": TEXTS, "U": TEXTS, "S": BYTES, "M": MOMENTS, "m": DURATIONS, **dict.fromkeys("biufc", NUMBERS)}
_OF_CLASSES: tuple[tuple[type | tuple[type, ...], str], ...] = (
    ((int, float, complex, Decimal, Fraction), NUMBERS),
    (str, TEXTS),
    (bytes, BYTES),
    (date, MOMENTS),
    ((timedelta, time), DURATIONS),
    (type(None), _NULL),
)


def refuse_comparison(one: Any, other: Any) -> None:
    """Raise ComparisonError if no value on one side can be compared with one on the other, or one side is None.

    >>> refuse_comparison(np.array([30]), 30)
    >>> refuse_comparison(np.array([30]), "30")
    Traceback (most recent call last):
    timely.errors.ComparisonError: numbers cannot be compared with text ('30'): write 30, without quotes
    """
    ours, theirs = _compared(one), _compared(other)
    if ours == theirs or ours is None or theirs is None:
        return
    if not _is_column(one):
        one, other, ours, theirs = other, one, theirs, ours
    if not _is_column(one) or (ours == DURATIONS and theirs == NUMBERS):  # numbers of the column's unit
        return
    if theirs == _NULL:
        raise ComparisonError(
            f"{ours} cannot be compared with None: is_null(column), of differential.frames, is True where a value is "
            "null, and ~is_null(column) where it is not",
            one,
        )
    shown = "" if _is_column(other) else f" ({other!r:.80})"
    raise ComparisonError(f"{ours} cannot be compared with {theirs}{shown}: {_remedy(ours, theirs, other)}", one)


def refuse_members(function: Callable[..., Any], arguments: Sequence[Any]) -> None:
    """Raise ComparisonError if `np.isin` is to look for values that no value of the column can be.

    NumPy takes a set, a dictionary or a generator for one value, and makes text of numbers beside text.

    >>> refuse_members(np.isin, (np.array([30]), {30, 31}))
    Traceback (most recent call last):
    timely.errors.ComparisonError: np.isin takes a set for one value: np.isin(column, list(values)) looks for its items
    """
    if function is not np.isin or len(arguments) < 2:
        return
    column, values = arguments[:2]
    if isinstance(values, Iterable) and not isinstance(values, (list, tuple, np.ndarray, ColumnLike, str, bytes)):
        raise ComparisonError(
            f"np.isin takes a {type(values).__name__} for one value: np.isin(column, list(values)) looks for its items",
            column,
        )
    for each in values[:_LOOKED_AT] if isinstance(values, (list, tuple)) else (values,):
        refuse_comparison(column, each)


def _is_column(operand: Any) -> bool:
    return isinstance(operand, (np.ndarray, ColumnLike)) and operand.ndim == 1


def _compared(operand: Any) -> str | None:
    """Return as what an operand is compared, None if that is not known."""
    if isinstance(operand, ColumnLike):
        return operand.compared_as
    if isinstance(operand, (np.ndarray, np.generic)):
        return _OF_DTYPES.get(operand.dtype.kind)
    return next((name for classes, name in _OF_CLASSES if isinstance(operand, classes)), None)


def _remedy(ours: str, theirs: str, value: Any) -> str:
    """Return what a program may mean that compares a column with a value or a column of another kind."""
    if _is_column(value):
        return "convert one of the columns, as typed(column, name) of differential.frames does"
    if ours == TEXTS and theirs == NUMBERS:
        return f"write {str(value)!r:.80}"
    if ours == TEXTS and theirs == BYTES:
        return f"write {value.decode(errors='replace')!r:.80}"
    if ours == NUMBERS and theirs == TEXTS and _is_number(value):
        return f"write {value:.80}, without quotes"
    if ours == MOMENTS and theirs == TEXTS:
        return "np.datetime64(text) makes a time of text such as '2026-03-01T12:30'"
    if ours == BYTES and theirs == TEXTS:
        return f"write {value.encode()!r:.80}"
    return "convert one of them"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
