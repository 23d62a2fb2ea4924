"""Parquet and Arrow IPC files: tables with an edge in each row.

Nodes are integers, or text, which makes them names. Workers divide a file by row groups or record batches if there are
at least as many as workers, and by rows otherwise. The record batches of a stream are divided by rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc
import pyarrow.parquet

from differential.jobs.input.edges import Edges, Progress, ignore
from differential.jobs.input.faults import Fault, Faults
from differential.jobs.input.layout import Layout, places, weight_kind
from differential.jobs.input.names import NamedRows, Names
from differential.jobs.input.number import numbered
from differential.jobs.input.rows import SLICE
from timely.errors import DataError

NAME = pa.dictionary(pa.int32(), pa.string())


class Part(NamedTuple):
    """Rows of a table."""

    batch: Any
    first: int
    """The number of the first row, from 0."""


class Table(Protocol):
    """A table that can be read by parts."""

    @property
    def label(self) -> str:
        """Return what to call it."""

    @property
    def total(self) -> int | None:
        """Return how many rows there are, or None if that is unknown."""

    @property
    def schema(self) -> Any:
        """Return the Arrow schema."""

    def parts(self, index: int, peers: int) -> Iterator[Part]:
        """Yield what worker `index` of `peers` reads."""


class TableGraph:
    """The edges in the rows of a table."""

    def __init__(self, table: Table, layout: Layout, faults: Faults) -> None:
        self._table = table
        self._faults = faults
        self.label = table.label
        self.total = table.total
        names = table.schema.names
        self._where = places(self.label, layout, len(names), names)
        types = [table.schema.field(place).type for place in (self._where.source, self._where.target)]
        text = [is_text(each) for each in types]
        self.names = Names() if layout.names or (layout.names is None and any(text)) else None
        self._types = self._expected(layout)
        for place, wanted in self._types.items():
            self._check(table.schema.field(place), wanted)

    def share(self, index: int, peers: int, progress: Progress = ignore) -> Iterator[Edges]:
        """Yield the edges that worker `index` of `peers` reads; worker 0 reads all if nodes are names."""
        if self.names is None:
            for rows in self._rows(index, peers, progress):
                source, target, weight, time = map(_array, rows)
                yield Edges(source, target, weight, time)
        elif not index:
            yield from numbered(map(_named, self._rows(0, 1, progress)), self.names)

    def _rows(self, index: int, peers: int, progress: Progress) -> Iterator[tuple[Any, ...]]:
        """Yield source, target, weight and time of rows that have no fault, as Arrow arrays of the types expected."""
        for part in self._table.parts(index, peers):
            progress(part.batch.num_rows)
            for start in range(0, part.batch.num_rows, SLICE):
                rows = self._columns(part.batch.slice(start, SLICE), part.first + start)
                if len(rows[0]):
                    yield rows

    def _columns(self, batch: Any, first: int) -> tuple[Any, ...]:
        found: dict[int, Any] = {}
        bad = np.zeros(batch.num_rows, bool)
        for place, wanted in self._types.items():
            found[place] = _cast(batch.column(place), wanted)
            bad |= _faulty(found[place], wanted)
        if bad.any():
            self._report(batch, np.flatnonzero(bad), found, first)
            keep = pa.array(~bad)
            found = {place: column.filter(keep) for place, column in found.items()}
        return tuple(None if place is None else found[place] for place in self._where)

    def _report(self, batch: Any, rows: Any, found: dict[int, Any], first: int) -> None:
        roles = {place: role for role, place in self._where._asdict().items() if place is not None}
        for row in rows.tolist():
            text = ", ".join(f"{name}={batch.column(name)[row].as_py()!r}" for name in batch.schema.names)
            place = next(each for each in found if _faulty(found[each].slice(row, 1), self._types[each]).any())
            value = batch.column(place)[row].as_py()
            reason = f"the {roles[place]} is {'missing' if value is None else 'not ' + WANTED[self._types[place]]}"
            self._faults.add(Fault(self.label, first + row + 1, text, reason, unit="row"))

    def _expected(self, layout: Layout) -> dict[int, Any]:
        where = self._where
        node = NAME if self.names is not None else pa.int64()
        expected = {where.source: node, where.target: node}
        if where.weight is not None:
            kind = weight_kind(layout.weight)[1]
            given = self._table.schema.field(where.weight).type
            is_float = kind == "float" or (kind is None and not pa.types.is_integer(given))
            expected[where.weight] = pa.float64() if is_float else pa.int64()
        if where.time is not None:
            expected[where.time] = pa.int64()
        return expected

    def _check(self, field: Any, wanted: Any) -> None:
        """Raise DataError unless a column can be read as the type expected."""
        given = field.type
        number = pa.types.is_integer(given) or pa.types.is_floating(given)
        is_legal = (number and wanted != NAME) or (wanted == NAME and (is_text(given) or pa.types.is_integer(given)))
        if not is_legal:
            remedy = "; `--names` reads nodes as names" if is_text(given) else ""
            what = f"column {field.name!r} holds {given}, but should hold {WANTED[wanted]}s"
            raise DataError(f"{self.label}: {what}{remedy}")


WANTED = {NAME: "a name", pa.int64(): "a 64-bit integer", pa.float64(): "a finite number"}


def is_text(type: Any) -> bool:
    """Return whether an Arrow type is text, dictionary-encoded or not."""
    if pa.types.is_dictionary(type):
        return is_text(type.value_type)
    return bool(pa.types.is_string(type) or pa.types.is_large_string(type) or pa.types.is_string_view(type))


def _cast(column: Any, wanted: Any) -> Any:
    """Return a column of the type wanted; values that do not have it become null."""
    if wanted == NAME:
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        return column.cast(pa.string()).dictionary_encode()
    if wanted == pa.int64() and (pa.types.is_floating(column.type) or pa.types.is_uint64(column.type)):
        values = column.cast(pa.float64(), safe=False) if pa.types.is_floating(column.type) else column
        most = pa.scalar(2.0**63) if pa.types.is_floating(column.type) else pa.scalar(2**63, pa.uint64())
        legal = pc.less(values, most)
        if pa.types.is_floating(column.type):
            whole = pc.equal(values, pc.floor(values))
            legal = pc.and_(pc.and_(legal, pc.greater_equal(values, -(2.0**63))), whole)
        return pc.if_else(legal, values, pa.scalar(None, values.type)).cast(wanted)
    return column.cast(wanted, safe=False)


def _faulty(column: Any, wanted: Any) -> Any:
    """Return which values of a column are no legal ones."""
    if wanted == NAME:
        bad = pc.fill_null(pc.equal(column.cast(pa.string()), ""), True)
    elif wanted == pa.float64():
        bad = pc.fill_null(pc.invert(pc.is_finite(column)), True)
    else:
        bad = pc.is_null(column)
    return bad.to_numpy(zero_copy_only=False)


def _named(rows: tuple[Any, ...]) -> NamedRows:
    source, target, weight, time = rows
    return NamedRows(pa.chunked_array([source]), pa.chunked_array([target]), _array(weight), _array(time))


def _array(column: Any) -> Any:
    return None if column is None else column.to_numpy(zero_copy_only=False)


class ParquetTable:
    """A Parquet file, divided by row groups, or by rows if there are fewer groups than workers."""

    def __init__(self, path: str, file: Any) -> None:
        self.label = path
        self._file = file
        self.total: int | None = file.metadata.num_rows
        self.schema = file.schema_arrow

    def parts(self, index: int, peers: int) -> Iterator[Part]:
        """Yield what worker `index` of `peers` reads."""
        with damage(self.label, "Parquet"):
            file = pyarrow.parquet.ParquetFile(self.label)
            groups = file.metadata.num_row_groups
            sizes = [file.metadata.row_group(group).num_rows for group in range(groups)]
            for group, begin, end in divided(sizes, index, peers):
                first = sum(sizes[:group])
                seen = 0
                for batch in file.iter_batches(SLICE, [group], use_threads=False):
                    low, high = max(begin - seen, 0), min(end - seen, batch.num_rows)
                    if low < high:
                        yield Part(batch.slice(low, high - low), first + seen + low)
                    seen += batch.num_rows


class IpcTable:
    """An Arrow IPC file, divided by record batches, or by rows if there are fewer batches than workers."""

    total = None

    def __init__(self, path: str, schema: Any) -> None:
        self.label = path
        self.schema = schema

    def parts(self, index: int, peers: int) -> Iterator[Part]:
        """Yield what worker `index` of `peers` reads."""
        with damage(self.label, "Arrow IPC"), pa.OSFile(self.label) as source:
            file = pa.ipc.open_file(source)
            count = file.num_record_batches
            first = 0
            for number in range(count):
                batch = file.get_batch(number)
                if count < peers:
                    yield from _slice(batch, first, index, peers)
                elif number % peers == index:
                    yield Part(batch, first)
                first += batch.num_rows


class IpcStream:
    """An Arrow IPC stream: every worker reads all batches of a file, and keeps some rows of each."""

    total = None

    def __init__(self, label: str, open_reader: Callable[[], Any], *, is_alone: bool) -> None:
        self.label = label
        self._open = open_reader
        self._is_alone = is_alone
        self._first = open_reader() if is_alone else None
        self.schema = (self._first or open_reader()).schema

    def parts(self, index: int, peers: int) -> Iterator[Part]:
        """Yield what worker `index` of `peers` reads."""
        if self._is_alone and index:
            return
        first = 0
        with damage(self.label, "Arrow IPC"):
            for batch in self._first or self._open():
                yield from [Part(batch, first)] if self._is_alone else _slice(batch, first, index, peers)
                first += batch.num_rows


def _slice(batch: Any, first: int, index: int, peers: int) -> Iterator[Part]:
    begin, end = (batch.num_rows * each // peers for each in (index, index + 1))
    if begin < end:
        yield Part(batch.slice(begin, end - begin), first + begin)


def divided(sizes: list[int], index: int, peers: int) -> Iterator[tuple[int, int, int]]:
    """Yield the groups of rows that worker `index` of `peers` reads, each with its first row and its last.

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


