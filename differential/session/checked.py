"""Functions of columns that are checked where their mistakes would be silent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from differential.session.compared import Compared
from differential.session.row import name_column
from differential.session.variables import refuse_changes, variables_of
from timely.errors import ComparisonError


def checked(names: Sequence[str] | None, function: Callable[..., Any], *written: object) -> Callable[..., Any]:
    """Return a function of columns of these names that is made of functions which a program has written, and checked.

    It raises ComparisonError if it compares what can never be equal. So that this does not depend on rows, its first
    call is preceded by one with columns that have none, and what else is raised for want of rows is ignored. What
    `rowwise` makes of a function is not called, because Python compares its values.

    It raises BuildError if a variable that the program's functions read has changed since.

    >>> checked(["n"], lambda n: n == "30")(np.array([30]))
    Traceback (most recent call last):
    timely.errors.ComparisonError: column 'n': numbers cannot be compared with text ('30'): write 30, without quotes
    """
    variables = [variable for each in written for variable in variables_of(each)]
    is_compared = hasattr(function, "rowwise")

    def of_columns(*columns: Any) -> Any:
        nonlocal is_compared
        if variables:
            refuse_changes(variables)
        if not is_compared and len(columns[0]):
            is_compared = True
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
