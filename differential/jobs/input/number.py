"""Edges of names become edges of codes, once all names of the graph are known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from differential.jobs.input.edges import Edges
from differential.jobs.input.names import NamedRows, Names, unified


def numbered(rows: Iterable[NamedRows], names: Names) -> Iterator[Edges]:
    """Yield the edges of all rows; read all rows first, and number their names in order.

    Until then the rows are in memory as four bytes a node, besides the text of each batch's different names.
    """
    kept = list(rows)
    distinct, columns = unified([column for each in kept for column in (each.source, each.target)])
    codes = names.begin(distinct)
    columns.reverse()
    kept.reverse()
    while kept:
        each = kept.pop()
        source, target = columns.pop(), columns.pop()
        yield Edges(codes[source], codes[target], each.weight, each.time)
