"""Updates as tables of Arrow, and as the bytes of Parquet files that any reader of tables opens.

A table has the fields of the records, then `time` and `diff`, both int64. A *consolidated* table is sorted by fields,
then time; no (record, time) is there twice, and no diff is 0. Sorting is most of what a large append would cost, and no
reader relies on it: so small tables are consolidated before they are kept, and large ones when they are merged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from differential.data.updates import Updates
from differential.durable.kinds import (
    Array,
    Ints,
    array,
    column,
    field_of,
    filled,
    items,
    kind_of,
    ordered,
    pa,
    pc,
    pq,
    type_of,
)
from differential.kernels.compile import NOTHING
from timely.errors import DataError
from timely.lowlevel import hash_columns, starts_of_runs

Table = Any
"""A `pyarrow.Table`."""

TIME, DIFF = "time", "diff"
LARGE = 1 << 16
"""Tables of more rows are kept as they come, in files that are written fast rather than small."""
_MOST = 1 << 62
"""Sums of this size are added up again with Python's integers, which do not overflow."""


def fields_of(
    updates: Updates, names: Sequence[str] | None, collection: object = "the collection"
) -> tuple[tuple[str, str], ...]:
    """Return (name, kind) of each column of some updates: `names`, or column_0, column_1, ...

    Raises DataError, which names the `collection`, if there are not as many names as columns.
    """
    if names is None:
        names = [f"column_{number}" for number in range(len(updates.columns))]
    if len(names) != len(updates.columns):
        has, named = len(updates.columns), ", ".join(names)
        raise DataError(f"{collection}: records have {has} field(s), but {len(names)} are named: {named}")
    return tuple((name, kind_of(each)) for name, each in zip(names, updates.columns))


def table_of(
    batches: Sequence[Updates], fields: Sequence[tuple[str, str]], collection: object = "the collection"
) -> Table:
    """Return updates as a table, neither sorted nor consolidated.

    Raises DataError, which names the `collection`, if a column is not of the kind of its field.
    """
    schema = schema_of(fields)
    tables = []
    for updates in batches:
        found = tuple(kind_of(each) for each in updates.columns)
        if found != tuple(kind for _, kind in fields):
            has, given = ", ".join(f"{name} {type_of(kind)}" for name, kind in fields), ", ".join(map(type_of, found))
            raise DataError(
                f"{collection} has records of ({has}), so records of ({given}) cannot be added to it: convert "
                "the columns to its types, choose a collection of another name, or remove this one to begin it again"
            )
        times = updates.times[:, 0]
        columns = [array(each, kind) for each, kind in zip(updates.columns, found)]
        has_times, has_diffs = len(updates.time_index), len(updates.diffs)
        each_time = array(times[updates.time_index], "int64") if has_times else _repeated(int(times[0]), len(updates))
        each_diff = array(updates.diffs, "int64") if has_diffs else _repeated(1, len(updates))
        tables.append(pa.Table.from_arrays([*columns, each_time, each_diff], schema=schema))
    return pa.concat_tables(tables) if tables else schema.empty_table()


def schema_of(fields: Sequence[tuple[str, str]]) -> Any:
    """Return the schema of the tables of a collection."""
    return pa.schema([*(field_of(*field) for field in fields), *(field_of(name, "int64") for name in (TIME, DIFF))])


def columns_of(table: Table) -> tuple[Array, ...]:
    """Return the columns of the records in a table."""
    return tuple(column(values, field) for values, field in zip(table.columns[:-2], table.schema))


