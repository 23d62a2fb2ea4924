"""A batch of records by the names of its columns: what functions over named columns receive."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import Parameter, signature
from typing import Any

import numpy as np

from differential.session.near import columns_hint, refuse_unnamed
from timely import rowwise
from timely.errors import BuildError, ComparisonError, DataError
from timely.lowlevel import ColumnLike, is_ours, name_of, refusal, user_origin


class Row:
    """The columns of a batch of records by name: `row.total`, or `row["total"]` for any name.

    >>> row = Row(["total", "sum of all"], [np.array([3, 4]), np.array([7, 7])])
    >>> row.total, row["sum of all"]
    (array([3, 4]), array([7, 7]))
    >>> row
    Row(total: int64[2], sum of all: int64[2])
    """

    __slots__ = ("__columns",)

    def __init__(self, names: Sequence[str], columns: Sequence[Any]) -> None:
        if len(names) != len(columns):
            raise DataError(f"the collection has {len(columns)} columns, but {len(names)} names: {', '.join(names)}")
        self.__columns = dict(zip(names, columns))

    def __getattr__(self, name: str) -> Any:
        if name == "_Row__columns":  # of a copy that does not have them yet: `copy` and `pickle` look for methods in it
            raise AttributeError(name)
        try:
            return self.__columns[name]
        except KeyError:
            raise AttributeError(f"there is no column {name!r}: {columns_hint(name, self.__columns)}") from None

    def __getitem__(self, name: str) -> Any:
        return self.__columns[name] if name in self.__columns else self.__getattr__(name)

    def __repr__(self) -> str:
        return f"Row({', '.join(f'{name}: {_shown(column)}' for name, column in self.__columns.items())})"

    def __iter__(self) -> Iterator[Any]:
        return iter(self.__columns.values())

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.__columns]


def _shown(column: Any) -> str:
    """Return what a column is, or a value of `rowwise`."""
    return f"{name_of(column)}[{len(column)}]" if isinstance(column, (np.ndarray, ColumnLike)) else f"{column!r:.80}"


def takes_a_row(function: Callable[..., Any], names: Sequence[str] = ()) -> bool:
    """Return whether a function has one parameter without default, unless its parameters are the `names` of columns."""
    parameters = _parameters(function)
    required = [each for each in parameters if each.default is Parameter.empty]
    takes_one = len(required) == 1 and required[0].kind is not Parameter.VAR_POSITIONAL
    return takes_one and (len(parameters) == 1 or [each.name for each in parameters] != list(names))


def _parameters(function: Callable[..., Any]) -> list[Parameter]:
    """Return the parameters of a function, or of that of `rowwise`, that may be given by position."""
    try:
        parameters = signature(getattr(function, "rowwise", function)).parameters.values()
    except (TypeError, ValueError):
        return []
    return [each for each in parameters if each.kind not in (Parameter.KEYWORD_ONLY, Parameter.VAR_KEYWORD)]


def has_columns_as_parameters(function: Callable[..., Any], names: Sequence[str] | None) -> bool:
    """Return whether the parameters of a function are the names of columns, in their order."""
    return names is not None and [each.name for each in _parameters(function)] == list(names)


def refuse_other_order(what: str, names: Sequence[str], function: Callable[..., Any]) -> None:
    """Raise BuildError if a function of columns has all of their names as parameters, but in another order.

    >>> refuse_other_order("map", ["id", "city"], lambda city, id: city)
    Traceback (most recent call last):
    timely.errors.BuildError: map (at ...): the function receives the columns in the order id, city (the key of a table
    comes first), and has parameters of these names in the order city, id
    """
    given = [each.name for each in _parameters(function)]
    if given != list(names) and sorted(given) == sorted(names):
        raise refusal(
            what,
            f"the function receives the columns in the order {', '.join(names)} (the key of a table comes first), and "
            f"has parameters of these names in the order {', '.join(given)}",
        )


def is_of_the_library(function: Callable[..., Any]) -> bool:
    """Return whether a function belongs to this library, whose algorithms name parameters without regard to columns."""
    code = getattr(getattr(function, "rowwise", function), "__code__", None)
    return code is not None and is_ours(code.co_filename)


def refuse_values(computed: Mapping[str, object]) -> None:
    """Raise BuildError if what computes a column of `select` is neither a function nor the name of a column.

    >>> refuse_values({"one": 1})
    Traceback (most recent call last):
    timely.errors.BuildError: select (at ...): one=1 is neither the name of a column nor a function of a row; lambda r:
    1 makes a column of one value
    """
    for name, value in computed.items():
        if not isinstance(value, str) and not callable(value):
            raise refusal(
                "select",
                f"{name}={value!r:.80} is neither the name of a column nor a function of a row; lambda r: "
                f"{value!r:.80} makes a column of one value",
            )


def by_name(
    what: str, names: Sequence[str] | None, function: Callable[..., Any], unnamed: str | None = None
) -> Callable[..., Any]:
    """Return a function of columns that calls one of a `Row`, or any other function as it is.

    `unnamed` is the reason why columns have no names, if it is known. Raises BuildError for what is not a function, for
    a function of a `Row` of several columns without names, and for one that has the names of all columns as parameters,
    in another order.
    """
    if not callable(function):
        raise BuildError(f"{what} (at {user_origin()}) takes a function of a row of columns, not {function!r:.80}")
    if names is None:
        if takes_a_row(function):
            refuse_unnamed(what, unnamed)
        return function
    if takes_a_row(function, names):
        return by_row(names, function)
    if not is_of_the_library(function):
        refuse_other_order(what, names, function)
    return function


def by_row(names: Sequence[str], function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of columns that calls one of a `Row`; of a single column, one that receives the column.

    >>> by_row(["total"], lambda r: r.total > 3)(np.array([3, 4]))
    Traceback (most recent call last):
    AttributeError: 'numpy.ndarray' object has no attribute 'total': there is one column, which the function receives
    """
    if len(names) > 1:
        return of_columns(names, function)

    def of_column(column: Any) -> Any:
        try:
            return function(column)
        except AttributeError as error:
            # Not an error about something else that the function looks at.
            if error.name == names[0] and error.obj is column:
                error.args = (f"{error}: there is one column, which the function receives",)
            else:
                name_column(error, names, (column,))
            raise

    return of_column


