"""The different names of a graph, numbered while the graph is read.

One table has the names of all blocks of the text. If a graph has millions of nodes, most names of a block are in no
block before it. To number the names of each block by themselves first would look all of these up twice.

Edges of names become edges of codes once all names are known (`edges_of`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from differential.jobs.input.edges import EdgeBatch, Progress
from differential.jobs.input.names import Names
from differential.kernels.names import COUNT, SLOT, STATE, TOP, number_names, with_more_slots

AT_ONCE = 1 << 14
"""How many rows are looked up at a time: few, so that room is made for few more names than there are."""
LEAST_SLOTS = 1 << 10
AFTER = 8
"""How many bytes after the last name are read."""
AHEAD = 2
"""How many batches of rows are read at most while the names of another are numbered."""

NamedRows = Mapping[str, Any]
"""Rows by column: the names of sources and targets in Arrow chunked arrays, and weights and times if there are any."""
Numbered = tuple[NDArray[np.int32], NDArray[np.int32], Any, Any]
"""The same with the numbers of names."""


class Distinct:
    """Different names: `number` returns the number of each row of a column, and `names` has the names by number.

    >>> distinct = Distinct()
    >>> distinct.number(pa.chunked_array([["pear", "apple", "pear"]])).tolist(), distinct.names().to_pylist()
    ([0, 1, 0], ['pear', 'apple'])
    """

    def __init__(self) -> None:
        self._table = np.zeros(LEAST_SLOTS * SLOT, np.int64)
        self._long = np.empty(0, np.int64)
        self._state = np.zeros(STATE, np.int64)
        self._names: list[Any] = []

    def number(self, column: Any) -> NDArray[np.int32]:
        """Return the number of each row of a chunked array of strings; number the names that are new."""
        parts = [self._number(chunk) for chunk in column.chunks]
        return np.concatenate(parts) if parts else np.empty(0, np.int32)

    def names(self) -> Any:
        """Return the names, an Arrow array, in the order of their numbers."""
        return pa.concat_arrays(self._names) if self._names else pa.array([], pa.string())

    def _number(self, chunk: Any) -> NDArray[np.int32]:
        """Return the number of each row of an array of strings without nulls."""
        rows = len(chunk)
        if not rows:
            return np.empty(0, np.int32)
        _, ends, content = chunk.buffers()
        offsets = np.frombuffer(ends, np.int32, rows + 1, 4 * chunk.offset).astype(np.int64)
        size = int(offsets[-1] - offsets[0])
        data = np.empty(size + AFTER, np.uint8)
        if size:
            data[:size] = np.frombuffer(content, np.uint8, size, int(offsets[0]))
        address = data.ctypes.data - int(offsets[0])
        numbers = np.empty(rows, np.int32)
        fresh = []
        for start in range(0, rows, AT_ONCE):
            part = offsets[start : start + AT_ONCE + 1]
            self._make_room(len(part), int(part[-1] - part[0]))
            numbers[start : start + AT_ONCE], new = number_names(self._table, self._long, self._state, part, address)
            fresh.append(new + start)
        self._names.append(pc.take(chunk, pa.array(np.concatenate(fresh))))
        return numbers

    def _make_room(self, names: int, size: int) -> None:
        """Make room for more names, of `size` bytes in all."""
        needed = 2 * (int(self._state[COUNT]) + names)
        if needed > len(self._table) // SLOT:
            self._table = with_more_slots(self._table, 1 << (needed - 1).bit_length())
        words = int(self._state[TOP]) + size // 8 + names
        if words > len(self._long):
            self._long = np.append(self._long, np.empty(max(words, 2 * len(self._long)) - len(self._long), np.int64))


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
