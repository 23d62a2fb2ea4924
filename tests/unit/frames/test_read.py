"""Frames are read from whatever holds rows, and converted to what others read."""

from __future__ import annotations

import datetime as dt
import importlib
import re
import sys
import warnings
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet

from differential.frames import Frame, read, typed
from timely.errors import DataError

COLUMNS = {"id": [1, 2, 3], "name": ["ann", "bob", "ann"], "score": [0.5, 1.5, -2.0]}
TYPES = {"id": "int64", "name": "text", "score": "float64"}
RECORDS = [(1, "ann", 0.5), (2, "bob", 1.5), (3, "ann", -2.0)]


@dataclass
class Row:
    id: int
    name: str
    score: float


class Named(NamedTuple):
    id: int
    name: str
    score: float


class Stream:
    """Anything that exports Arrow's C stream."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return pa.table(COLUMNS).__arrow_c_stream__(requested_schema)


SOURCES: dict[str, Any] = {
    "dict of lists": COLUMNS,
    "dict of arrays": {"id": np.array([1, 2, 3]), "name": np.array(["ann", "bob", "ann"]), "score": [0.5, 1.5, -2.0]},
    "dicts": [dict(zip(COLUMNS, record)) for record in RECORDS],
    "dataclasses": [Row(*record) for record in RECORDS],
    "named tuples": [Named(*record) for record in RECORDS],
    "structured array": np.array(RECORDS, [("id", "i4"), ("name", "U3"), ("score", "f8")]),
    "Arrow table": pa.table(COLUMNS),
    "record batch": pa.record_batch(COLUMNS),
    "pieces": pa.concat_tables([pa.table(COLUMNS).slice(0, 1), pa.table(COLUMNS).slice(1, 2)]),
    "stream": Stream(),
    "Polars": pl.DataFrame(COLUMNS),
    "pandas": pd.DataFrame(COLUMNS),
    "pandas with an index": pd.DataFrame(COLUMNS, index=[7, 8, 9]),
    "frame": Frame(list(COLUMNS), list(COLUMNS.values())),
}


@pytest.mark.parametrize("source", SOURCES)
def test_a_source_is_read(source: str) -> None:
    frame = read(SOURCES[source])
    assert frame.types == TYPES
    assert frame.records() == RECORDS


def test_a_relation_of_duckdb_is_read() -> None:
    with duckdb.connect() as connection:
        relation = connection.sql(
            "SELECT 1 AS id, DATE '2024-02-29' AS day, 1.50::DECIMAL(9, 2) AS price, NULL::INT AS n"
        )
        frame = read(relation)
        assert frame.types == {"id": "int64", "day": "date", "price": "decimal(9, 2)", "n": "int64?"}
        assert frame.records() == [(1, dt.date(2024, 2, 29), Decimal("1.50"), None)]
        exported = frame
        assert connection.sql("SELECT id + 1, day FROM exported").fetchall() == [(2, dt.date(2024, 2, 29))]
        del exported


@pytest.mark.parametrize("source", [RECORDS, [list(record) for record in RECORDS], tuple(COLUMNS.values())])
def test_rows_and_columns_without_names_are_numbered_or_named(source: Any) -> None:
    assert list(read(source)) == ["c0", "c1", "c2"]
    assert read(source, ["id", "name", "score"]).types == TYPES


def test_an_array_of_two_dimensions_has_rows_and_columns() -> None:
    assert read(np.array([[1, 2], [3, 4], [5, 6]]), ["a", "b"]).records() == [(1, 2), (3, 4), (5, 6)]
    assert read(np.array([1, 2])).records() == [(1,), (2,)]


@pytest.mark.parametrize(
    ("ending", "write"),
    [(".parquet", parquet.write_table), (".csv", csv.write_csv), (".arrow", feather.write_feather)],
)
def test_a_file_is_read(tmp_path: Path, ending: str, write: Any) -> None:
    path = tmp_path / f"scores{ending}"
    write(pa.table(COLUMNS), str(path))
    assert read(path).records() == read(str(path)).records() == RECORDS


def _csv(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "numbers", ["9223372036854775808", "1\n-12345678901234567890123", "9007199254740993\n0.5", "9" * 36]
)
def test_whole_numbers_that_would_be_rounded_are_refused_in_a_file(tmp_path: Path, numbers: str) -> None:
    path = _csv(tmp_path / "a.csv", f"id\n{numbers}\n")
    with pytest.raises(DataError, match=r"a\.csv: column 'id' has -?\d{16,}, a whole number .* rounded; .*'text'"):
        read(path)
    assert read(path, types={"id": "text"})["id"].tolist() == numbers.split()
    assert read(path, types={"id": "decimal(38, 1)"})["id"].tolist() == [Decimal(each) for each in numbers.split()]


def test_floats_and_integers_of_64_bits_are_read_from_a_file(tmp_path: Path) -> None:
    path = _csv(tmp_path / "a.csv", "a,b,c\n9223372036854775806,1e300,9007199254740992\n,-inf,0.5\n1,9e15,\n")
    assert read(path).types == {"a": "int64?", "b": "float64", "c": "float64?"}
    assert read(path).to_dict()["a"] == [2**63 - 2, None, 1]


@pytest.mark.parametrize(
    ("fields", "of", "expected"),
    [
        (["1", "-2"], "float64", [1.0, -2.0]),
        (["1", "", "9007199254740992"], "float64?", [1.0, None, 2.0**53]),
        (["", ""], "float64?", [None, None]),
        (["abc", "12"], "bytes", [b"abc", b"12"]),
        (["12", "13"], "bytes?", [b"12", b"13"]),
        (["x", ""], "bytes?", [b"x", None]),
        (["x", ""], "bytes", [b"x", b""]),
    ],
)
def test_fields_of_a_file_have_the_stated_type_whatever_they_look_like(
    tmp_path: Path, fields: list[str], of: str, expected: list[Any]
) -> None:
    path = _csv(tmp_path / "a.csv", "n,a\n" + "".join(f"1,{field}\n" for field in fields))
    frame = read(path, types={"a": of})
    assert frame.types["a"] == of
    assert frame["a"].tolist() == expected


def test_a_whole_number_that_a_stated_type_of_floats_would_round_is_refused(tmp_path: Path) -> None:
    path = _csv(tmp_path / "a.csv", "a\n1\n9007199254740993\n")
    with pytest.raises(DataError, match=r"a\.csv: column 'a' has 9007199254740993, .* rounded"):
        read(path, types={"a": "float64"})


@pytest.mark.parametrize(("field", "of"), [("1.5", "int64"), ("x", "int64?"), ("2026-13-01", "date")])
def test_a_field_of_a_file_that_is_not_of_the_stated_type_is_named(tmp_path: Path, field: str, of: str) -> None:
    path = _csv(tmp_path / "a.csv", f"n,a\n1,{field}\n")
    with pytest.raises(DataError, match=rf"a\.csv: In column 'a': .*'{re.escape(field)}'"):
        read(path, types={"a": of})


def test_an_empty_field_of_a_file_is_a_null_unless_its_column_has_none(tmp_path: Path) -> None:
    for fields, expected in {"x,,y": ["x", None, "y"], ',"",': [None, None, None], "NA,,x": ["NA", None, "x"]}.items():
        path = _csv(tmp_path / "a.csv", "n,s\n" + "".join(f"1,{field}\n" for field in fields.split(",")))
        assert read(path, types={"s": "text?"})["s"].tolist() == expected
        if any(expected):
            assert read(path)["s"].tolist() == expected
            assert read(path, types={"s": "text"})["s"].tolist() == [each or "" for each in expected]


@pytest.mark.parametrize("text", ["", "a,b\n1\n", "a\nx\n"])
def test_what_is_wrong_with_a_file_is_reported_with_its_name(tmp_path: Path, text: str) -> None:
    with pytest.raises(DataError, match=r"a\.csv: (Empty CSV|CSV parse error|In column 'a':)"):
        read(_csv(tmp_path / "a.csv", text), types={"a": "decimal(18, 2)"} if text else None)
    for ending in (".parquet", ".arrow"):
        with pytest.raises(DataError, match=rf"a\{ending}: "):
            read(_csv(tmp_path / f"a{ending}", "no file of this form"))


def test_a_file_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("name,n\ncafé,1\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"a\.csv: column 'name' is not text in UTF-8: convert the file"):
        read(path)
    assert read(path, types={"name": "bytes"}).records() == [("café".encode("latin-1"), 1)]
    path.write_bytes("größe\n1\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"a\.csv: the names of the columns are not text in UTF-8: convert the file"):
        read(path)


@pytest.mark.parametrize(
    ("of", "buffers"),
    [(pa.large_string(), [None, pa.py_buffer(b""), pa.py_buffer(b"")]), (pa.decimal128(5, 2), [None, None])],
)
def test_an_array_without_rows_may_lack_buffers(of: Any, buffers: list[Any]) -> None:
    array = pa.Array.from_buffers(of, 0, buffers)
    assert read(pa.table({"a": pa.chunked_array([array, pa.array([None], of)])})).records() == [(None,)]


@pytest.mark.parametrize(
    ("array", "name"),
    [(np.array([1, 2]), "int64?"), (np.array([0.5, 2], "f4"), "float32?"), (np.array(["a", ""]), "text?")],
)
def test_what_is_masked_is_null(array: Any, name: str) -> None:
    frame = read({"a": np.ma.MaskedArray(array, [False, True])})
    assert frame.types == {"a": name}
    assert frame.records() == [(array[0].item(),), (None,)]


def test_a_masked_array_with_a_value_that_stands_for_a_null_is_refused_by_its_column_and_row() -> None:
    array = np.ma.MaskedArray(np.array([1, 2, 2**64 - 1], np.uint64), [False, True, False])
    with pytest.raises(DataError, match="column 'a': 18446744073709551615 at row 2 stands for a null"):
        read({"a": array})


def test_a_field_that_a_row_lacks_is_null() -> None:
    frame = read([{"a": 1}, {"a": 2, "b": "x"}])
    assert frame.types == {"a": "int64", "b": "text?"}
    assert frame.records() == [(1, None), (2, "x")]


def test_stated_types_are_those_of_the_columns() -> None:
    types = {"price": "decimal(18, 2)", "n": "int64?", "who": "text?"}
    frame = read({"price": [Decimal(1), None], "n": [1, 2], "who": [None, None]}, types=types)
    assert frame.types == types
    assert frame.records() == [(Decimal(1), 1, None), (None, 2, None)]
    assert read(pa.table({"n": [1, 2]}), types={"n": "int64?"}).types == {"n": "int64?"}
    assert read({"n": []}, types={"n": "date"}).types == {"n": "date"}
    assert read(pa.table({"n": pa.nulls(2)}), types={"n": "date"}).records() == [(None,), (None,)]


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_numbers_share_memory_on_the_way_in_and_out(dtype: Any) -> None:
    numbers = np.arange(1000).astype(dtype)
    address = numbers.ctypes.data
    frame = read({"a": numbers})
    assert np.shares_memory(frame["a"], numbers)
    table = frame.to_arrow()
    assert table["a"].chunk(0).buffers()[1].address == address
    assert read(table)["a"].ctypes.data == address
    polars = frame.to_polars()
    assert polars["a"].to_numpy().ctypes.data == address
    assert read(polars)["a"].ctypes.data == address
    pandas = frame.to_pandas()
    assert pandas["a"].to_numpy().ctypes.data == address
    assert read(pandas)["a"].ctypes.data == address


def test_a_map_is_a_list_of_keys_and_values_wherever_it_is() -> None:
    of = pa.map_(pa.string(), pa.int64())
    found = read(pa.table({"a": pa.array([[("k", 1), ("l", None)], None], of)})).to_arrow()["a"]
    assert found.to_pylist() == [[{"key": "k", "value": 1}, {"key": "l", "value": None}], None]
    inside = pa.array([{"m": [[("k", 1)]], "n": 2}], pa.struct({"m": pa.list_(of), "n": pa.int64()}))
    assert read(pa.table({"a": inside})).to_dict() == {"a": [{"m": [[{"key": "k", "value": 1}]], "n": 2}]}
    of_maps = pa.map_(pa.int64(), of)
    assert read(pa.table({"a": pa.array([[(1, [("k", 2)])]], of_maps)})).to_dict() == {
        "a": [[{"key": 1, "value": [{"key": "k", "value": 2}]}]]
    }


def test_a_frame_of_polars_comes_back_as_it_was() -> None:
    given = pl.DataFrame(
        {
            "a": pl.Series([1, None], dtype=pl.Int64),
            "b": pl.Series([1 << 63, None], dtype=pl.UInt64),
            "c": [None, "é"],
            "d": [dt.datetime(2024, 1, 1, tzinfo=dt.UTC), None],
            "e": pl.Series([dt.timedelta(days=-1), None], dtype=pl.Duration("ns")),
            "f": [dt.time(1, 2), None],
            "g": [[1, None], None],
            "h": [{"x": 1, "y": "z"}, None],
            "i": [Decimal("1.50"), None],
            "j": [float("nan"), None],
            "k": [True, None],
            "l": [b"\0", None],
            "m": [dt.date(1969, 12, 31), None],
        }
    )
    found = read(given).to_polars()
    assert found.schema == given.schema
    assert found.equals(given, null_equal=True)


def test_decimals_that_polars_lacks_are_refused() -> None:
    frame = read({"price": [Decimal("1.50")]}, types={"price": "decimal(39, 2)"})
    with pytest.raises(DataError, match=r"column 'price' holds decimal\(39, 2\), and .* at most 38 digits"):
        frame.to_polars()


def test_a_frame_of_pandas_comes_back_with_the_types_that_have_nulls() -> None:
    given = pd.DataFrame(
        {
            "a": pd.array([1, None], "Int64"),
            "b": pd.array([True, None], "boolean"),
            "c": pd.to_datetime(["2024-01-01", None]).tz_localize("Europe/Berlin"),
            "d": pd.to_timedelta(["1s", None]),
            "e": [0.5, float("nan")],
            "f": pd.Categorical(["x", None]),
        }
    )
    frame = read(given)
    assert frame.types["a"] == "int64?"
    assert frame.types["e"] == "float64"
    assert frame.types["f"] == "text?"
    found = frame.to_pandas().drop(columns="f")
    pd.testing.assert_frame_equal(found, given.drop(columns="f"))


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [dt.UTC, dt.timezone(dt.timedelta(hours=2)), "Europe/Berlin"])
def test_instants_of_pandas_keep_their_zone_and_unit(unit: str, zone: Any) -> None:
    series = pd.Series(pd.to_datetime(["2024-07-01 10:00:01", None]).as_unit(unit)).dt.tz_localize(zone)
    for given in (series, series[:0]):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of Arrow before version 26 with pandas since 3.1
            expected = pa.array(given)
        found = read(pd.DataFrame({"a": given}))
        assert found.to_arrow()["a"].combine_chunks().equals(expected)
        pd.testing.assert_series_equal(found.to_pandas()["a"], given, check_names=False)
        category = read(pd.DataFrame({"a": given.astype("category")}))
        assert category.to_arrow()["a"].combine_chunks().equals(expected)


_AWARE, _NAIVE = dt.datetime(2024, 7, 1, 5, tzinfo=dt.timezone(dt.timedelta(hours=5))), dt.datetime(2024, 7, 1, 5)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([dt.date(2024, 7, 1), _NAIVE], r"\(datetime\) beside .* \(date\)"),
        ([_NAIVE, _AWARE], "has a zone"),
        ([_AWARE, _NAIVE], "has no zone"),
        (["x", b"y"], r"b'y' \(bytes\) beside 'x' \(str\)"),
        ([dt.timedelta(1), 7], r"7 \(int\) beside .* \(timedelta\)"),
        ([dt.time(1), 7], r"7 \(int\) beside .* \(time\)"),
        ([dt.time(1, tzinfo=dt.UTC)], "has a zone"),
        ([2.5, True], r"True \(bool\) beside 2.5 \(float\)"),
        ([1 << 64], "out of range"),
    ],
)
def test_objects_of_pandas_that_arrow_would_change_are_refused(values: list[Any], message: str) -> None:
    for given in (values, [None, *values, float("nan")]):
        with pytest.raises(DataError, match=f"column 'a': .*{message}"):
            read(pd.DataFrame({"a": pd.Series(given, dtype=object)}))


@pytest.mark.parametrize(
    "values",
    [
        [1, None],
        [1, 2.5, None],
        [1 << 63, 1],
        [True, None],
        ["x", None],
        [b"x", None],
        [dt.date(2024, 7, 1), None],
        [_NAIVE, None],
        [_AWARE, _AWARE.astimezone(dt.UTC)],
        [Decimal("1.5"), None, 2],
        [1, Decimal("1.5")],
        [[dt.date(2024, 7, 1)], [_NAIVE]],
        [{"a": 1}, {"b": "x"}],
        [pd.Timestamp("2024-07-01 00:00:00.000000001"), None],
        [pd.Timedelta(1, "ns"), dt.timedelta(1)],
        [pd.Timedelta(1500, "ns"), pd.Timedelta(1, "h"), None],
        [np.datetime64("2026-01-01"), None],
        [np.datetime64("2026-01-01T00:00:00.000000001"), None],
        [np.timedelta64(1500, "ns"), None],
        [np.timedelta64(1, "D")],
        [np.uint64(7), None],
        [np.float32(0.5), None],
        [np.bool_(True), None],
        [np.str_("x"), None],
        [Decimal("1.10"), Decimal("2.22"), None],
        [np.zeros((2, 2)), [[1.0]]],
    ],
    ids=repr,
)
def test_objects_of_pandas_are_read_as_a_list_of_the_same_values_is(values: list[Any]) -> None:
    listed = read({"a": values})
    for missing in (None, float("nan"), pd.NA, pd.NaT):
        given = [missing if value is None else value for value in values]
        found = read(pd.DataFrame({"a": pd.Series(given, dtype=object)}))
        assert found.records() == listed.records()
        assert found.types == listed.types


@pytest.mark.parametrize(
    ("series", "name", "values"),
    [
        (pd.Series([1, None], dtype="Int64"), "int64?", [1, None]),
        (pd.Series([1, None], dtype="int64[pyarrow]"), "int64?", [1, None]),
        (pd.Series([1.5, pd.NA], dtype="Float64"), "float64?", [1.5, None]),
        (pd.Series([True, pd.NA], dtype="boolean"), "bool?", [True, None]),
        (pd.Series(["a", None], dtype="str"), "text?", ["a", None]),
        (pd.Series(["a", None], dtype="string"), "text?", ["a", None]),
        (pd.Series(["a", None], dtype="category"), "text?", ["a", None]),
        (pd.Series([1, pd.NaT], dtype=object), "int64?", [1, None]),
        (pd.array([1, pd.NA], dtype="Int64"), "int64?", [1, None]),
        (np.array([b"a", pd.NA], dtype=object), "bytes?", [b"a", None]),
        ([pd.NA, Decimal("1.50")], "decimal(9, 2)", [None, Decimal("1.50")]),
        ((dt.date(2024, 2, 29), pd.NA), "date", [dt.date(2024, 2, 29), None]),
        ([[1, 2], pd.NA], "value", [(1, 2), None]),
    ],
)
def test_nulls_of_pandas_are_nulls_of_a_typed_column(series: Any, name: str, values: list[Any]) -> None:
    assert typed(series, name).tolist() == values
    if name.endswith("?"):
        with pytest.raises(DataError, match=rf"^None at row 1 is a null, so .* of {name[:-1]}$"):
            typed(series, name[:-1])


def test_a_value_of_another_type_is_named_beside_a_null_of_pandas() -> None:
    with pytest.raises(DataError, match=r"^'x' at row 1 is of class str, so .* int64\?$"):
        typed(pd.Series([pd.NA, "x"], dtype=object), "int64?")
    with pytest.raises(DataError, match=r"^1.5 at row 0 is of class float, so .* int64\?$"):
        typed(pd.Series([1.5, np.nan]), "int64?")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"a": [1, "x"]}, r"column 'a': 'x' \(str\) beside 1 \(int\)"),
        ({"a": [None, None]}, r"column 'a': all values are None.*types="),
        ({"a": [object()]}, r"column 'a': .*object"),
        ({"a": np.ma.MaskedArray([1], [True])}, "column 'a': all values are masked: state a type"),
        ({"a": [1 << 70]}, "column 'a': .*out of range"),
        ({"a": [(1 << 53) + 1, 0.5]}, "column 'a': .*rounded"),
        ({"a": np.array([1j])}, "column 'a': .*complex128"),
        ({"a": np.array(["2024-01"], "M8[M]")}, r"column 'a': .*astype\('datetime64\[us\]'\)"),
        ({"a": np.ma.MaskedArray([1j, 2], [False, True])}, "^column 'a': cannot make a column of complex128"),
        ({"a": 3}, "column 'a': 3 is one value: give a list"),
        ({"a": "ann"}, "column 'a': 'ann' is one value: give a list"),
        ({"a": [1], "b": [1, 2]}, "different lengths"),
        ({1: [1]}, "must be text, not 1"),
        ({}, r"0 column\(s\)"),
        (pd.DataFrame({"a": [1, "x"]}), r"column 'a': 'x' \(str\) beside 1 \(int\)"),
        (pd.DataFrame({"a": pd.arrays.SparseArray([0, 1])}), "column 'a': Arrow cannot read Sparse"),
        (pd.DataFrame({"a": pd.period_range("2026-01", periods=1, freq="M")}), "column 'a': .*periods.*to_timestamp"),
        (pd.DataFrame({"a": pd.Categorical(["x"], ordered=True)}), "column 'a': .*categories are ordered.*cast it"),
        (pd.DataFrame([[1, 2]]), r"different texts, not \[0, 1\]: rename .*frame.columns = "),
        (pl.DataFrame({"a": pl.Series([object()], dtype=pl.Object)}), "column 'a': .*Python objects"),
        (pl.LazyFrame({"a": [1]}), r"a LazyFrame has no rows yet: .collect\(\) returns"),
        ([], "an empty list"),
        ([1, 2], r"a row is a tuple.*\[\(value,\), ...\] has one column"),
        ([(1,), (1, 2)], "several lengths"),
        ([(1,), {"a": 2}], "several classes"),
        (np.zeros((2, 2, 2)), "two dimensions"),
        (7, "cannot read a frame from int"),
        ("data.xlsx", "ends in .*parquet"),
        (pa.table({"a": pa.nulls(2)}), r"column 'a': all values are None.*types="),
        (pa.table({"a": pa.array([(1, 2, 3)], pa.month_day_nano_interval())}), "column 'a' .*cast it"),
        (
            pa.table({"a": pa.DictionaryArray.from_arrays([0], ["small"], ordered=True)}),
            "column 'a' .*categories are ordered.*cast it to text",
        ),
        (pa.table({"a": pa.array([None, (1 << 63) - 1])}), r"column 'a' \(int64\): .*at row 1 stands for a null"),
        (pa.table({"a": pa.array([[Decimal(1)]])}), "column 'a' .*contains a Decimal"),
    ],
)
def test_what_cannot_be_read_is_refused_by_the_name_of_its_column(data: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(data)


def test_a_stated_type_that_values_do_not_have_is_refused() -> None:
    with pytest.raises(DataError, match=r"column 'a': .*at row 1 is a null, so it is not a value of a column of int64"):
        read({"a": [1, None]}, types={"a": "int64"})
    with pytest.raises(DataError, match=r"column 'a': .*null"):
        read(pa.table({"a": [1, None]}), types={"a": "int64"})
    with pytest.raises(DataError, match="no column 'b' to have a type"):
        read({"a": [1]}, types={"b": "int64"})
    with pytest.raises(DataError, match="no column 'b' to have a type: the columns are 0, 1"):
        read(pd.DataFrame([[1, 2]]), types={"b": "int64"})
    with pytest.raises(DataError, match="column 'a': 3 is one value: give a list"):
        read({"a": 3}, types={"a": "int64"})
    with pytest.raises(DataError, match=r"'int' is not a column type: docs/types\.md"):
        read({"a": [1]}, types={"a": "int"})


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert read({"a": [1, None]}).records() == [(1,), (None,)]
    with pytest.raises(ImportError, match=r"pip install 'timely-dataflow\[frames\]'"):
        read("data.parquet")


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_rows_are_read_while_a_library_is_being_imported(
    library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when another thread imports it: its module is in `sys.modules`, and has no `Series` yet."""
    monkeypatch.delitem(sys.modules, library)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / f"{library}.py").write_text("""
from differential.frames import read
from differential.jobs.access import reading
from timely.errors import DataError

records = read([{"a": 1}, {"a": None}]).records() + read({"a": [1, None]}).records()
try:
    with reading("graph.txt"):
        raise OSError("damaged")
except DataError as error:
    refused = str(error)
""")
    found = importlib.import_module(library)
    assert found.records == [(1,), (None,), (1,), (None,)]
    assert found.refused.startswith("graph.txt is a damaged text file")


