"""Calling user functions: they read columns, and own nothing of a dataflow.

Batches are shared: several operators and traces read the same arrays. So a function receives read-only views, and an
attempt to write raises an error at the line that makes it. The result of the function must not change later either.
`call` takes an array over if nothing else refers to it, and copies an array that the program still holds, or that is a
view of memory that the program can write to. A view that is returned as it was received is replaced by the original
array, so a projection copies nothing.

Reference counts show whether something else refers to an array. The lowest count of a fresh result is measured when
this module is imported. A count that is higher for any other reason costs a copy, but never changes the result.

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
from decimal import InvalidOperation
from dis import opmap
from inspect import signature
from sys import getrefcount
from typing import Any, Final, TypeVar

import numpy as np

from timely.arguments import takes_arguments
from timely.data.column_like import instead
from timely.data.columns import as_column
from timely.data.logical import Array
from timely.errors import DataError
from timely.origin import is_ours

B = TypeVar("B")


def read_only_views(columns: tuple[Array, ...]) -> tuple[Array, ...]:
    """Return read-only views of columns.

    >>> [view.flags.writeable for view in read_only_views((np.arange(3), np.arange(2)))]
    [False, False]
    """
    views = []
    for column in columns:
        view = column[...]
        view.setflags(False)  # type: ignore[call-arg]  # by position: a keyword argument takes half as long again
        views.append(view)
    return tuple(views)


def as_read_only(batch: B) -> B:
    """Return a batch for a program to read: columns become read-only, other batches stay as they are.

    The records of a list are the program's own objects, and are not protected.

    >>> as_read_only([np.arange(2)])[0].flags.writeable
    True
    """
    if type(batch) is list:
        return batch
    as_view: Callable[[], B] | None = getattr(batch, "as_read_only", None)
    return batch if as_view is None else as_view()


def for_other_worker(batch: B) -> B:
    """Return a batch that another worker may read, where its class distinguishes such batches.

    >>> for_other_worker([1, 2])
    [1, 2]
    """
    as_portable: Callable[[], B] | None = getattr(batch, "for_other_worker", None)
    return batch if as_portable is None else as_portable()


def freeze(columns: tuple[Array, ...]) -> tuple[Array, ...]:
    """Return columns that may become part of a dataflow: the given arrays, now read-only; most views are copied.

    A view is not copied if the array behind it is read-only, or if nothing but the view refers to that array: then it
    becomes read-only, too. Views of an array that exist already stay writable: a program must not write to them.

    >>> numbers = np.arange(3)
    >>> freeze((numbers,))[0] is numbers, numbers.flags.writeable
    (True, False)
    >>> freeze((numbers[1:],))[0].base is numbers
    True
    >>> more = np.arange(3)
    >>> freeze((more[1:],))[0].base is None
    True
    """
    frozen = []
    for column in columns:
        if _shares_writable(column):
            if _has_base_alone(column):
                column.base.setflags(False)  # type: ignore[union-attr, call-arg]  # by position, as above
            else:
                column = column.copy()
        column.setflags(False)  # type: ignore[call-arg]
        frozen.append(column)
    return tuple(frozen)


def call(function: Callable[..., Any], columns: tuple[Array, ...], *before: Any, explains: bool = True) -> Any:
    """Return the result of `function(*before, *columns)` in a form that the program cannot change any more.

    `explains` adds a note to errors, which takes longer than most calls: for callers that show them.

    >>> numbers = np.arange(3)
    >>> call(lambda column: (column, 2 * column), (numbers,))[0] is numbers
    True
    """
    views = read_only_views(columns)
    try:
        result = _applied(function, before, views)
    except _MISTAKES as error:
        if explains:
            add_hint(error, function, before, views)
        raise
    return _kept(result, views, columns, _limits[0], _limits[1])


def consult(function: Callable[..., Any], columns: tuple[Array, ...], *before: Any) -> Any:
    """Return the result of `function(*before, *columns)`, for callers that read it at once and do not keep it.

    >>> consult(lambda limit, column: column < limit, (np.arange(3),), 2)
    array([ True,  True, False])
    """
    views = read_only_views(columns)
    try:
        result = _applied(function, before, views)
    except _MISTAKES as error:
        add_hint(error, function, before, views)
        raise
    return as_column(result) if isinstance(result, np.ma.MaskedArray) else result


def _applied(function: Callable[..., Any], before: tuple[Any, ...], views: tuple[Array, ...]) -> Any:
    """Return `function(*before, *views)`; in compiled code a call with few arguments need not gather them first."""
    if not before:
        if len(views) == 1:
            return function(views[0])
        if len(views) == 2:
            return function(views[0], views[1])
        if len(views) == 3:
            return function(views[0], views[1], views[2])
    return function(*before, *views)


OF_A_ROW: Final = "for the row "
"""How a note begins about an error of a function that `timely.rowwise` has called."""

_MISTAKES: Final = (TypeError, ValueError, AttributeError, InvalidOperation)
"""Errors raised by functions that were not written for columns."""


def add_hint(error: Exception, function: Callable[..., Any], before: tuple[Any, ...], views: tuple[Array, ...]) -> None:
    """Add a note to an error raised in a function: what the function received, and how functions of columns work.

    An error raised by a `raise` statement of the program gets no note: it explains itself. If a function of this
    library received too few or too many columns, the program passed a collection of another form to an algorithm. Then
    a DataError names the columns, instead of the function.

    >>> try:
    ...     call(lambda x: 1 if x > 1 else 0, (np.arange(3),))
    ... except ValueError as error:
    ...     print(*error.__notes__)
    it received int64[3]; functions receive whole columns, which are read-only (conditions are joined by ...
    """
    if _was_raised(error) or any(note.startswith(OF_A_ROW) for note in getattr(error, "__notes__", ())):
        return
    received = ", ".join([f"{column.dtype.name}[{len(column)}]" for column in views])
    takes = takes_arguments(function, len(before) + len(views))
    if not takes and (code := getattr(function, "__code__", None)) is not None and is_ours(code.co_filename):
        columns = ", ".join(list(signature(function).parameters)[len(before) :])
        raise DataError(
            f"this takes records of the columns {columns}, and received {len(views)} column(s): {received}; pass "
            "collections that have these columns: collection.map(lambda a, b, c: (a, b)) leaves one out"
        ) from None
    if takes:
        # NumPy has no class of errors for the truth of an array. Where the text differs, the hint is shorter.
        is_of_a_condition = type(error) is ValueError and "ambiguous" in str(error)
        joined = " (conditions are joined by `&` and `|`, and `np.where` chooses between values)"
        remedy = joined if is_of_a_condition else ""
        if isinstance(error, AttributeError) and isinstance(error.obj, np.ndarray):
            remedy = instead(error.name or "")
        hint = (
            f"functions receive whole columns, which are read-only{remedy}; "
            "timely.rowwise(f) makes one of a function f of one row's values"
        )
    else:
        hint = "most functions are given each column of the records as an argument"
    error.add_note(f"it received {received}; {hint}")


def _was_raised(error: Exception) -> bool:
    """Return whether a `raise` statement in Python code raised an error, rather than an operation on an array."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    return place is not None and place.tb_frame.f_code.co_code[place.tb_lasti] == _RAISE


_RAISE = opmap["RAISE_VARARGS"]


def _kept(value: Any, views: tuple[Array, ...], columns: tuple[Array, ...], limit: int, limit_of_tuple: int) -> Any:
    """Return a value that contains no array to which the program can write.

    An array with at most `limit` references, or a tuple with at most `limit_of_tuple`, is not held by the program.
    `columns` are the arrays behind the `views` that the function received. Tuples are processed element by element.
    Other values are returned as they are: they are copied when they become columns.
    """
    if type(value) is np.ndarray:
        for place, view in enumerate(views):
            if view is value:
                return columns[place]
        if getrefcount(value) > limit or not (value.base is None or _is_ours(value, columns)):
            return value.copy()
        return value
    if type(value) is tuple:
        # If the program holds the tuple, it can reach the arrays in it, so they are copied.
        inner = _limits[2] if getrefcount(value) <= limit_of_tuple else 0
        return tuple([_kept(each, views, columns, inner, 0) for each in value])
    if type(value) is str:
        _refuse_text_of_columns(value, views)
    return as_column(value) if isinstance(value, np.ndarray) else value


def _refuse_text_of_columns(text: str, views: tuple[Array, ...]) -> None:
    """Raise DataError if a text for all rows has a whole column in it, as an f-string with a column makes it."""
    for view in views:
        if len(view) and str(view) in text:
            raise DataError(
                f"a function returned one text for all rows, with a whole column in it: {text!r:.80}; "
                "timely.rowwise(function) calls a function, such as one with an f-string, for each row, and + joins "
                "columns of text"
            )


def _is_ours(value: Array, columns: tuple[Array, ...]) -> bool:
    """Return whether the program cannot write to the memory of a view: it belongs to `columns`, or to an array to which
    only the view refers."""
    if not value.flags.writeable:
        for column in columns:
            if value.base is column or value.base is column.base:
                return True
    return _has_base_alone(value)


def _shares_writable(column: Array) -> bool:
    """Return whether a column is a view of memory to which something else may write."""
    base = column.base
    return base is not None and (type(base) is not np.ndarray or base.flags.writeable)


def _has_base_alone(view: Array) -> bool:
    """Return whether nothing but a view refers to the array that has its memory. No caller may refer to that array."""
    base = view.base
    return type(base) is np.ndarray and base.base is None and getrefcount(base) <= _limits[3]


_limits: Final = [0, 0, 0, 0]
"""The reference counts of a fresh array that is the result, of a tuple that is, of an array in it, or behind a view."""

_MOST_REFERENCES = 16
"""More references than a fresh result has in any interpreter."""


def _measure() -> None:
    """Find the lowest limits with which fresh results are not copied."""
    results: list[Callable[[], Any]] = [_fresh_array, _fresh_tuple, _fresh_tuple, _fresh_view]
    _limits[2] = _MOST_REFERENCES  # until its turn, so that only what counts the tuple matters
    for place, fresh in enumerate(results):
        _limits[place] = 0
        while not _keeps(fresh):
            if _limits[place] == _MOST_REFERENCES:  # reference counts mean something else here: copy everything
                _limits[place] = 0
                break
            _limits[place] += 1


def _fresh_array() -> Any:
    return np.empty(1)


def _fresh_tuple() -> Any:
    return np.empty(1), np.empty(1)


def _fresh_view() -> Any:
    return np.empty(2)[1:]


def _keeps(fresh: Callable[[], Any]) -> bool:
    """Return whether the arrays of a result that nothing else refers to are kept without a copy."""
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
