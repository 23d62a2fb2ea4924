"""Reductions written for one key."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from types import NoneType
from typing import Any

import numpy as np

from differential.arrangement.core import C, Keyed
from differential.operators.groups import Groups, ranks
from differential.operators.reduce import reduce
from timely.errors import DataError
from timely.lowlevel import Items, Typed, as_columns, check_parameters, typed


def reduce_each(
    collection: Keyed[C], function: Callable[[Any, list[tuple[Any, int]]], Iterable[Any]], *, name: str = "reduce_each"
) -> C:
    """Return (key, value) for every value in `function(key, values)`, called for each key that has changed.

    `values` is a list of (value, count) in ascending order, never empty: NaN is greater than all numbers, and null
    greater than all. Keys and values of several columns are tuples. A call costs Python objects for every value of the
    key, some microseconds in all. Try things out in this form; for large collections use `reduce`, which receives all
    keys at once.

    Values of any column may be returned as they were given, also nulls, decimals, dates and lists. A tuple of fields is
    a value of several columns; a list that `function` was given is one value.

    A DataError ends the run where `function` returns no list of values, or values of several kinds, such as integers
    beside floats, or of different numbers of columns.

    >>> def median(key, values):
    ...     return [values[len(values) // 2][0]]
    >>> example(lambda scope: Collection.of(scope, np.array([1, 1, 1]), np.array([9, 2, 4])).reduce_each(median))
    [((1, 4), 1)]
    """
    check_parameters(name, 2, "a key and the list of its (value, count)", function=function)

    def batched(groups: Groups) -> Any:
        keys = _rows(groups.keys, len(groups))
        columns, counts = groups.values, groups.counts
        as_in_python = all(map(_is_as_in_python, columns))
        if not as_in_python:
            # By group before all else, so that the offsets of the groups still hold.
            order = np.lexsort((*(ranks(column) for column in reversed(columns)), groups.index))
            columns, counts = tuple(column[order] for column in columns), counts[order]
        pairs = list(zip(_rows(columns, len(counts)), counts.tolist()))
        bounds = groups.offsets.tolist()
        index: list[int] = []
        found: list[Any] = []
        for group, key in enumerate(keys):
            values = pairs[bounds[group] : bounds[group + 1]]
            # The values of a group are distinct, so counts do not decide the order of the pairs.
            returned = _values(function(key, sorted(values) if as_in_python else values), key)
            index += [group] * len(returned)
            found += returned
        return (np.array(index, np.int64), *_columns(found, groups.values))

    return reduce(collection, batched, name=name)


def _values(returned: Any, key: Any) -> list[Any]:
    """Return what a function has returned for a key as a list; text is not a list."""
    if isinstance(returned, Iterable) and not isinstance(returned, (str, bytes)):
        return list(returned)
    raise DataError(f"the function of reduce_each must return a list of values, not {returned!r:.80} for {key!r:.80}")


def _is_as_in_python(column: Any) -> bool:
    """Return whether Python orders the values of a column as their type does; it has no order of NaN and nulls."""
    return not isinstance(column, Typed) and column.dtype.kind in "biuTO"


def _columns(found: list[Any], given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the values that a function has returned as columns: of tuples their fields, else one column.

    `given` are the value columns that it has received.
    """
    if not found or not _is_record(found[0]):
        return (_column(found, given),)
    width = len(found[0])
    others = [value for value in found if not _is_record(value) or len(value) != width]
    if others:
        raise DataError(
            f"the function of reduce_each returned {found[0]!r:.80} as one value and {others[0]!r:.80} as another: all "
            "values have the same number of columns"
        )
    likely = [(column,) for column in given] if len(given) == width else [given] * width
    return tuple(_column(list(field), columns) for field, columns in zip(zip(*found), likely))


def _is_record(value: Any) -> bool:
    """Return whether a value has several columns: a tuple that is not a value of a column of lists."""
    return isinstance(value, tuple) and not isinstance(value, Items)


def _column(items: list[Any], given: tuple[Any, ...]) -> Any:
    """Return a column: of the logical type of one of the columns given if that has values of these classes.

    So its type depends neither on which keys share a call, nor on whether one of their values is null.
    """
    kinds = {kind: item for item in items if (kind := _kind_of_number(item)) is not None}
    if len(kinds) > 1:
        one, other, *_ = kinds.values()
        raise DataError(
            f"the function of reduce_each returned {one!r} as one value and {other!r} as another: return numbers of "
            "one kind, such as float(number) for each"
        )
    classes = set(map(type, items)) - {NoneType}
    for column in given:
        if isinstance(column, Typed) and classes <= set(map(type, column.tolist())):
            with suppress(DataError):
                return typed(items, column.type.name)
    try:
        return as_columns((items,))[0]
    except DataError as error:
        raise DataError(
            f"what the function of reduce_each returned is not a column: {error.fault}; return values of one kind, and "
            "None only beside values of a value column that may have nulls"
        ) from None


def _kind_of_number(value: Any) -> str | None:
    """Return the kind of a number, as NumPy abbreviates it; None for anything else."""
    if isinstance(value, (bool, np.bool_)):
        return "b"
    if isinstance(value, (int, np.integer)):
        return "i"
    return "f" if isinstance(value, (float, np.floating)) else None


def _rows(columns: tuple[Any, ...], length: int) -> list[Any]:
    """Return the rows of columns as Python values: of one column its fields, else tuples."""
    if len(columns) == 1:
        fields: list[Any] = columns[0].tolist()
        return fields
    return list(zip(*(column.tolist() for column in columns))) if columns else [()] * length
