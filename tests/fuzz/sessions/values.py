"""The values of a random program: a few of each type, the ways into a session, and the ways out."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal
from random import Random
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pandas
import polars
import pyarrow as pa

from timely.lowlevel import hashable, typed

Row = tuple[Any, ...]
BERLIN = ZoneInfo("Europe/Berlin")
_FLOATS = [math.nan, -math.nan, math.inf, -math.inf, 0.1, 0.2, -0.0, 0.0, 1e300, -1e300, 5e-324]
_NARROW = [math.nan, math.inf, 0.0, -0.0, 0.5, -1.0, 16777216.0]
_TEXTS = ["", "a", "B", "ä", "a\u0308", "a\0", "\0", "日本", "😀", "x" * 40]
_BYTES = [b"", b"\0", b"a", b"a\0", b"\xff" * 20]
_MOMENTS = [
    dt.datetime(2026, 3, 1, 12),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
    dt.datetime(1970, 1, 1),
    dt.datetime(2026, 10, 25, 0, 30),
    dt.datetime(2026, 10, 25, 1, 30),
]
_LISTS: list[Any] = [[], [1], [1, 2], [-1], [2**62]]


class Type(NamedTuple):
    """A type of columns: how a table states it, how Arrow does, and some of its values without null."""

    stated: Any
    arrow: Any
    values: list[Any]
    wide: Sequence[Any] = ()
    """Values that cannot be added up, or that few columns contain."""


def _ns(count: int) -> np.datetime64:
    return np.datetime64(count, "ns")


TYPES: dict[str, Type] = {
    "int64": Type(int, pa.int64(), [-2, -1, 0, 1, 2, 3], [-(2**63), 2**63 - 1, 0]),
    "int64?": Type(int | None, pa.int64(), [-2, -1, 0, 1], [-(2**63), 2**63 - 2]),
    "uint64": Type(typed([], "uint64"), pa.uint64(), [0, 1, 2, 3], [0, 2**63 - 1, 2**63, 2**64 - 1]),
    "uint64?": Type(typed([], "uint64?"), pa.uint64(), [0, 1, 2], [0, 2**63, 2**64 - 2]),
    "float64": Type(float, pa.float64(), _FLOATS),
    "float64?": Type(float | None, pa.float64(), _FLOATS),
    "float32": Type(np.empty(0, np.float32), pa.float32(), _NARROW),
    "float32?": Type(typed([], "float32?"), pa.float32(), _NARROW),
    "bool": Type(bool, pa.bool_(), [False, True]),
    "bool?": Type(bool | None, pa.bool_(), [False, True]),
    "text": Type(str, pa.string(), [*_TEXTS, "\U0010ffff"]),
    "text?": Type(str | None, pa.string(), _TEXTS),
    "bytes": Type(bytes, pa.binary(), _BYTES),
    "bytes?": Type(bytes | None, pa.binary(), _BYTES),
    "date": Type(
        dt.date,
        pa.date32(),
        [dt.date(2026, 3, 1), dt.date(1969, 12, 31), dt.date(1970, 1, 1)],
        [dt.date(1, 1, 1), dt.date(9999, 12, 31)],
    ),
    "timestamp[us]": Type(
        dt.datetime, pa.timestamp("us"), _MOMENTS, [dt.datetime.min, dt.datetime.max, dt.datetime(2000, 1, 1)]
    ),
    "timestamp[us, Europe/Berlin]": Type(
        typed([], "timestamp[us, Europe/Berlin]"),
        pa.timestamp("us", "Europe/Berlin"),
        [each.replace(tzinfo=dt.UTC).astimezone(BERLIN) for each in _MOMENTS],
    ),
    "timestamp[ns]": Type(
        typed([], "timestamp[ns]"), pa.timestamp("ns"), [_ns(0), _ns(-1), _ns(1), _ns(1_700_000_000_123_456_789)]
    ),
    "duration[us]": Type(
        dt.timedelta, pa.duration("us"), [dt.timedelta(0), dt.timedelta(microseconds=-1), dt.timedelta(1, 5)]
    ),
    "time[us]": Type(dt.time, pa.time64("us"), [dt.time(0), dt.time(23, 59, 59, 999999), dt.time(12, 30)]),
    "decimal(18, 2)": Type(
        typed([], "decimal(18, 2)"),
        pa.decimal128(18, 2),
        [Decimal("1.50"), Decimal("1.5"), Decimal("-0.01"), Decimal("0.00"), Decimal("9999999999999999.99")],
    ),
    "decimal(38, 4)": Type(
        typed([], "decimal(38, 4)"), pa.decimal128(38, 4), [Decimal("1.5"), Decimal("-1E+20"), Decimal("0.0001")]
    ),
    "value": Type(list, pa.list_(pa.int64()), _LISTS),
}
"""The types of columns, by name."""


def may_be_null(name: str) -> bool:
    """Return whether a column of a type may have nulls."""
    return name[-1] in "?])" or name in ("date", "value")


class Column(NamedTuple):
    """A column of a table or view: its name, its type, and whether its values are small enough to add up."""

    name: str
    type: str
    is_small: bool = True
    is_known: bool = True
    """Whether a session knows the type before there are rows."""


def values_of(column: Column) -> list[Any]:
    """Return the values that a random program puts into a column."""
    of = TYPES[column.type]
    values = [*of.values] if column.is_small or not of.wide else [*of.wide]
    return [*values, None] if may_be_null(column.type) else values


def canonical(value: Any) -> Any:
    """Return one hashable object for values that are equal in a column, whatever library they come from."""
    if value is None or value is pandas.NA or value is pandas.NaT:
        return None
    if isinstance(value, pandas.Timestamp) and value.tzinfo is not None:
        value = value.to_pydatetime()
    if isinstance(value, (pandas.Timestamp, pandas.Timedelta)):
        value = value.to_numpy() if value.unit == "ns" else value.to_numpy().item()
    if isinstance(value, dt.datetime):
        return value if value.tzinfo is None else value.astimezone(dt.UTC)
    if isinstance(value, np.datetime64) and np.datetime_data(value.dtype)[0] == "us":
        return value.item()
    if isinstance(value, np.generic) and not isinstance(value, (np.datetime64, np.timedelta64)):
        value = value.item()
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, float) and value == 0:
        return 0.0
    return hashable(value)


def rows_of(columns: Sequence[Column], given: Sequence[Row]) -> list[Row]:
    """Return rows of canonical values."""
    return [tuple(map(canonical, row)) for row in given]


# Ways into a session


def _arrow(columns: Sequence[Column], rows: Sequence[Row]) -> Any:
    arrays = [pa.array([row[place] for row in rows], TYPES[column.type].arrow) for place, column in enumerate(columns)]
    return pa.Table.from_arrays(arrays, names=[column.name for column in columns])


_OF_PANDAS = {
    pa.int64(): pandas.Int64Dtype(),
    pa.uint64(): pandas.UInt64Dtype(),
    pa.bool_(): pandas.BooleanDtype(),
    pa.string(): pandas.StringDtype("pyarrow"),
}


def _pandas(columns: Sequence[Column], rows: Sequence[Row]) -> Any:
    # Floats with nulls stay as Arrow has them: pandas would make one of NaN and null.
    types = {**_OF_PANDAS, pa.float64(): pandas.ArrowDtype(pa.float64()), pa.float32(): pandas.ArrowDtype(pa.float32())}
    return _arrow(columns, rows).to_pandas(types_mapper=types.get)


def _categories(columns: Sequence[Column], rows: Sequence[Row]) -> Any:
    frame = _pandas(columns, rows)
    for column in columns:
        if column.type.startswith("text"):
            frame[column.name] = frame[column.name].astype("category")
    return frame


def _polars(columns: Sequence[Column], rows: Sequence[Row]) -> Any:
    return polars.from_arrow(_arrow(columns, rows))


def _arrays(columns: Sequence[Column], rows: Sequence[Row]) -> Any:
    return {column.name: typed([row[place] for row in rows], column.type) for place, column in enumerate(columns)}


def _lists(columns: Sequence[Column], rows: Sequence[Row]) -> Any:
    return {column.name: [row[place] for row in rows] for place, column in enumerate(columns)}


def _dicts(columns: Sequence[Column], rows: Sequence[Row]) -> Any:
    return [dict(zip([column.name for column in columns], row)) for row in rows]


def _mixed(columns: Sequence[Column], rows: Sequence[Row]) -> Any:
    return _arrow(columns[::-1], [row[::-1] for row in rows])


def _stream(columns: Sequence[Column], rows: Sequence[Row]) -> Any:
    return _arrow(columns, rows).to_reader(max_chunksize=2)


FORMS: dict[str, Callable[[Sequence[Column], Sequence[Row]], Any]] = {
    "rows": lambda columns, rows: list(rows),
    "dicts": _dicts,
    "lists": _lists,
    "arrays": _arrays,
    "arrow": _arrow,
    "other order": _mixed,
    "stream": _stream,
    "pandas": _pandas,
    "categories": _categories,
    "polars": _polars,
}
"""How rows are given to a table."""

_PLAIN_FORMS = ("rows", "dicts", "lists")


def forms_of(columns: Sequence[Column], is_by_key: bool = False) -> list[str]:
    """Return the forms that rows of these columns can have: Python has no narrow floats."""
    forms = [form for form in FORMS if form not in _PLAIN_FORMS or not any("32" in each.type for each in columns)]
    return [form for form in forms if form != "rows"] if is_by_key else forms


def some_rows(random: Random, columns: Sequence[Column], most: int) -> list[Row]:
    """Draw rows."""
    return [tuple(random.choice(values_of(column)) for column in columns) for _ in range(random.randint(1, most))]


# Ways out of a session


def contents(readable: Any, form: str) -> Counter[Row]:
    """Return the rows of a table, view or answer, read in one of the forms of `OUT`."""
    if form == "records":
        return Counter(rows_of((), readable.records()))
    frame = {"arrow": readable.to_arrow, "polars": readable.to_polars, "pandas": readable.to_pandas}[form]()
    if form == "polars":
        frame = frame.to_arrow()
    if form == "pandas":
        columns = [list(frame.iloc[:, place]) for place in range(frame.shape[1])]
        return as_pandas(Counter(rows_of((), list(zip(*columns)))))
    return Counter(rows_of((), list(zip(*(column.to_pylist() for column in frame.columns)))))


def as_pandas(rows: Counter[Row]) -> Counter[Row]:
    """Return rows with one value for NaN and null, which pandas does not tell apart everywhere."""
    made: Counter[Row] = Counter()
    for row, count in rows.items():
        made[tuple(None if value is np.nan else value for value in row)] += count
    return made


OUT = ("records", "arrow", "polars", "pandas")
"""How rows are read."""
