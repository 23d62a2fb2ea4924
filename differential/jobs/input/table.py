"""Tables in files: Parquet, Arrow IPC files, Arrow IPC streams, and arrays of NumPy.

Workers divide a file by row groups or record batches if there are at least as many as workers, and by rows otherwise.
The record batches of a stream are divided by rows, and so is an array.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from differential.jobs.access import reading
from timely.errors import DataError

BATCH = 1 << 18
"""How many rows of a Parquet file or an array are read at once."""


class TableSlice(NamedTuple):
    """Rows of a table."""

    batch: Any
    first: int
    """The number of the first row, from 0."""


class ParquetTable:
    """A Parquet file, divided by row groups, or by rows if there are fewer groups than workers."""

    def __init__(self, path: str) -> None:
        self.label = path
        with reading(path, "Parquet"), pyarrow.parquet.ParquetFile(path) as file:
            self.total: int = file.metadata.num_rows
            self.schema = file.schema_arrow

    def parts(self, index: int, peers: int, places: Sequence[int]) -> Iterator[TableSlice]:
        names = self.schema.names
        # The file is read by column name, which must name one column alone, and not be a path into a nested one.
        is_simple = len(set(names)) == len(names) and not any("." in name for name in names)
        columns = [names[place] for place in sorted(places)] if is_simple else None
        with reading(self.label, "Parquet"), pyarrow.parquet.ParquetFile(self.label) as file:
            groups = file.metadata.num_row_groups
            sizes = [file.metadata.row_group(group).num_rows for group in range(groups)]
            for group, begin, end in divided(sizes, index, peers):
                seen, before = 0, sum(sizes[:group])
                for batch in file.iter_batches(BATCH, [group], columns, use_threads=False):
                    low, high = max(begin - seen, 0), min(end - seen, batch.num_rows)
                    if low < high:
                        chosen = batch if is_simple else batch.select(places)
                        yield TableSlice(chosen.slice(low, high - low), before + seen + low)
                    seen += batch.num_rows


class IpcTable:
    """An Arrow IPC file, divided by record batches, or by rows if there are fewer batches than workers."""

    total = None

    def __init__(self, path: str) -> None:
        self.label = path
        with reading(path, "Arrow IPC"), pa.OSFile(path) as source:
            self.schema = pa.ipc.open_file(source).schema

    def parts(self, index: int, peers: int, places: Sequence[int]) -> Iterator[TableSlice]:
        with reading(self.label, "Arrow IPC"), pa.OSFile(self.label) as source:
            file = pa.ipc.open_file(source)
            count = file.num_record_batches
            first = 0
            for number in range(count):
                batch = file.get_batch(number).select(places)
                if count < peers:
                    yield from _slice(batch, first, index, peers)
                elif number % peers == index:
                    yield TableSlice(batch, first)
                first += batch.num_rows


class IpcStream:
    """An Arrow IPC stream: every worker reads all batches of a file, and keeps some rows of each.

    Worker 0 alone reads one that is not a file, `stream`, once.
    """

    total = None

    def __init__(self, label: str, stream: Any = None) -> None:
        self.label = label
        with reading(label, "Arrow IPC"):
            self._alone = None if stream is None else pa.ipc.open_stream(pa.PythonFile(stream, mode="r"))
            self.schema = (self._alone or self._opened()).schema

    def parts(self, index: int, peers: int, places: Sequence[int]) -> Iterator[TableSlice]:
        if self._alone is not None:
            if index:
                return
            peers = 1
        first = 0
        with reading(self.label, "Arrow IPC"):
            for whole in self._alone or self._opened():
                batch = whole.select(places)
                yield from _slice(batch, first, index, peers)
                first += batch.num_rows

    def _opened(self) -> Any:
        return pa.ipc.open_stream(pa.OSFile(self.label))


class ArrayTable:
    """A NumPy file with numbers of the shape (edges, 2 to 4), mapped into memory; columns are named 1, 2, ..."""

    def __init__(self, path: str) -> None:
        try:
            self._rows = np.lib.format.open_memmap(path, mode="r")
        except (ValueError, EOFError) as error:
            raise DataError(f"{path} is damaged, or holds Python objects: {error}") from None
        shape, of = self._rows.shape, self._rows.dtype
        if len(shape) != 2 or not 2 <= shape[1] <= 4:
            raise DataError(f"{path} has the shape {shape}, but edges have the shape (edges, 2 to 4)")
        if of.kind not in "iuf" or of.itemsize > 8:
            raise DataError(f"{path} holds {of}, but nodes are integers in an array")
        self.label = path
        self.total = len(self._rows)
        self._dtype = np.dtype(np.float64) if of.kind == "f" else of.newbyteorder("=")
        self.schema = pa.schema([(str(place + 1), pa.from_numpy_dtype(self._dtype)) for place in range(shape[1])])

    def parts(self, index: int, peers: int, places: Sequence[int]) -> Iterator[TableSlice]:
        begin, end = (self.total * each // peers for each in (index, index + 1))
        for start in range(begin, end, BATCH):
            rows = self._rows[start : min(start + BATCH, end)]
            columns = {self.schema.names[place]: rows[:, place].astype(self._dtype) for place in places}
            yield TableSlice(pa.record_batch(columns), start)


InputTable = ParquetTable | IpcTable | IpcStream | ArrayTable
"""A table that can be read by parts.

`label` is what to call it, `total` how many rows there are, or None if that is unknown, and `schema` the Arrow schema.
`parts` yields what worker `index` of `peers` reads, with the columns at `places`.
"""


def _slice(batch: Any, first: int, index: int, peers: int) -> Iterator[TableSlice]:
    begin, end = (batch.num_rows * each // peers for each in (index, index + 1))
    if begin < end:
        yield TableSlice(batch.slice(begin, end - begin), first + begin)


def divided(sizes: list[int], index: int, peers: int) -> Iterator[tuple[int, int, int]]:
    """Yield the groups of rows that worker `index` of `peers` reads: each with its first row and its end.

    >>> list(divided([10, 10, 10], 1, 2)), list(divided([10], 1, 2))
    ([(1, 0, 10)], [(0, 5, 10)])
    """
    if len(sizes) >= peers:
        yield from ((group, 0, sizes[group]) for group in range(index, len(sizes), peers))
        return
    begin, end = (sum(sizes) * each // peers for each in (index, index + 1))
    first = 0
    for group, size in enumerate(sizes):
        low, high = max(begin - first, 0), min(end - first, size)
        if low < high:
            yield group, low, high
        first += size
