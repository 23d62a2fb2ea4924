"""Columns that find out with what a function compares them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from differential.session.row import name_column
from timely.errors import ComparisonError
from timely.lowlevel import COMPARISONS, refuse_comparison


class Compared(np.ndarray[Any, Any]):
    """An array that raises ComparisonError where NumPy answers False for each row, because nothing could be equal.

    >>> np.array([30]) == "30"
    array([False])
    >>> np.array([30]).view(Compared) == "30"
    Traceback (most recent call last):
    timely.errors.ComparisonError: numbers cannot be compared with text ('30'): write 30, without quotes
    """

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if ufunc in COMPARISONS and method == "__call__":
            refuse_comparison(*inputs)
        plain = {name: tuple(map(_plain, each)) if name == "out" else _plain(each) for name, each in options.items()}
        result = getattr(ufunc, method)(*map(_plain, inputs), **plain)
        return result.view(Compared) if isinstance(result, np.ndarray) else result


def _plain(operand: Any) -> Any:
    return operand.view(np.ndarray) if isinstance(operand, Compared) else operand


def checked(names: Sequence[str] | None, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of columns that raises ComparisonError if it compares what can never be equal.

    So that this does not depend on rows, its first call is preceded by one with columns that have none, and what else
    is raised for want of rows is ignored. A function of `rowwise` is returned as it is: Python compares its values.

    >>> checked(["n"], lambda n: n == "30")(np.array([30]))
    Traceback (most recent call last):
    timely.errors.ComparisonError: column 'n': numbers cannot be compared with text ('30'): write 30, without quotes
    """
    if hasattr(function, "rowwise"):
        return function
    is_checked = False

    def of_columns(*columns: Any) -> Any:
        nonlocal is_checked
        if not is_checked and len(columns[0]):
            is_checked = True
            _refuse_comparisons(names or (), function, columns)
        return function(*columns)

    return of_columns


def _refuse_comparisons(names: Sequence[str], function: Callable[..., Any], columns: tuple[Any, ...]) -> None:
    empty = [column[:0].view(Compared) if type(column) is np.ndarray else column[:0] for column in columns]
    try:
        function(*empty)
    except ComparisonError as error:
        name_column(error, names, empty)
        raise
    except Exception:
        return
