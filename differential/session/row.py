"""A batch of records by the names of its columns: what functions over named columns receive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, signature
from typing import Any

from differential.session.near import known
from timely.lowlevel import name_of


class Row:
    """The columns of a batch of records by name: `row.total`, or `row["total"]` for any name.

    >>> row = Row(["total", "sum of all"], [np.array([3, 4]), np.array([7, 7])])
    >>> row.total, row["sum of all"]
    (array([3, 4]), array([7, 7]))
    >>> row
    Row(total: int64[2], sum of all: int64[2])
    """

    __slots__ = ("_columns",)

    def __init__(self, names: Sequence[str], columns: Sequence[Any]) -> None:
        self._columns = dict(zip(names, columns))

    def __getattr__(self, name: str) -> Any:
        try:
            return self._columns[name]
        except KeyError:
            raise AttributeError(f"there is no column {name!r}: {known(name, self._columns)}") from None

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def __repr__(self) -> str:
        return (
            f"Row({', '.join(f'{name}: {name_of(column)}[{len(column)}]' for name, column in self._columns.items())})"
        )

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._columns]


def takes_a_row(function: Callable[..., Any]) -> bool:
    """Return whether a function has exactly one parameter that is given by position."""
    try:
        parameters = signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return [each.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD) for each in parameters] == [True]


def by_row(names: Sequence[str], function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of columns that calls one of a `Row`; of a single column, one that receives the column.

    >>> by_row(["total"], lambda r: r.total > 3)(np.array([3, 4]))
    Traceback (most recent call last):
    AttributeError: 'numpy.ndarray' object has no attribute 'total': there is one column, which the function receives
    """
    if len(names) > 1:
        return lambda *columns: function(Row(names, columns))

    def of_column(column: Any) -> Any:
        try:
            return function(column)
        except AttributeError as error:
            if error.name == names[0] and error.obj is column:
                error.args = (f"{error}: there is one column, which the function receives",)
            raise

    return of_column
