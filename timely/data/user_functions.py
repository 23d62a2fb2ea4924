"""Calling the functions of a program: they read columns, and own nothing of a dataflow.

Batches are shared: siblings of an operator, and traces, read the same arrays. So a function receives read-only views,
and an attempt to write raises in the line that makes it. What the function returns must not change afterwards either:
`call` takes over an array that nobody else refers to, and copies one that the program still holds, or that is a view of
memory the program can write to. A view that is returned as it was received becomes the array behind it again, so a
projection copies nothing.

Whether somebody else refers to an array shows in its reference count: the least that a fresh result has is measured
when this module is imported. A count that is higher for another reason costs a copy, and never the right answer.

>>> def spoil(column):
...     column += 1
>>> call(spoil, (np.arange(3),))
Traceback (most recent call last):
...
ValueError: ...output array is read-only
it received int64[3]; functions receive whole columns, which are read-only; ...
"""

from __future__ import annotations

from collections.abc import Callable
from dis import opmap
from inspect import signature
from sys import getrefcount
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timely.data.columns import as_column

Array = NDArray[Any]


def read_only_views(columns: tuple[Array, ...]) -> tuple[Array, ...]:
    """Return read-only views of columns.

    >>> [view.flags.writeable for view in read_only_views((np.arange(3), np.arange(2)))]
    [False, False]
    """
    views = []
    for column in columns:
        view = column[:]
        view.setflags(False)  # type: ignore[call-arg]  # by its name it takes half as long again
        views.append(view)
    return tuple(views)


def freeze(columns: tuple[Array, ...]) -> tuple[Array, ...]:
    """Return columns that become part of a dataflow: the arrays given, now read-only, and copies of views of others.

    Views of an array that were made before stay writable: a program must not write to these.

    >>> numbers = np.arange(3)
    >>> freeze((numbers,))[0] is numbers, numbers.flags.writeable
    (True, False)
    >>> freeze((np.arange(3)[1:],))[0].base is None
    True
    """
    frozen = []
    for column in columns:
        base = column.base
        if base is not None and (type(base) is not np.ndarray or base.flags.writeable):
            column = column.copy()
        column.setflags(write=False)
        frozen.append(column)
    return tuple(frozen)


def call(function: Callable[..., Any], columns: tuple[Array, ...], *before: Any) -> Any:
    """Return `function(*before, *columns)`, whose result the program cannot change any more.

    >>> numbers = np.arange(3)
    >>> call(lambda column: (column, 2 * column), (numbers,))[0] is numbers
    True
    """
    views = read_only_views(columns)
    try:
        result = function(*before, *views)
    except _MISTAKES as error:
        add_hint(error, function, before, views)
        raise
    return _kept(result, views, columns, _limits[0])


def consult(function: Callable[..., Any], columns: tuple[Array, ...], *before: Any) -> Any:
    """Return `function(*before, *columns)`, whose result is read at once.

    >>> consult(lambda limit, column: column < limit, (np.arange(3),), 2)
    array([ True,  True, False])
    """
    views = read_only_views(columns)
    try:
        result = function(*before, *views)
    except _MISTAKES as error:
        add_hint(error, function, before, views)
        raise
    return as_column(result) if isinstance(result, np.ma.MaskedArray) else result


_MISTAKES = (TypeError, ValueError, AttributeError)
"""What functions raise that were written for something else than columns."""


def add_hint(error: Exception, function: Callable[..., Any], before: tuple[Any, ...], views: tuple[Array, ...]) -> None:
    """Add a note to an error that came up in a function: what it received, and what functions of columns are.

    An error that the program raised itself explains itself, and gets none.

    >>> try:
    ...     call(lambda x: 1 if x > 1 else 0, (np.arange(3),))
    ... except ValueError as error:
    ...     print(*error.__notes__)
    it received int64[3]; functions receive whole columns, which are read-only; rowwise(f) makes one of ...
    """
    if _was_raised(error):
        return
    received = ", ".join([f"{column.dtype.name}[{len(column)}]" for column in views])
    if _takes(function, len(before) + len(views)):
        hint = (
            "functions receive whole columns, which are read-only; rowwise(f) makes one of a function f of one row's "
            "values"
        )
    else:
        hint = "most functions are given each column of the records as an argument"
    error.add_note(f"it received {received}; {hint}")


def _was_raised(error: Exception) -> bool:
    """Return whether a `raise` statement of Python raised an error, and no operation of an array's."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    return place is not None and place.tb_frame.f_code.co_code[place.tb_lasti] == _RAISE


_RAISE = opmap["RAISE_VARARGS"]


def _takes(function: Callable[..., Any], arguments: int) -> bool:
    """Return whether a function can be called with so many arguments, as far as can be known."""
    try:
        parameters = signature(function)
    except (TypeError, ValueError):  # one written in C has none
        return True
    try:
        parameters.bind(*[None] * arguments)
    except TypeError:
        return False
    return True


def _kept(value: Any, views: tuple[Array, ...], columns: tuple[Array, ...], limit: int) -> Any:
    """Return a value without arrays that the program can write to.

    The program does not hold a value of at most `limit` references. `columns` are the arrays behind the `views` that
    the function received. Tuples are looked into. What is neither an array nor a tuple becomes a column by being
    copied, and is returned as it is.
    """
    if type(value) is np.ndarray:
        for place, view in enumerate(views):
            if view is value:
                return columns[place]
        base = value.base
        if getrefcount(value) > limit or not (base is None or _is_ours(value, base, columns)):
            return value.copy()
        return value
    if type(value) is tuple:
        inner = _limits[1] if getrefcount(value) <= limit else 0
        return tuple([_kept(each, views, columns, inner) for each in value])
    return as_column(value) if isinstance(value, np.ndarray) else value


def _is_ours(value: Array, base: Any, columns: tuple[Array, ...]) -> bool:
    """Return whether only the dataflow can write to the memory of a view: that of `columns`, or of an array to which
    nothing but the view refers."""
    if not value.flags.writeable:
        for column in columns:
            if base is column or base is column.base:
                return True
    return type(base) is np.ndarray and base.base is None and getrefcount(base) <= _limits[2]


_limits = [0, 0, 0]
"""The references to a fresh array that is the result, in a tuple that is the result, and behind a view."""

_MOST_REFERENCES = 16
"""More than a fresh result has in any interpreter."""


def _measure() -> None:
    """Find the least numbers for which fresh results are not copied."""
    results: list[Callable[[], Any]] = [
        lambda: np.empty(1),
        lambda: (np.empty(1), np.empty(1)),
        lambda: np.empty(2)[1:],
    ]
    for place, fresh in enumerate(results):
        while not _keeps(fresh):
            if _limits[place] == _MOST_REFERENCES:  # counts mean something else here: everything is copied
                _limits[place] = 0
                break
            _limits[place] += 1


def _keeps(fresh: Callable[[], Any]) -> bool:
    """Return whether the arrays of a result that nobody holds are kept as they are."""
    addresses: list[int] = []

    def noting() -> Any:
        result = fresh()
        arrays = result if type(result) is tuple else (result,)
        addresses.extend([array.ctypes.data for array in arrays])
        del arrays
        return result

    kept = call(noting, ())
    return addresses == [array.ctypes.data for array in (kept if type(kept) is tuple else (kept,))]


_measure()
