"""Reductions written for one key."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from differential.arrangement.core import C, Keyed
from differential.operators.groups import Groups
from differential.operators.reduce import reduce
from timely.errors import DataError


def reduce_each(
    collection: Keyed[C],
    function: Callable[[Any, list[tuple[Any, int]]], Iterable[Any]],
    *,
    name: str = "reduce_each",
) -> C:
    """Return (key, value) for every value in `function(key, values)`, called for each key that has changed.

    `values` is a list of (value, count) in ascending order, never empty; keys and values of several columns are
    tuples. A call costs Python objects for every value of the key, some microseconds in all: it is the form to try
    things out with, and `reduce`, which is given all keys at once, the one for large collections.

    A DataError ends the run where `function` returns no list of values, or values of several kinds.

    >>> def median(key, values):
    ...     return [values[len(values) // 2][0]]
    >>> example(lambda scope: Collection.of(scope, np.array([1, 1, 1]), np.array([9, 2, 4])).reduce_each(median))
    [((1, 4), 1)]
    """

    def batched(groups: Groups) -> Any:
        keys = _rows(groups.keys, len(groups))
        values = _rows(groups.values, len(groups.counts))
        pairs = list(zip(values, groups.counts.tolist()))
        bounds = groups.offsets.tolist()
        index: list[int] = []
        found: list[Any] = []
        for group, key in enumerate(keys):
            said = _values(function(key, sorted(pairs[bounds[group] : bounds[group + 1]])), key)
            index += [group] * len(said)
            found += said
        if found and isinstance(found[0], tuple):
            return (np.array(index, np.int64), *(list(field) for field in zip(*found, strict=True)))
        return np.array(index, np.int64), found

    return reduce(collection, batched, name=name)


def _values(said: Any, key: Any) -> list[Any]:
    """Return what a function says of a key as a list, which text is not meant to be."""
    if isinstance(said, Iterable) and not isinstance(said, (str, bytes)):
        return list(said)
    raise DataError(f"the function of reduce_each must return a list of values, not {said!r:.80} for {key!r:.80}")


def _rows(columns: tuple[Any, ...], length: int) -> list[Any]:
    """Return the rows of columns as Python values: of one column its fields, else tuples."""
    if len(columns) == 1:
        fields: list[Any] = columns[0].tolist()
        return fields
    return list(zip(*(column.tolist() for column in columns))) if columns else [()] * length