def test_a_frame_shows_its_first_rows() -> None:
    frame = read({"id": list(range(12)), "tag": ["<b>"] * 12})
    assert repr(frame).splitlines()[:3] == ["id     tag", "int64  text", "0      <b>"]
    assert repr(frame).splitlines()[-1] == "... 2 more rows"
    assert "&lt;b&gt;" in frame._repr_html_()
    assert "... 2 more rows" in frame._repr_html_()
    assert str(Frame(("a\n\x1b[2J",), ([1],))) == "a\\n\\x1b[2J\nint64\n1"


def test_columns_are_selected_renamed_cast_and_taken_by_rows() -> None:
    frame = read(COLUMNS)
    assert frame.select("score", "id").records()[0] == (0.5, 1)
    assert frame.rename("a", "b", "c").names == ("a", "b", "c")
    assert frame.take(np.array([True, False, True])).records() == [RECORDS[0], RECORDS[2]]
    assert frame.cast({"id": "uint64?"}).types["id"] == "uint64?"
    assert frame == read(COLUMNS)
    assert frame != frame.cast({"id": "uint64?"})
    with pytest.raises(DataError, match="no column 'x': the columns are id, name, score"):
        frame["x"]
    with pytest.raises(DataError, match="column 'score': a column of float64 is not one of int64"):
        frame.cast({"score": "int64"})
    with pytest.raises(DataError, match="must be different texts"):
        frame.rename("a", "a", "b")


