"""Files of typed columns, piece by piece, from a row on: Parquet, Arrow, NumPy.

Rows are not read through a map of the file: the system ends a process that reads a page beyond the end of a file, as
where another program writes it again. A file that was written since it was opened raises Overwritten instead, even if
its size is the same.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from differential.frames.frame import Frame
from differential.frames.read import needs_arrow, read
from differential.session.sources.bytes_of import Overwritten
from differential.session.sources.fitting import WRONG, Unreadable, by_halves
from differential.session.table_data import Column
from timely.errors import DataError

ROWS = 1 << 16
"""How many rows are read at a time."""
Chunk = tuple[Sequence[str], Sequence[Column]]
Chunks = Callable[[int], Iterator[Chunk]]


def _unchanged(path: str, is_arrow: bool, read: Callable[[Any, int], Iterator[Chunk]], row: int) -> Iterator[Chunk]:
    """Yield the pieces that `read` yields of a file. Raises Overwritten if it was written since it was opened."""
    if is_arrow:
        import pyarrow as pa
    with pa.OSFile(path) if is_arrow else open(path, "rb") as file:
        before, pieces = _state(file), read(file, row)
        while True:
            try:
                piece = next(pieces, None)
            except (DataError, Overwritten, OSError, ValueError):
                raise
            except Exception as error:  # of a library, for damage that it does not expect
                raise DataError(f"{type(error).__name__}: {error}") from error
            finally:  # an error is that of a file that was written, too
                if _state(file) != before:
                    raise Overwritten("was written again while it was read")
            if piece is None:
                return
            yield piece


def _state(file: Any) -> tuple[int, int]:
    found = os.fstat(file.fileno())
    return found.st_size, found.st_mtime_ns


def _parquet(file: Any, row: int) -> Iterator[Chunk]:
    from pyarrow import parquet

    table = parquet.ParquetFile(file)
    groups = list(range(table.metadata.num_row_groups))
    while groups and table.metadata.row_group(groups[0]).num_rows <= row:
        row -= table.metadata.row_group(groups.pop(0)).num_rows
    yield from _from(table.iter_batches(ROWS, row_groups=groups), row)


def _arrow(file: Any, row: int) -> Iterator[Chunk]:
    """Yield the columns of an Arrow file: IPC, a file or a stream, or Feather."""
    import pyarrow as pa

    try:
        table: Any = pa.ipc.open_file(file)
        batches: Any = (table.get_batch(number) for number in range(table.num_record_batches))
    except pa.ArrowInvalid:
        file.seek(0)
        batches = pa.ipc.open_stream(file)
    yield from _from(map(_undamaged, batches), row)


def _from(batches: Iterable[Any], row: int) -> Iterator[Chunk]:
    """Yield the columns of record batches from a row on."""
    for batch in batches:
        kept = batch.slice(row)  # nothing, if the batch ends before the row
        row = max(0, row - len(batch))
        for start in range(0, len(kept), ROWS):
            yield from _pieces(kept.slice(start, ROWS))


def _undamaged(batch: Any) -> Any:
    """Return a batch. Raises ArrowInvalid, a ValueError, if offsets in it point beyond its end, which Arrow allows.

    A text that is not UTF-8, or a date that is not a whole day, is not such damage: it costs its row.
    """
    import pyarrow as pa
    from pyarrow import types

    as_bytes = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}
    for column in batch.columns:
        of = as_bytes.get(column.type, column.type)
        column.view(of).validate(full=not types.is_primitive(of) and not types.is_decimal(of))
    return batch


def _npy(path: str, names: Sequence[str], file: Any, row: int) -> Iterator[Chunk]:
    """Yield the columns of an array: structured, or of columns that have these names in their order."""
    array: np.memmap[Any, Any] = np.lib.format.open_memmap(path, mode="r")  # which reads the header alone
    if not os.path.samestat(os.stat(path), os.fstat(file.fileno())):
        raise Overwritten("was replaced while it was opened")
    if not array.ndim or (
        array.dtype.names is None and (array.ndim > 2 or (array.ndim == 2 and array.shape[1] != len(names)))
    ):
        raise DataError(f"an array of shape {array.shape}, not of rows with the {len(names)} columns of the table")
    for start in range(row, len(array), ROWS):
        piece = _rows_of(array, file, start, min(start + ROWS, len(array)))
        if array.dtype.names is not None:
            yield _columns(read(piece))
        else:
            yield _columns(read(piece.reshape(len(piece), -1), names))


def _rows_of(array: np.memmap[Any, Any], file: Any, start: int, end: int) -> np.ndarray[Any, Any]:
    """Return rows of a mapped array, read from its file. Raises ValueError if they are no longer in it."""

    # Not from the map: a page of it that a truncated file no longer has would end the process by SIGBUS.
    def read(at: int, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
        file.seek(array.offset + at)
        return np.frombuffer(file.read(math.prod(shape) * array.itemsize), array.dtype).reshape(shape)

    if array.flags.c_contiguous:
        return read(start * array.strides[0], (end - start, *array.shape[1:]))
    first = start * array.strides[0]  # of the first column: each column follows the one before
    return np.stack([read(first + place * array.strides[1], (end - start,)) for place in range(array.shape[1])]).T


def _pieces(data: Any) -> Iterator[Chunk]:
    """Yield a record batch as columns: whole, or in pieces, if a row has a value that no column has beside the others.

    Each row then has the values that it has in any other piece, so that a mark does not depend on where pieces begin.
    """
    try:
        whole = chunk(data)
    except WRONG:
        chunk(data.slice(0, 0))  # raises DataError if there is no column of a type
        for start, end, found in by_halves(len(data), lambda start, end: chunk(data.slice(start, end - start))):
            yield _row(data.slice(start, end - start)) if isinstance(found, Exception) else found
    else:
        yield whole


def _row(data: Any) -> Chunk:
    """Return a single row, of which some values cannot be read, as columns."""
    columns: list[Any] = []
    for place in range(data.num_columns):
        try:
            columns += chunk(data.select([place]))[1]
        except WRONG as error:
            columns.append(Unreadable(f"a value cannot be read: {error}"))
    return data.schema.names, columns


def chunk(data: Any) -> Chunk:
    """Return a table or record batch as columns. One of nulls alone may be of any type, which the table states."""
    untyped = [name for name, of in zip(data.schema.names, data.schema.types) if str(of) == "null"]
    return _columns(read(data, types=dict.fromkeys(untyped, "value")))


def _columns(frame: Frame) -> Chunk:
    return frame.names, frame.columns


def chunks_of(path: str, names: Sequence[str]) -> Chunks:
    """Return what yields the columns of a file, by its ending. Raises DataError if no format has it.

    >>> chunks_of("orders.txt", ["id"])
    Traceback (most recent call last):
    timely.errors.DataError: orders.txt: the name of a table file ends in .arrow, .feather, .npy, .parquet
    """
    ending = os.path.splitext(path)[1].lower()
    if ending == ".npy":
        return partial(_unchanged, path, False, partial(_npy, path, names))
    if ending == ".parquet":
        needs_arrow("a Parquet file")
        return partial(_unchanged, path, True, _parquet)
    if ending in (".arrow", ".feather"):
        needs_arrow("an Arrow file")
        return partial(_unchanged, path, True, _arrow)
    raise DataError(f"{path}: the name of a table file ends in .arrow, .feather, .npy, .parquet")