def updates_of(table: Table, as_of: int | None = None) -> Updates:
    """Return the updates in a table, which must have rows, with times advanced to `as_of`."""
    times, diffs = _ints(table[TIME]), _ints(table[DIFF])
    first, last = int(times.min()), int(times.max())
    if as_of is not None and first < as_of:
        first, last, times = as_of, max(last, as_of), np.maximum(times, as_of)
    columns = columns_of(table)
    if first == last:
        return Updates(columns, np.array([[first]]), NOTHING, diffs)  # no index: all rows have the one time
    if last - first < 2 * len(times):  # dense times: flags find the distinct ones without a sort
        is_there = np.zeros(last - first + 1, np.bool_)
        is_there[times - first] = True
        found = np.flatnonzero(is_there)
        return Updates(columns, (found + first)[:, None], (np.cumsum(is_there) - 1)[times - first], diffs)
    distinct, index = np.unique(times, return_inverse=True)
    return Updates(columns, distinct[:, None], index, diffs)


def records(table: Table) -> dict[tuple[Any, ...], int]:
    """Return the records of a table without times, and the last column of each: how often it occurs."""
    columns = [items(column(values, field)) for values, field in zip(table.columns[:-1], table.schema)]
    return dict(zip(zip(*columns), _ints(table[DIFF]).tolist()))


def consolidated(table: Table, since: int | None = None) -> Table:
    """Return a table of the same updates with times advanced to `since`: sorted, added up, and without zeros.

    Raises DataError if a sum does not fit into 64 bits.

    >>> table = table_of([Updates.at((3,), (np.array([7, 5, 7]),))], [("number", "int64")])
    >>> consolidated(table).to_pylist()
    [{'number': 5, 'time': 3, 'diff': 1}, {'number': 7, 'time': 3, 'diff': 2}]
    """
    if not len(table):
        return table
    table = table.combine_chunks()
    times, diffs = _ints(table[TIME]), _ints(table[DIFF])
    if since is not None:
        times = np.maximum(times, since)
    keys = _packed([*map(ordered, columns_of(table)), times])
    # `lexsort` takes the primary key last. Rows with equal keys are added up, so their order does not matter.
    order = np.lexsort(keys[::-1]) if len(keys) > 1 else np.argsort(keys[0])
    starts = starts_of_runs([key[order] for key in keys])
    sums = _sums(diffs[order], starts)
    kept = np.flatnonzero(sums)
    rows = order[starts[kept]]
    taken = table.select(table.column_names[:-2]).take(pa.array(rows))
    return pa.Table.from_arrays([*taken.columns, pa.array(times[rows]), pa.array(sums[kept])], schema=table.schema)


def span(table: Table) -> tuple[int, int]:
    """Return the first and the last time of a table, which must have rows."""
    ends = pc.min_max(table[TIME])
    return ends["min"].as_py(), ends["max"].as_py()


def digest(table: Table) -> int:
    """Return the sum of hash times diff of all rows, modulo 2 ** 64. The times do not matter."""
    if not len(table):
        return 0
    # Modulo 2 ** 64 a negative diff equals its unsigned view, so a retraction subtracts its hash.
    return int((hash_columns(columns_of(table)) * _ints(table[DIFF]).view(np.uint64)).sum(dtype=np.uint64))


def difference(one: Table, other: Table) -> Table:
    """Return what must be added to `other` to make it `one`, consolidated."""
    diffs = pc.negate_checked(other[DIFF])
    return consolidated(pa.concat_tables([one, other.set_column(other.num_columns - 1, other.schema[-1], diffs)]))


def with_fields(table: Table, added: Mapping[str, tuple[str, Any]]) -> Table:
    """Return a table with further fields, each with one value in all rows: (kind, value) by name."""
    for name, (kind, value) in added.items():
        values = array(filled(kind, value, len(table)), kind)
        table = table.add_column(table.num_columns - 2, field_of(name, kind), values)
    return table


def before(table: Table, time: int) -> Table:
    """Return the rows at times before `time`."""
    return table.filter(pc.less(table[TIME], time))


def by_time(table: Table) -> Iterator[tuple[int, Updates]]:
    """Yield each time of a table, in order, with its updates, which stay in the order of the table."""
    times = _ints(table[TIME])
    table = table.take(pa.array(np.argsort(times, kind="stable")))
    start = 0
    distinct, counts = np.unique(times, return_counts=True)
    for time, length in zip(distinct.tolist(), counts.tolist()):
        yield time, updates_of(table.slice(start, length))
        start += length


