"""The names and kinds of a table's columns, which every row must fit.

A kind is that of the first values, or of a type given for the column. Values that fit exactly are converted: booleans
and whole numbers to floats, booleans to whole numbers, narrow floats to wide ones. Anything else is refused, in the
statement that has it, so that nothing that a table holds can be refused later.

>>> schema = Schema(["item", "price"])
>>> schema.fit("stock", ["item", "price"], (np.array(["nut"]), np.array([0.5])))[1]
array([0.5])
>>> schema.fit("stock", ["price", "item"], (np.array([3]), np.array(["cog"])))[0]
array([3.])
>>> schema.fit("stock", ["item"], (np.array([7]),))
Traceback (most recent call last):
timely.errors.DataError: column 'item' of table 'stock' holds text, and not integers such as 7
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from differential.data.codes import FLOAT_TYPES, Kind, kind_of, refuse_nan
from differential.operators.input import owned
from differential.session.table_data import Column
from timely.errors import DataError

_WIDTH = {Kind.FLOAT16: 0, Kind.FLOAT32: 1, Kind.FLOAT: 2}


class Schema:
    """The names of the columns, and the kinds that are known of them."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._kinds: dict[str, Kind] = {}
        self._committed: dict[str, Kind] = {}

    def declare(self, name: str, example: Column) -> None:
        """Fix the kind of a column to that of an array."""
        self._kinds[name] = self._committed[name] = kind_of(example)

    def fit(self, table: str, names: Sequence[str], columns: Sequence[Column]) -> tuple[Column, ...]:
        """Return copies of columns, as the table holds them. Raises DataError, which names the column and a value."""
        kinds, fitting = dict(self._kinds), []
        for name, column in zip(names, columns):
            try:
                mine = owned((column,))[0][0]
                if len(mine):
                    mine = _fitting(mine, kinds.setdefault(name, kind_of(mine)))
            except DataError as error:
                raise DataError(f"column {name!r} of table {table!r} {error}") from None
            fitting.append(mine)
        self._kinds = kinds
        return tuple(fitting)

    def keep(self) -> None:
        """Keep the kinds that are known now: rows of these kinds are committed."""
        self._committed = dict(self._kinds)

    def forget(self) -> None:
        """Forget kinds that only rows had that are not committed."""
        self._kinds = dict(self._committed)


def _fitting(column: Column, kind: Kind) -> Column:
    """Return a column as one of a kind."""
    found = kind_of(column)
    if column.dtype.kind == "u":
        raise DataError(f"holds {int(column.max())}, which is too large for a 64-bit integer")
    if found in _WIDTH:
        try:
            refuse_nan(column)
        except DataError as error:
            raise DataError(f"holds a value that cannot be found again: {error}") from None
    if found == kind:
        return column
    wider = column
    if kind is Kind.INT and found is Kind.BOOL:
        wider = column.astype(np.int64)
    elif kind in _WIDTH and (found in (Kind.INT, Kind.BOOL) or (found in _WIDTH and _WIDTH[found] < _WIDTH[kind])):
        wider = column.astype(FLOAT_TYPES[kind])
    if wider is column or not (wider.astype(column.dtype) == column).all():
        raise DataError(f"holds {kind.value}, and not {found.value} such as {column[:1].tolist()[0]!r:.40}")
    return wider
