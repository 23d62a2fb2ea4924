"""Open a graph: a file in one of several formats, standard input, or a generator."""

from __future__ import annotations

from differential.jobs.access import label_of, reading
from differential.jobs.input.edges import OpenedGraph
from differential.jobs.input.faults import Faults
from differential.jobs.input.generate import generated
from differential.jobs.input.layout import InputLayout, weight_kind
from differential.jobs.input.matrix_market import BANNER, open_matrix
from differential.jobs.input.source import is_stream, open_source
from differential.jobs.input.table import ArrayTable
from differential.jobs.input.table_graph import open_table
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
        if isinstance(source.table, ArrayTable) and (layout.names or layout.header):
            raise DataError(f"{text} is an array, which has neither names nor a header")
        if source.table is not None:
            return open_table(source.table, layout, faults)
        assert source.text is not None
        if source.text.head(len(BANNER)) == BANNER:
            return open_matrix(source.text, layout, faults)
        return open_text(source.text, layout, faults)