def of_columns(names: Sequence[str], function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of columns that calls one of a `Row`, or of the values of each row if it is `rowwise`.

    Raises BuildError if that has the names of all columns as parameters, in another order.

    >>> both = np.array([3, 4]), np.array([7, 7])
    >>> of_columns(["a", "b"], lambda r: r.a + r.b)(*both), of_columns(["a", "b"], rowwise(lambda r: r.a + r.b))(*both)
    (array([10, 11]), array([10, 11]))
    """
    of_one = getattr(function, "rowwise", None)
    if of_one is None:
        return chosen(names, function)
    if takes_a_row(function, names):
        return rowwise(lambda *values: of_one(Row(names, values)))
    refuse_other_order("rowwise", names, function)
    return function


def chosen(
    names: Sequence[str], made: Callable[[Row], Any] | Sequence[int | Callable[[Row], Any]]
) -> Callable[..., Any]:
    """Return a function of columns that returns what a function of a `Row` makes, or several, and columns by position.

    >>> chosen(["a", "b"], [1, lambda r: r.a + r.b])(np.array([3, 4]), np.array([7, 7]))
    (array([7, 7]), array([10, 11]))
    """

    def of_columns(*columns: Any) -> Any:
        row = Row(names, columns)
        try:
            if callable(made):
                return made(row)
            return tuple([columns[each] if isinstance(each, int) else each(row) for each in made])
        except AttributeError as error:
            name_column(error, names, columns)
            raise

    return of_columns


def name_column(error: AttributeError | ComparisonError, names: Sequence[str], columns: Sequence[Any]) -> None:
    """Add the name of the column that an error is about."""
    name = next((name for name, column in zip(names, columns) if column is error.obj), None)
    if name is not None:
        error.args = (f"column {name!r}: {error}",)


def of_row(names: Sequence[str], function: Callable[..., Any]) -> Callable[[Row], Any]:
    """Return a function of a row of columns of these names that is called once, or for each row if it is `rowwise`."""
    if not hasattr(function, "rowwise"):
        return function
    over_columns = of_columns(names, function)
    return lambda row: over_columns(*row)
