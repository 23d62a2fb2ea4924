"""Edges of names become edges of codes, once all names of the graph are known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from differential.jobs.input.distinct import Distinct
from differential.jobs.input.edges import Edges
from differential.jobs.input.names import NamedRows, Names


def numbered(rows: Iterable[NamedRows], names: Names) -> Iterator[Edges]:
    """Yield the edges of all rows; read all rows first, and number their names in order.

    Until then the rows are in memory as four bytes a node, besides the text of each different name.
    """
    distinct = Distinct()
    kept = [(distinct.number(each.source), distinct.number(each.target), each.weight, each.time) for each in rows]
    codes = names.begin(distinct.names())
    kept.reverse()
    while kept:
        source, target, weight, time = kept.pop()
        yield Edges(codes[source], codes[target], weight, time)