def to_bytes(table: Table) -> bytes:
    """Return a Parquet file with a table.

    Integers are kept as differences of fewer bits. That takes a third of the time of dictionaries and compression, and
    less space. A time or diff that is the same in all rows is compressed, because that takes half the time again.
    """
    integers = [field.name for field in table.schema if pa.types.is_int64(field.type)]
    repeated = [field.name for field in table.schema if field.type in (pa.string(), pa.binary())]
    constant = [name for name in (TIME, DIFF) if _is_constant(table[name])]
    packed = [name for name in integers if name not in constant]
    compression = {field.name: "zstd" for field in table.schema} | dict.fromkeys(packed, "none")
    sink = pa.BufferOutputStream()
    pq.write_table(
        table,
        sink,
        compression=compression | dict.fromkeys(constant, "lz4"),
        use_dictionary=repeated,
        column_encoding=dict.fromkeys(packed, "DELTA_BINARY_PACKED") or None,
        write_statistics=len(table) <= LARGE,
    )
    data: bytes = sink.getvalue().to_pybytes()
    return data


def from_bytes(data: bytes, fields: Sequence[tuple[str, str]]) -> Table:
    """Return the table in a Parquet file."""
    with pq.ParquetFile(pa.BufferReader(data)) as file:
        # Handing a few rows to the threads of Arrow takes longer than reading them.
        return file.read(use_threads=file.metadata.num_rows > LARGE).cast(schema_of(fields))


def _repeated(value: int, length: int) -> Any:
    """Return a column of one value: chunks that share the memory of one, which stays in the processor's cache.

    >>> len(_repeated(7, LARGE + 1)), _repeated(7, 2).to_pylist()
    (65537, [7, 7])
    """
    block = pa.array(np.full(min(length, LARGE), value))
    return pa.chunked_array([block] * (length // LARGE) + [block[: length % LARGE]])


def _is_constant(values: Any) -> bool:
    """Return whether a column has one value in all rows."""
    ends = pc.min_max(values)
    return bool(ends["min"] == ends["max"])


def _ints(values: Any) -> Ints:
    """Return a column of times or diffs as an array."""
    found: Ints = (values.chunk(0) if values.num_chunks == 1 else values).to_numpy()
    return found


def _packed(keys: list[Ints]) -> list[Ints]:
    """Return keys of the same order: one, if all are from ranges so small that they fit into a word.

    Sorting one column takes a tenth of the time.

    >>> _packed([np.array([5, 6]), np.array([-1, 1])]), len(_packed([np.array([1 << 62, 0]), np.array([1, 2])]))
    ([array([0, 5])], 2)
    """
    # Integers of Python, because the difference of two int64, and the product of ranges, may not fit into 64 bits.
    ranges = [(int(key.min()), int(key.max())) for key in keys]
    if math.prod(last - first + 1 for first, last in ranges) >= 1 << 63:
        return keys
    packed = np.zeros(len(keys[0]), np.int64)
    for key, (first, last) in zip(keys, ranges):
        packed = packed * (last - first + 1) + (key.astype(np.int64) - first)
    return [packed]


def _sums(diffs: Ints, starts: Ints) -> Ints:
    """Return the sum of each group of diffs. Raises DataError if one does not fit into 64 bits."""
    sums = np.add.reduceat(diffs, starts)
    # The absolute value of a sum that wraps around is at least 2 ** 63: `_MOST` leaves room for the rounding of floats.
    about = np.add.reduceat(diffs.astype(np.float64), starts)
    for group in np.flatnonzero(np.abs(about) >= _MOST).tolist():
        end = starts[group + 1] if group + 1 < len(starts) else len(diffs)
        exact = sum(diffs[starts[group] : end].tolist())
        if not -(1 << 63) <= exact < 1 << 63:
            raise DataError(f"a record occurs {exact} times, which does not fit into 64 bits")
    return sums
