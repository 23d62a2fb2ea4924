"""Edges of names become edges of codes, once all names of the graph are known."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from differential.jobs.input.distinct import Distinct
from differential.jobs.input.edges import EdgeBatch, Progress
from differential.jobs.input.names import Names

AHEAD = 2
"""How many batches of rows are read at most while the names of another are numbered."""

NamedRows = Mapping[str, Any]
"""Rows by column: the names of sources and targets in Arrow chunked arrays, and weights and times if there are any."""
Numbered = tuple[NDArray[np.int32], NDArray[np.int32], Any, Any]
"""The same with the numbers of names."""


def edges_of(
    rows: Callable[[int, int, Progress], Iterator[NamedRows]], names: Names | None
) -> Callable[[int, int, Progress], Iterator[EdgeBatch]]:
    """Return a function that reads edges from what `rows` reads; in it, worker 0 reads all if nodes are names."""

    def read(index: int, peers: int, progress: Progress) -> Iterator[EdgeBatch]:
        if names is None:
            for columns in rows(index, peers, progress):
                yield EdgeBatch(**columns)
        elif not index:
            yield from _numbered(rows(0, 1, progress), names)

    return read


def _numbered(rows: Iterable[NamedRows], names: Names) -> Iterator[EdgeBatch]:
    """Yield the edges of all rows; read all rows first, and number their names in order.

    Until then the rows are in memory as four bytes a node, besides the text of each different name.
    """
    distinct = Distinct()
    kept = _all_numbered(rows, distinct)
    codes = names.begin(distinct.names())
    kept.reverse()
    while kept:
        source, target, weight, time = kept.pop()
        yield EdgeBatch(codes[source], codes[target], weight, time)


def _all_numbered(rows: Iterable[NamedRows], distinct: Distinct) -> list[Numbered]:
    """Return all rows. A thread numbers the names of some while this one reads others."""

    def number(each: NamedRows) -> Numbered:
        source, target = distinct.number(each["source"]), distinct.number(each["target"])
        return source, target, each.get("weight"), each.get("time")

    found: list[Numbered] = []
    pending: deque[Future[Numbered]] = deque()
    with ThreadPoolExecutor(1, "names") as thread:
        for each in rows:
            if len(pending) > AHEAD:
                found.append(pending.popleft().result())
            pending.append(thread.submit(number, each))
        found += [future.result() for future in pending]
    return found
