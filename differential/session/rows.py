"""Rows as of a commit, in named columns: what a table, a view or a question is read as.

>>> rows = Rows(("city", "people"), (np.array(["Rome", "Oslo"]), np.array([3, 1])), np.array([1, 2]))
>>> rows.records(), len(rows), rows.columns
([('Oslo', 1), ('Oslo', 1), ('Rome', 3)], 3, ('city', 'people'))
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from differential.frames.frame import WIDTH, aligned, as_html, cell
from differential.frames.python import items
from differential.kernels.compile import NOTHING
from differential.session.table_data import Column, frame_of, order_of, ordered

SHOWN, SHOWN_COLUMNS = 10, 20
"""How many rows and columns a notebook or a terminal shows."""
Record = tuple[Any, ...]
_DTYPES: dict[type, Any] = {str: np.dtypes.StringDType(), int: np.int64}


class Rows:
    """Rows in named columns, sorted. A row that occurs several times is repeated.

    >>> rows = Rows(("x",), (np.array([2, 1]),), np.array([1, 1]))
    >>> rows
    x
    1
    2
    >>> rows.records(), rows.to_pandas().shape, rows.to_polars().shape, rows.to_arrow().num_rows
    ([(1,), (2,)], (2, 1), (2, 1), 2)
    """

    def __init__(self, columns: Sequence[str], values: Sequence[Column], counts: Column) -> None:
        self.columns = tuple(columns)
        self._values = tuple(values)
        self._counts = counts
        self._is_sorted = False
        self._width: int | None = WIDTH
        """How many characters of a value are shown, None for all."""

    @classmethod
    def of(cls, types: Mapping[str, type], records: Iterable[Sequence[Any]]) -> Rows:
        """Return records as rows, with columns of text (`str`), which is shown whole, or of integers (`int`).

        >>> Rows.of({"city": str, "people": int}, [("Rome", 3), ("Oslo", 1)]).records()
        [('Oslo', 1), ('Rome', 3)]
        """
        values = columns_of_records(types, records)
        rows = cls(tuple(types), values, np.ones(len(values[0]), np.int64))
        rows._width = None
        return rows

    if not TYPE_CHECKING:

        def __getitem__(self, place: Any) -> Any:
            raise TypeError(
                "rows are not a list: records() lists them, and to_pandas() or to_arrow() has their columns"
            )

    def __len__(self) -> int:
        return int(self._counts.sum())

    def arrays(self) -> tuple[Column, ...]:
        """Return the columns as arrays, sorted by the first column, then the second, and so on.

        >>> Rows(("x",), (np.array([2, 1]),), np.array([1, 2])).arrays()
        (array([1, 1, 2]),)
        """
        if not self._is_sorted and self._values:
            order = order_of(self._values)
            order = order.repeat(self._counts[order])
            values, counts = tuple(column[order] for column in self._values), np.ones(len(order), np.int64)
            # There is no call in between, so an interrupt leaves the rows as they were, or sorted.
            self._values, self._counts, self._is_sorted = values, counts, True
        return self._values

    def records(self) -> list[Record]:
        """Return the rows as tuples of Python values."""
        return list(zip(*map(items, self.arrays())))

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame. Raises ImportError if pandas is missing, as the next two do for theirs."""
        return frame_of(self.columns, self.arrays(), "pandas")

    def to_polars(self) -> Any:
        """Return a Polars DataFrame."""
        return frame_of(self.columns, self.arrays(), "polars")

    def to_arrow(self) -> Any:
        """Return an Arrow table."""
        return frame_of(self.columns, self.arrays(), "pyarrow")

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Return the rows as a stream of Arrow's C interface, from which DuckDB, Polars and others read them."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __str__(self) -> str:
        return "\n".join([*aligned([self._cells(record) for record in (self.columns, *self._head())]), *self._more()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return as_html(self._cells(self.columns), [], list(map(self._cells, self._head())), self._more())

    def _cells(self, record: Sequence[Any]) -> list[str]:
        more = ["..."] if len(self.columns) > SHOWN_COLUMNS else []
        return [*(cell(field, self._width) for field in record[:SHOWN_COLUMNS]), *more]

    def _head(self) -> list[Record]:
        """Return the first rows; of many, only those that may be among them are sorted."""
        first = ordered(self._values[0]) if self._values else NOTHING
        if self._is_sorted or len(first) <= SHOWN or first.dtype.kind not in "iuf":
            return self._head_of_all()
        # With all rows that are equal to the last of these: other columns decide between them.
        few = first <= np.partition(first, SHOWN - 1)[SHOWN - 1]
        return Rows(self.columns, [column[few] for column in self._values], self._counts[few])._head_of_all()

    def _head_of_all(self) -> list[Record]:
        return list(zip(*(items(column[:SHOWN]) for column in self.arrays()[:SHOWN_COLUMNS])))

    def _more(self) -> list[str]:
        limits = (len(self), SHOWN, "rows"), (len(self.columns), SHOWN_COLUMNS, "columns")
        return [f"... and {number - shown:,} more {what}" for number, shown, what in limits if number > shown]


def columns_of_records(types: Mapping[str, type], records: Iterable[Sequence[Any]]) -> tuple[Column, ...]:
    """Return the columns of records, of text (`str`) or integers (`int`).

    >>> columns_of_records({"city": str, "people": int}, [("Rome", 3)])
    (array(['Rome'], dtype=StringDType()), array([3]))
    """
    columns = list(zip(*records)) or [()] * len(types)
    return tuple(np.array(column, _DTYPES[of]) for of, column in zip(types.values(), columns))
