"""Functions of columns, and the arrays that they compare, checked where their mistakes would be silent.

The variables that a function of a view reads must stay as they are while the view exists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from dis import get_instructions
from functools import partial
from math import isclose
from types import CellType, CodeType, FunctionType, MappingProxyType, MethodType, NoneType
from typing import Any, NamedTuple

import numpy as np

from differential.session.alike import Alike
from differential.session.row import Row, by_name, has_columns_as_parameters, name_column
from timely.errors import BuildError, ComparisonError
from timely.lowlevel import (
    COMPARISONS,
    ColumnLike,
    Typed,
    name_of,
    refuse_comparison,
    refuse_members,
    typed,
    user_origin,
)


def checked_by_name(collection: Alike, what: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return what `by_name` makes of a function for a collection, checked.

    Raises BuildError if the function takes columns by position, and these are in another order than in their table.
    """
    made = by_name(what, collection.names, function, collection._unnamed)
    if made is function and not has_columns_as_parameters(function, collection.names):
        collection.refuse_positions(what)
    return checked(collection.names, made, function, types=collection.types)


def checked(
    names: Sequence[str] | None,
    function: Callable[..., Any],
    *written: object,
    types: Mapping[str, str] = MappingProxyType({}),
) -> Callable[..., Any]:
    """Return a function of columns of these names that is made of functions which a program has written, and checked.

    It raises ComparisonError if it compares what can never be equal. So that this does not depend on rows, it is called
    with columns that have none: at once if the `types` of all are known, and before its first call. What `rowwise`
    makes of a function is not called for this, because Python compares its values.

    It raises BuildError if what it returns for a row is not what it returns for the row alone: some rows of the first
    batch with several are tried, and before that a first row that comes alone is tried together with itself.

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
    if names and not is_compared and all(name in types for name in names):
        is_compared = True
        try:
            _try_without_rows(names, function, [typed([], types[name]) for name in names])
        except ComparisonError as error:
            raise ComparisonError(f"the function (at {user_origin()}): {error}", error.obj) from None
    is_begun = is_tried = False

    def of_columns(*columns: Any) -> Any:
        nonlocal is_begun, is_compared, is_tried
        if variables:
            refuse_changes(variables)
        if is_tried or not len(columns[0]):  # a batch without rows shows nothing: a later one is tried
            return function(*columns)
        if not is_compared:
            is_compared = True
            _try_without_rows(names or (), function, [column[:0] for column in columns])
        result = function(*columns)
        if len(columns[0]) > 1:
            is_tried = True
            _refuse_other_rows(function, columns, result)
        elif not is_begun:
            twice = tuple([column[[0, 0]] for column in columns])
            _refuse_other_rows(function, twice, function(*twice))
        is_begun = True
        return result

    return of_columns


def nullable_results(names: Sequence[str], function: Callable[..., Any], types: Mapping[str, str]) -> dict[int, str]:
    """Return the types of those columns returned by a function of columns that may have nulls, by their positions.

    None is known unless the `types` of all columns are, and one of these may have nulls. What `rowwise` makes of a
    function is not called for this.

    >>> nullable_results(["n"], lambda n: (n, n + 1, n > 3), {"n": "int64?"})
    {0: 'int64?', 1: 'int64?', 2: 'bool?'}
    """
    of = [types.get(name, "") for name in names]
    if hasattr(function, "rowwise") or not all(of) or not any(each.endswith("?") for each in of):
        return {}
    result = _try_without_rows(names, function, [typed([], each) for each in of])
    columns = enumerate(result if isinstance(result, tuple) else (result,))
    return {place: name_of(each) for place, each in columns if isinstance(each, Typed) and name_of(each).endswith("?")}


def _try_without_rows(names: Sequence[str], function: Callable[..., Any], columns: Sequence[Any]) -> Any:
    """Return what a function returns for columns without rows, None if it raises an error.

    Raises ComparisonError if it compares what can never be equal, AttributeError for an unknown column.
    """
    views = [column.view(Compared) if type(column) is np.ndarray else column for column in columns]
    try:
        with np.errstate(all="ignore"):
            return function(*views)
    except ComparisonError as error:
        name_column(error, names, views)
        raise
    except AttributeError as error:
        if isinstance(error.obj, Row):
            raise
    except Exception:
        pass
    return None


def _refuse_other_rows(function: Callable[..., Any], columns: tuple[Any, ...], result: Any) -> None:
    """Raise BuildError if what a function has returned for a row depends on the rows that it received with it."""
    rows = len(columns[0])
    texts = [each for each in (result if isinstance(result, tuple) else (result,)) if isinstance(each, str)]
    if isinstance(result, bool) or any(str(column) in text for text in texts for column in columns):
        return  # these have errors of their own
    for row in {0, rows // 3, rows // 3 * 2, rows - 1}:
        try:
            with np.errstate(all="ignore"):
                alone = _values(function(*(column[row : row + 1] for column in columns)), 0, 1)
            among = _values(result, row, rows)
            differing = [(one, other) for one, other in zip(among, alone) if not _is_same(one, other)]
        except Exception:  # it fails for the row alone, or its values cannot be compared: this shows nothing
            continue
        if differing:
            one, other = differing[0]
            values = tuple(column[row : row + 1].tolist()[0] for column in columns)
            raise BuildError(
                f"the function returns {one!r:.80} for the row {values!r:.160} among {rows:,} rows, and {other!r:.80} "
                "for the row alone: which rows it receives together is not determined, so what it returns for a row "
                "must depend on that row only. group_by(...), its top_k(...) and window(...) compute over "
                "rows"
            )


class _Length(NamedTuple):
    """How many values a column has that a function has returned, if it received another number of rows."""

    values: int

    def __repr__(self) -> str:
        return f"a column of {self.values:,}"


def _values(result: Any, row: int, rows: int) -> list[Any]:
    """Return what a function has returned for a row: from columns the values, and what else it has returned."""
    parts: tuple[Any, ...] = result if isinstance(result, tuple) else (result,)
    return [_value(each, row, rows) if isinstance(each, (np.ndarray, ColumnLike, list)) else each for each in parts]


def _value(column: Any, row: int, rows: int) -> Any:
    if len(column) != rows:
        return _Length(len(column))
    found = column[row : row + 1]
    return found[0] if isinstance(found, list) else found.tolist()[0]


def _is_same(one: Any, other: Any) -> bool:
    """Return whether two values are equal; floats may be as far apart as NumPy's for one row and for many are."""
    if isinstance(one, float) and isinstance(other, float) and isclose(one, other, rel_tol=1e-6, abs_tol=1e-12):
        return True
    # NaN and NaT, of whatever class, differ from themselves.
    return bool(one == other) or (one is None and other is None) or bool(one != one and other != other)


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
        # Of plain arrays: NumPy would call this method again for others.
        plain = {name: tuple(map(_plain, each)) if name == "out" else _plain(each) for name, each in options.items()}
        result = getattr(ufunc, method)(*map(_plain, inputs), **plain)
        return result.view(Compared) if isinstance(result, np.ndarray) else result

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: Iterable[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        refuse_members(function, tuple(args))
        return super().__array_function__(function, types, args, kwargs)


def _plain(operand: Any) -> Any:
    return operand.view(np.ndarray) if isinstance(operand, Compared) else operand


_SIMPLE = (bool, int, float, complex, str, bytes, NoneType, Decimal, date, time, timedelta, np.generic)
_UNBOUND = object()


class FunctionVariable(NamedTuple):
    """A variable that a function reads, `place`, and the value that it has had from the beginning."""

    name: str
    place: CellType | dict[str, Any]
    value: Any

    def now(self) -> Any:
        """Return the value that it has now, `_UNBOUND` if it has none."""
        if isinstance(self.place, dict):
            return self.place.get(self.name, _UNBOUND)
        try:
            return self.place.cell_contents
        except ValueError:
            return _UNBOUND


def variables_of(function: object) -> list[FunctionVariable]:
    """Return the variables with plain values that a function reads from around it, and does not assign.

    >>> least = 10
    >>> [(name, value) for name, _, value in variables_of(lambda r: r.total > least)]
    [('least', 10)]
    """
    plain = _written(function)
    if plain is None:
        return []
    codes = list(_all_code(plain.__code__))
    around = {name for code in codes for name in code.co_names if _is_simple(plain.__globals__.get(name, _UNBOUND))}
    if not around and not plain.__closure__:
        return []
    read, assigned = set(), set()
    for code in codes:
        for each in get_instructions(code):
            if each.opname == "LOAD_GLOBAL":
                read.add(each.argval)
            elif each.opname in ("STORE_GLOBAL", "STORE_DEREF", "DELETE_GLOBAL", "DELETE_DEREF"):
                assigned.add(each.argval)
    places: dict[str, CellType | dict[str, Any]] = dict.fromkeys(read & around, plain.__globals__)
    places |= zip(plain.__code__.co_freevars, plain.__closure__ or ())
    found = [FunctionVariable(name, place, None) for name, place in sorted(places.items()) if name not in assigned]
    known = [each._replace(value=each.now()) for each in found]
    return [each for each in known if _is_simple(each.value)]


def _written(function: object) -> FunctionType | None:
    """Return the function that a program has written, of one that was made of it."""
    while not isinstance(function, FunctionType) or hasattr(function, "rowwise"):
        if isinstance(function, partial):
            function = function.func
        elif isinstance(function, MethodType):
            function = function.__func__
        elif hasattr(function, "rowwise"):
            function = function.rowwise
        else:
            return None
    return function


def _all_code(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _all_code(each)


def _is_simple(value: object) -> bool:
    if isinstance(value, (tuple, frozenset)):
        return all(map(_is_simple, value))
    return isinstance(value, _SIMPLE)


def refuse_changes(variables: list[FunctionVariable]) -> None:
    """Raise BuildError if a variable has another value than from the beginning."""
    for each in variables:
        now = each.now()
        # By identity first: NaN is not equal to itself.
        if now is not each.value and (type(now) is not type(each.value) or now != each.value):
            raise BuildError(
                f"the function reads the variable {each.name!r}, which was {each.value!r:.80} when it was given to the "
                f"view, and is {now!r:.80} now: what the view has computed before would not match. A default keeps the "
                f"value, as in `lambda r, {each.name}={each.name}: ...`"
            )
