"""Functions of columns that are checked where their mistakes would be silent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isclose
from typing import Any

import numpy as np

from differential.session.compared import Compared
from differential.session.row import name_column
from differential.session.variables import refuse_changes, variables_of
from timely.errors import BuildError, ComparisonError
from timely.lowlevel import ColumnLike


def checked(names: Sequence[str] | None, function: Callable[..., Any], *written: object) -> Callable[..., Any]:
    """Return a function of columns of these names that is made of functions which a program has written, and checked.

    It raises ComparisonError if it compares what can never be equal. So that this does not depend on rows, its first
    call is preceded by one with columns that have none. It raises BuildError if what it returns for a row is not what
    it returns for the row alone: some rows of the first batch with several are tried. What else the function raises in
    these calls is ignored. They do not tell whether a function of `rowwise` compares well, because Python compares its
    values.

    It raises BuildError, too, if a variable that the program's functions read has changed since.

    >>> checked(["n"], lambda n: n == "30")(np.array([30]))
    Traceback (most recent call last):
    timely.errors.ComparisonError: column 'n': numbers cannot be compared with text ('30'): write 30, without quotes
    >>> checked(["n"], lambda n: n > n.mean())(np.array([30, 50]))
    Traceback (most recent call last):
    timely.errors.BuildError: the function returns True for the row (50,) among 2 rows, and False for the row alone: ...
    """
    variables = [variable for each in written for variable in variables_of(each)]
    is_compared = hasattr(function, "rowwise")
    is_tried = False

    def of_columns(*columns: Any) -> Any:
        nonlocal is_compared, is_tried
        if variables:
            refuse_changes(variables)
        if is_tried:
            return function(*columns)
        rows = len(columns[0])
        if rows and not is_compared:
            is_compared = True
            _refuse_comparisons(names or (), function, columns)
        result = function(*columns)
        if rows > 1:
            is_tried = True
            _refuse_other_rows(function, columns, result)
        return result

    return of_columns


def _refuse_comparisons(names: Sequence[str], function: Callable[..., Any], columns: tuple[Any, ...]) -> None:
    empty = [column[:0].view(Compared) if type(column) is np.ndarray else column[:0] for column in columns]
    try:
        with np.errstate(all="ignore"):
            function(*empty)
    except ComparisonError as error:
        name_column(error, names, empty)
        raise
    except Exception:
        return


def _refuse_other_rows(function: Callable[..., Any], columns: tuple[Any, ...], result: Any) -> None:
    """Raise BuildError if what a function has returned for a row depends on the rows that it received with it."""
    rows = len(columns[0])
    for row in {0, rows // 3, rows // 3 * 2, rows - 1}:
        try:
            with np.errstate(all="ignore"):
                alone = function(*(column[row : row + 1] for column in columns))
            among, alone = _values(result, row, rows), _values(alone, 0, 1)
            differing = [(one, other) for one, other in zip(among, alone) if not _is_same(one, other)]
        except Exception:
            continue
        if differing and len(among) == len(alone):
            one, other = differing[0]
            values = tuple(column[row : row + 1].tolist()[0] for column in columns)
            raise BuildError(
                f"the function returns {one!r:.80} for the row {values!r:.160} among {rows:,} rows, and {other!r:.80} "
                "for the row alone: which rows it receives together is not determined, so what it returns for a row "
                "must depend on that row only. group_by(...), keyed_by(...).top_k(...) and window(...) compute over "
                "rows"
            )


def _values(result: Any, row: int, rows: int) -> list[Any]:
    """Return what a function has returned for a row, of columns; what else it has returned is for all rows."""
    parts: tuple[Any, ...] = result if isinstance(result, tuple) else (result,)
    columns: list[Any] = [each for each in parts if isinstance(each, (np.ndarray, ColumnLike)) and len(each) == rows]
    return [each[row : row + 1].tolist()[0] for each in columns]


def _is_same(one: Any, other: Any) -> bool:
    """Return whether two values are equal; floats may be as far apart as NumPy's for one row and for many are."""
    if isinstance(one, float) and isinstance(other, float):
        return isclose(one, other, rel_tol=1e-6, abs_tol=1e-12) or (one != one and other != other)
    return bool(one == other)
