"""Nulls in collections of named columns.

To a collection a null is a value like others, greater than all of them, and a column that may have nulls is of another
type. Named columns that are put together get the same type, and their aggregates leave nulls out, as in SQL. The parts
of aggregates that are here take records of a group and one value, the last column.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from differential.operators import filter as _filter, map as _map
from differential.session.named import with_types
from differential.session.sources.convert import family, may_be_null
from timely.errors import DataError
from timely.lowlevel import fill_null, is_null, name_of, nullable

_ZEROS: dict[str, Any] = {
    **dict.fromkeys(("int64", "uint64", "float16", "float32", "float64", "decimal"), 0),
    "bool": False,
    "duration": dt.timedelta(0),
}
"""What stands for null where values are added up, by the families of types that have sums."""


def are_left_out(of: str | None) -> bool:
    """Return whether aggregates are to leave out the nulls of a column of a type.

    None is a type that is not known before there are rows: then one index serves all aggregates, which refuse nulls.

    >>> are_left_out("int64"), are_left_out("int64?"), are_left_out("date"), are_left_out(None)
    (False, True, True, False)
    """
    return of is not None and may_be_null(of)


def with_nulls_of(relation: Any, others: Sequence[Any]) -> Any:
    """Return a relation whose columns may have nulls where those of others may, if the types are else the same."""
    wanted = {
        position
        for position, name in enumerate(relation.names or ())
        for other in others
        for theirs in (other.names or ())[position : position + 1]
        if other.types.get(theirs) == f"{relation.types.get(name)}?"
    }
    if not wanted:
        return relation
    made = _map.map(
        relation,
        lambda *columns: tuple([nullable(each) if place in wanted else each for place, each in enumerate(columns)]),
        keys=relation.keys,
    )
    types = {name: f"{of}?" if relation.names.index(name) in wanted else of for name, of in relation.types.items()}
    return with_types(relation._alike(made), types)


def with_zeros(records: Any) -> Any:
    """Return the records with 0 for null, if the values are numbers or durations, to be added up."""
    return _of_values(records, _zeroed)


def presence(records: Any) -> Any:
    """Return the records with 0 for null and 1 for other values, whose sums count these."""
    return _of_values(records, lambda column: (~is_null(column)).astype(np.int64))


def largest(records: Any) -> Any:
    """Return (group, largest value), null for groups of nulls alone."""
    found = _filter.filter(records, lambda *columns: ~is_null(columns[-1])).max()
    nulls = _filter.filter(records, lambda *columns: is_null(columns[-1])).distinct()
    groups = _map.map(found, lambda *columns: columns[:-1], keys=records.keys)
    return found.concat(nulls.antijoin(groups))


def refuse_nulls(column: str, largest: Any) -> None:
    """Have the run end with a DataError where one of the largest values of groups is null, so that there is a null."""

    def refuse(*columns: Any) -> Any:
        if is_null(columns[-1]).any():
            raise DataError(
                f"max: column {column!r} has nulls, and its type is not known before there are rows: "
                f"filter(lambda r: ~is_null(r[{column!r}])), with is_null of differential.frames, leaves nulls out"
            )
        return columns

    _map.map(largest, refuse, keys=largest.keys)  # what it returns would need an index of its own


def _of_values(records: Any, function: Any) -> Any:
    made = _map.map(records, lambda *columns: (*columns[:-1], function(columns[-1])), keys=records.keys)
    return made.named(*records.names)


def _zeroed(column: NDArray[Any]) -> NDArray[Any]:
    """Return a column without nulls; one of values that have no sum as it is."""
    name = name_of(column)
    zero = _ZEROS.get(family(name))
    if zero is None or not (name.endswith("?") or is_null(column).any()):
        return column
    filled: NDArray[Any] = fill_null(column, zero)
    return filled