def test_the_levels_of_an_index_that_have_names_are_columns() -> None:
    pandas = pytest.importorskip("pandas", reason="the extra `test` has it")
    frame = pandas.DataFrame({"city": ["Rome", "Oslo", "Rome"], "day": [1, 1, 2], "total": [3, 4, 5]})
    assert read(frame.groupby("city")[["total"]].sum()).to_dict() == {"city": ["Oslo", "Rome"], "total": [4, 8]}
    by_both = frame.set_index(["city", "day"])
    assert read(by_both).to_dict() == frame.to_dict("list")
    assert read(by_both.rename_axis([None, "day"])).names == ("day", "total")
    assert read(frame.iloc[[2, 0]]).to_dict() == {"city": ["Rome", "Rome"], "day": [2, 1], "total": [5, 3]}
    with pytest.raises(DataError, match="the index and a column are both named 'day'"):
        read(frame.set_index("day", drop=False))


def test_lists_and_structs_go_to_pandas_and_back_unchanged() -> None:
    columns = {"l": [[2**62 + 1, None], [7], None], "s": [{"a": [1, {"z": 2}]}, {"a": None}, {"b": 2**62 + 1}]}
    frame = read(columns)
    assert frame.to_pandas().to_dict("list") == columns
    assert read(frame.to_pandas()).records() == frame.records()


