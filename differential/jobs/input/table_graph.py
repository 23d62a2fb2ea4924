"""Graphs in tables: an edge in each row. Nodes are integers, or text, which makes them names."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from differential.jobs.input.cells import Cells, is_text
from differential.jobs.input.edges import EdgeBatch, Progress, ignore
from differential.jobs.input.faults import Faults
from differential.jobs.input.form import InputColumn, Kind
from differential.jobs.input.layout import InputLayout, WeightKind, places, weight_kind
from differential.jobs.input.names import Names
from differential.jobs.input.number import numbered
from differential.jobs.input.table import InputTable


class TableGraph:
    """The edges in the rows of a table."""

    def __init__(self, table: InputTable, layout: InputLayout, faults: Faults) -> None:
        self.label = table.label
        self.total = table.total
        schema = table.schema
        where = places(self.label, layout, len(schema.names), schema.names)
        types = [schema.field(place).type for place in (where.source, where.target)]
        is_named = any(map(is_text, types)) if layout.names is None else layout.names
        self.names = Names() if is_named else None
        self.weight: WeightKind | None = None
        kind: Kind = "name" if is_named else "integer"
        columns = [InputColumn("source", where.source, kind), InputColumn("target", where.target, kind)]
        if where.weight is not None:
            is_integer = pa.types.is_integer(schema.field(where.weight).type)
            self.weight = weight_kind(layout.weight)[1] or ("integer" if is_integer else "float")
            columns.append(InputColumn("weight", where.weight, self.weight))
        if where.time is not None:
            columns.append(InputColumn("time", where.time, "integer"))
        self._cells = Cells(table, tuple(columns), faults)

    def share(self, index: int, peers: int, progress: Progress = ignore) -> Iterator[EdgeBatch]:
        """Yield the edges that worker `index` of `peers` reads; worker 0 reads all if nodes are names."""
        if self.names is None:
            for rows in self._cells.read(index, peers, progress):
                yield EdgeBatch(**rows.columns)
        elif not index:
            yield from numbered((rows.columns for rows in self._cells.read(0, 1, progress)), self.names)
