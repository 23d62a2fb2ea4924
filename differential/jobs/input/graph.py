"""Open a graph: a file in one of several formats, standard input, or a generator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from differential.jobs.access import label_of, reading
from differential.jobs.input.cells import Cells, is_text
from differential.jobs.input.distinct import edges_of
from differential.jobs.input.edges import OpenedGraph, Progress
from differential.jobs.input.faults import Faults
from differential.jobs.input.form import edge_columns
from differential.jobs.input.generate import generated
from differential.jobs.input.layout import InputLayout, WeightKind, places, weight_kind
from differential.jobs.input.matrix_market import BANNER, open_matrix
from differential.jobs.input.names import Names
from differential.jobs.input.source import is_stream, open_source
from differential.jobs.input.table import ArrayTable, InputTable
from differential.jobs.input.text import open_text
from timely.errors import DataError


def open_graph(text: str, layout: InputLayout, faults: Faults, *, is_first: bool = True) -> OpenedGraph:
    """Return the graph in a file, on standard input (`-`), or of a generator, such as `random:100,300`.

    The first bytes of a file show its format. Every process opens the graph, before its workers start. `is_first` is
    whether worker 0 is in this process: standard input and pipes are opened there alone, and have no rows elsewhere.
    Raises DataError if there is no such file, or if it is not a graph that has the layout.
    """
    if graph := generated(text, layout):
        return graph
    label = label_of(text)
    if is_stream(text) and not is_first:
        return OpenedGraph(label, None, None, weight_kind(layout.weight)[1], lambda *_: iter(()))
    source = open_source(text)
    with reading(label):
        if isinstance(source, ArrayTable) and (layout.names or layout.header):
            raise DataError(f"{text} is an array, which has neither names nor a header")
        if isinstance(source, InputTable):
            return _open_table(source, layout, faults)
        if source.head(len(BANNER)) == BANNER:
            return open_matrix(source, layout, faults)
        return open_text(source, layout, faults)


def _open_table(table: InputTable, layout: InputLayout, faults: Faults) -> OpenedGraph:
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