@contextmanager
def damage(label: str, format: str) -> Iterator[None]:
    """Raise DataError, with the reason, where a file turns out to be damaged."""
    try:
        yield
    except (pa.ArrowException, OSError, EOFError) as error:
        if getattr(error, "errno", None):
            raise
        reason = str(error).splitlines()[0]
        raise DataError(f"{label} is a damaged {format} file: {reason}") from None


def open_parquet(path: str, layout: Layout, faults: Faults) -> TableGraph:
    """Return the graph in a Parquet file. Raises DataError if it is damaged or has no such columns."""
    with damage(path, "Parquet"):
        table = ParquetTable(path, pyarrow.parquet.ParquetFile(path))
    return TableGraph(table, layout, faults)


def open_ipc(path: str, layout: Layout, faults: Faults) -> TableGraph:
    """Return the graph in an Arrow IPC file. Raises DataError if it is damaged or has no such columns."""
    with damage(path, "Arrow IPC"), pa.OSFile(path) as source:
        schema = pa.ipc.open_file(source).schema
    return TableGraph(IpcTable(path, schema), layout, faults)


def open_ipc_stream(label: str, stream: Any, layout: Layout, faults: Faults) -> TableGraph:
    """Return the graph in an Arrow IPC stream: that of a file, or `stream`, which is read once."""
    with damage(label, "Arrow IPC"):

        def reader() -> Any:
            source = pa.OSFile(label) if stream is None else pa.PythonFile(stream, mode="r")
            return pa.ipc.open_stream(source)

        table = IpcStream(label, reader, is_alone=stream is not None)
    return TableGraph(table, layout, faults)
