"""Cells of a table: columns are read as integers, floats, names or signs; rows that have no such value are faults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from differential.jobs.input.edges import Progress
from differential.jobs.input.faults import Fault, Faults
from differential.jobs.input.form import InputColumn, Kind
from differential.jobs.input.table import BATCH, InputTable
from timely.errors import DataError

WANTED: Mapping[Kind, str] = {
    "name": "a name",
    "integer": "a 64-bit integer",
    "float": "a finite number",
    "sign": "+ or -, or 1 or -1",
}


class CellRows(NamedTuple):
    """Rows by column: NumPy arrays of numbers, and Arrow chunked arrays of names."""

    columns: dict[str, Any]
    rows: NDArray[np.int64]
    """The number of each row in the table, from 1."""


class Cells:
    """Reads some columns of a table."""

    def __init__(self, table: InputTable, columns: tuple[InputColumn, ...], faults: Faults) -> None:
        self._table = table
        self._columns = columns
        self._faults = faults
        self._places = sorted(column.place for column in columns)
        for column in columns:
            self._check(table.schema.field(column.place), column)

    def read(self, index: int, peers: int, progress: Progress) -> Iterator[CellRows]:
        """Yield the rows without faults that worker `index` of `peers` reads, in batches that are not empty."""
        for part in self._table.parts(index, peers, self._places):
            progress(part.batch.num_rows)
            for start in range(0, part.batch.num_rows, BATCH):
                rows = self._rows(part.batch.slice(start, BATCH), part.first + start)
                if len(rows.rows):
                    yield rows

    def _rows(self, batch: Any, first: int) -> CellRows:
        numbers = np.arange(first + 1, first + 1 + batch.num_rows)
        given = {column.role: batch.column(self._places.index(column.place)) for column in self._columns}
        found = {column.role: cast(given[column.role], column.kind) for column in self._columns}
        bad = {column.role: faulty(found[column.role], column.kind) for column in self._columns}
        wrong = np.logical_or.reduce(list(bad.values()))
        if wrong.any():
            for row in np.flatnonzero(wrong).tolist():
                column = next(column for column in self._columns if bad[column.role][row])
                value = given[column.role][row].as_py()
                reason = f"the {column.role} is {'missing' if value is None else f'not {WANTED[column.kind]}'}"
                self._faults.add(Fault(self._table.label, first + row + 1, row_text(batch, row), reason, unit="row"))
            keep = pa.array(~wrong)
            found = {role: column.filter(keep) for role, column in found.items()}
            numbers = numbers[~wrong]
        return CellRows({column.role: _as_rows(found[column.role], column.kind) for column in self._columns}, numbers)

    def _check(self, field: Any, column: InputColumn) -> None:
        """Raise DataError unless a column can be read as the type expected."""
        given, kind = field.type, column.kind
        is_integer = pa.types.is_integer(given)
        legal = {
            "name": is_text(given) or is_integer,
            "sign": is_text(given) or is_integer,
            "integer": is_integer or pa.types.is_floating(given),
            "float": is_integer or pa.types.is_floating(given),
        }
        if not legal[kind]:
            is_name = is_text(given) and column.role in ("source", "target")
            remedy = "; `--names` reads nodes as names" if is_name else ""
            what = f"column {field.name!r} holds {given} where there should be {WANTED[kind]}"
            raise DataError(f"{self._table.label}: {what}{remedy}")


def row_text(batch: Any, row: int) -> str:
    return ", ".join(f"{name}={column[row].as_py()!r}" for name, column in zip(batch.schema.names, batch.columns))


def is_text(type: Any) -> bool:
    """Return whether an Arrow type is text, dictionary-encoded or not."""
    if pa.types.is_dictionary(type):
        return is_text(type.value_type)
    return bool(pa.types.is_string(type) or pa.types.is_large_string(type) or pa.types.is_string_view(type))


def cast(column: Any, kind: Kind) -> Any:
    """Return a column as the type expected; what has no value of it becomes null."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if kind == "name":
        return column.cast(pa.string())
    if kind == "sign":
        if is_text(column.type):
            place = pc.index_in(column.cast(pa.string()), pa.array(["-", "+"]))
            return pc.subtract(pc.multiply(place.cast(pa.int64()), 2), 1)
        legal = pc.is_in(column, pa.array([-1, 1]).cast(column.type, safe=False))
        return pc.if_else(legal, column, pa.scalar(None, column.type)).cast(pa.int64())
    if kind == "float":
        return column.cast(pa.float64(), safe=False)
    if pa.types.is_floating(column.type):
        values = column.cast(pa.float64())
        within = pc.and_(pc.greater_equal(values, -(2.0**63)), pc.less(values, 2.0**63))
        legal = pc.and_(within, pc.equal(values, pc.floor(values)))
        return pc.if_else(legal, values, pa.scalar(None, pa.float64())).cast(pa.int64())
    if pa.types.is_uint64(column.type):
        legal = pc.less(column, pa.scalar(2**63, pa.uint64()))
        return pc.if_else(legal, column, pa.scalar(None, pa.uint64())).cast(pa.int64())
    return column.cast(pa.int64())


def faulty(column: Any, kind: Kind) -> NDArray[np.bool_]:
    """Return which values of a column are missing or not legal."""
    bad = pc.is_null(column)
    if kind == "name":
        bad = pc.fill_null(pc.equal(column, ""), True)
    elif kind == "float":
        bad = pc.fill_null(pc.invert(pc.is_finite(column)), True)
    found: NDArray[np.bool_] = bad.to_numpy(zero_copy_only=False)
    return found


def _as_rows(column: Any, kind: Kind) -> Any:
    return pa.chunked_array([column]) if kind == "name" else column.to_numpy(zero_copy_only=False)