@pytest.mark.parametrize(
    ("library", "method", "install"),
    [
        ("pyarrow", "to_arrow", "'timely-dataflow[frames]'"),
        ("pyarrow", "to_pandas", "'timely-dataflow[frames]'"),
        ("polars", "to_polars", "polars"),
        ("pandas", "to_pandas", "pandas"),
    ],
)
def test_a_library_that_is_missing_is_named_with_what_installs_it(
    library: str, method: str, install: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    frame = read({"a": ["x", "y"]})
    with pytest.raises(ImportError, match=f"^to make .* needs {library}: pip install {re.escape(install)}$"):
        getattr(frame, method)()


def test_frames_are_equal_if_their_names_are_in_the_same_order() -> None:
    frame = Frame(("a", "b"), ([1], [2]))
    assert frame == Frame(("a", "b"), ([1], [2]))
    assert frame != Frame(("b", "a"), ([1], [2]))
    assert frame != Frame(("b", "a"), ([2], [1]))


@pytest.mark.parametrize("values", [[np.datetime64(1 << 31, "D")], [None, np.datetime64(-(1 << 31) - 1, "D")]])
def test_a_date_that_arrow_cannot_hold_is_refused_beside_nulls_too(values: list[Any]) -> None:
    with pytest.raises(DataError, match=r"column 'a': a date is more than 2 \*\* 31 days from 1970"):
        read({"a": values}).to_arrow()
    kept = read({"a": [np.datetime64((1 << 31) - 1, "D"), None, np.datetime64(-(1 << 31), "D")]}).to_arrow()["a"]
    assert kept.cast(pa.int32()).to_pylist() == [(1 << 31) - 1, None, -(1 << 31)]


@pytest.mark.parametrize("count", [0, 1])
@pytest.mark.parametrize("zone", ["+05:30", "Nowhere/Here"])
def test_instants_of_a_zone_that_polars_lacks_are_refused_with_a_remedy(zone: str, count: int) -> None:
    frame = read(pa.table({"a": pa.array([1] * count, pa.timestamp("us", zone))}))
    with pytest.raises(DataError, match=f"column 'a' .*{re.escape(zone)}.*'timestamp\\[us, UTC\\]'"):
        frame.to_polars()
    assert frame.cast({"a": "timestamp[us, UTC]"}).to_polars()["a"].dt.epoch("us").to_list() == [1] * count
    assert read(pa.table({"a": pa.array([1], pa.timestamp("us", "+00:00"))})).to_polars().shape == (1, 1)


@pytest.mark.parametrize(
    ("values", "of"), [([1], "time[ns]"), ([np.datetime64("12000-01-01")], "date"), ([None, 1], "time[ns]")]
)
def test_times_that_pandas_cannot_hold_are_refused_by_the_name_of_their_column(values: list[Any], of: str) -> None:
    column = pa.array(values, pa.time64("ns")) if of == "time[ns]" else values
    with pytest.raises(DataError, match=f"column 'a' holds {re.escape(of)}, and pandas .*to_arrow"):
        read({"a": column}).to_pandas()
