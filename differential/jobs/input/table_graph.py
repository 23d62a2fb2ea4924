"""Graphs in tables: an edge in each row. Nodes are integers, or text, which makes them names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from differential.jobs.input.cells import Cells, is_text
from differential.jobs.input.distinct import edges_of
from differential.jobs.input.edges import OpenedGraph, Progress
from differential.jobs.input.faults import Faults
from differential.jobs.input.form import edge_columns
from differential.jobs.input.layout import InputLayout, WeightKind, places, weight_kind
from differential.jobs.input.names import Names
from differential.jobs.input.table import InputTable


def open_table(table: InputTable, layout: InputLayout, faults: Faults) -> OpenedGraph:
    """Return the graph with an edge in each row. Raises DataError if the columns cannot be those of edges."""
    schema = table.schema
    where = places(table.label, layout, len(schema.names), schema.names)
    types = [schema.field(place).type for place in (where.source, where.target)]
    is_named = any(map(is_text, types)) if layout.names is None else layout.names
    weight: WeightKind | None = None
    if where.weight is not None:
        is_integer = pa.types.is_integer(schema.field(where.weight).type)
        weight = weight_kind(layout.weight)[1] or ("integer" if is_integer else "float")
    cells = Cells(table, edge_columns(where, is_named, weight), faults)
    names = Names() if is_named else None

    def rows(index: int, peers: int, progress: Progress) -> Iterator[Mapping[str, Any]]:
        return (found.columns for found in cells.read(index, peers, progress))

    return OpenedGraph(table.label, table.total, names, weight, edges_of(rows, names))
