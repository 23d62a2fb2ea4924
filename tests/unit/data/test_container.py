"""Tests of columns made from Python values, and of columns as bytes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest

from differential import Updates
from tests.unit.dataflow.running import on_workers
from timely import Config, Gather, InputPort, OutputPort, Worker, execute, new_input
from timely.data.buffers import columns_from_buffers, columns_to_buffers
from timely.data.columns import stacked
from timely.data.container import (
    Array,
    Batch,
    Columns,
    as_column,
    as_columns,
    concatenate,
    encode,
)
from timely.data.typed import Typed, typed
from timely.data.typed_rows import is_null
from timely.data.weight import weight_of
from timely.errors import DataError

STRINGS: list[Any] = ["", "a", "a\0", "é", "日本\0"]
BYTES: list[Any] = [b"", b"a", b"a\0", b"\0\0", b"\xff\0"]


LARGE = 2**53 + 1
"""The first whole number that a float rounds."""


@pytest.mark.parametrize(
    "series",
    [
        pandas.Series([LARGE, None], dtype="Int64"),
        pandas.Series([LARGE, None], dtype="int64[pyarrow]"),
        polars.Series([None, LARGE]),
        pyarrow.array([LARGE, None]),
        pyarrow.chunked_array([[LARGE], [None]]),
    ],
)
def test_integers_with_nulls_of_another_library_do_not_become_floats(series: Any) -> None:
    with pytest.raises(DataError, match=r"cannot make a column of None .*typed\(values, 'int64\?'\)"):
        as_column(series)


@pytest.mark.parametrize("series", [pandas.Series([1.5, None]), polars.Series([1.5, None]), pyarrow.array([1.5, None])])
def test_missing_floats_of_another_library_are_nan(series: Any) -> None:
    assert str(as_column(series).tolist()) == "[1.5, nan]"


NOON = dt.datetime(2026, 7, 1, 12, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    "series",
    [
        pandas.Series([None, NOON]).dt.tz_convert("Europe/Rome"),
        polars.Series([None, NOON]).cast(polars.Datetime("us", "Europe/Rome")),
        pyarrow.array([None, NOON], pyarrow.timestamp("us", "Europe/Rome")),
        pyarrow.chunked_array([[None, NOON]], pyarrow.timestamp("us", "Europe/Rome")),
    ],
)
def test_timestamps_of_another_library_keep_their_zone(series: Any) -> None:
    column = as_column(series)
    assert isinstance(column, Typed)
    assert (column.type.name, column.tolist()) == ("timestamp[us, Europe/Rome]", [None, NOON])


@pytest.mark.parametrize(
    ("nulls", "name"),
    [
        ([pandas.NaT], "timestamp[us]"),
        ([np.datetime64("NaT", "D")], "date"),
        ([np.timedelta64("NaT", "s")], "duration[s]"),
    ],
)
def test_missing_times_alone_have_the_type_of_their_class(nulls: list[Any], name: str) -> None:
    column = as_column(nulls)
    assert isinstance(column, Typed)
    assert (column.type.name, column.tolist()) == (name, [None])


@pytest.mark.parametrize("values", [STRINGS, BYTES])
def test_zeros_at_the_end_of_text_and_bytes_are_kept(values: list[Any]) -> None:
    assert as_column(values).tolist() == values
    assert as_column(np.array(values, np.object_)).tolist() == values
    assert [as_column(value).item() for value in values] == values


def test_columns_of_one_kind_have_one_dtype() -> None:
    assert {as_column(column).dtype.kind for column in (np.array(["a"]), ["a"], np.array(["a"], np.object_))} == {"T"}
    assert {as_column(column).dtype.kind for column in (np.array([b"a"]), [b"a"], np.array([b"a"], np.object_))} == {
        "O"
    }


@pytest.mark.parametrize("values", [STRINGS, BYTES, [1, 2], [0.5], [True], [], np.array([b"a", b""])])
def test_columns_come_back_from_their_buffers(values: Any) -> None:
    column = np.asarray(values) if isinstance(values, np.ndarray) else as_column(values)
    dtypes, buffers = columns_to_buffers([column])
    (again,) = columns_from_buffers(dtypes, [memoryview(buffer).cast("B") for buffer in buffers])
    assert again.tolist() == column.tolist()
    assert again.dtype == column.dtype


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([b"a", 1], r"1 \(int\) at row 1, beside b'a' \(bytes\)"),
        ([b"a", "a"], r"'a' \(str\) at row 1, beside b'a'"),
        ([1, b"a"], r"b'a' \(bytes\) at row 1, beside 1 \(int\)"),
        (["a", "b", 3], r"3 \(int\) at row 2, beside 'a' \(str\)"),
        ([1, "a"], r"'a' \(str\) at row 1, beside 1"),
        (["a", None], r"None \(NoneType\) at row 1, beside 'a'.*leave such rows out.*typed\(values, 'text\?'\) of dif"),
        ([b"a", None], r"None \(NoneType\) at row 1, beside b'a'.*typed\(values, 'bytes\?'\)"),
        ([1.5, None], r"None \(NoneType\) at row 1, beside 1.5.*typed\(values, 'float64\?'\)"),
        ([True, None], r"None \(NoneType\) at row 1, beside True.*typed\(values, 'bool\?'\)"),
        ([None, 1], r"None \(NoneType\).*typed\(values, 'int64\?'\)"),
        ([1, "a"], r"leave such rows out or replace the value by one of the column's kind$"),
        (np.array(["a", np.nan], np.object_), r"nan \(float\) at row 1, beside 'a'"),
        (np.array(["a", None], np.dtypes.StringDType(na_object=None)), r"None \(NoneType\) at row 1"),
        ((np.array(["a", np.nan], np.dtypes.StringDType(na_object=np.nan)),), r"nan \(float\) at row 1"),
        ([None], r"None \(NoneType\):"),
        ([object()], r"\(object\)"),
        ([Decimal("1.5")], r"Decimal\('1.5'\) .*typed\(values, 'decimal\(18, 2\)'\)"),
        ((number for number in range(3)), r"\(generator\).*list\(\)"),
        ([range(3)], r"\(range\).*list\(\) turns an iterator, a range or a set into values"),
        ({1, 2}, r"\(set\).*list\(\)"),
        ([2**70], f"of {2**70}: its integers are too large for any 64-bit type"),
        (2**70, f"of {2**70}"),
        ([2**63, 1, -1], f"of {2**63}: its integers are too large for any 64-bit type"),
        ([2**53 + 1, 0.5], f"of {2**53 + 1} and of floats"),
        ("\ud800", "not valid Unicode"),
        ([[1, 2], [3]], "one value for each row"),
        ([(1, 2), (3, 4)], r"tuple\(zip\(\*rows\)\), or tuple\(array.T\), turns rows into columns"),
        (np.ma.masked_array([1, 2], [False, True]), "masked values, as at row 1"),
        (np.array(["2026-11"], "M8[M]"), r"\.astype\('datetime64\[us\]'\)"),
        ([np.timedelta64(1, "ns"), 3], r"3 \(int\) at row 1, beside np.timedelta64\(1,'ns'\)"),
        ([3, np.timedelta64(1, "ns")], r"np.timedelta64\(1,'ns'\) \(timedelta64\) at row 1, beside 3 \(int\)"),
        ([np.timedelta64(1, "h")], r"\.astype\('timedelta64\[us\]'\)"),
        (np.array([1j]), "of complex128"),
    ],
)
def test_values_that_cannot_be_a_column_are_refused(values: Any, message: str) -> None:
    with pytest.raises(DataError, match=f"a column.*{message}"):
        as_columns(values)


def test_rows_in_an_array_are_refused_with_a_way_to_turn_them_into_columns() -> None:
    with pytest.raises(DataError, match=r"shape \(3, 2\).*tuple\(array.T\)"):
        as_columns(np.ones((3, 2)))


@pytest.mark.parametrize("rows", [np.array([[1, "a"], [2, "b"]], np.object_), pandas.DataFrame({"n": [1], "t": ["a"]})])
def test_rows_of_several_kinds_are_refused_for_their_shape(rows: Any) -> None:
    with pytest.raises(DataError, match=rf"column 0 has shape \({len(rows)}, 2\).*turns rows into columns"):
        as_columns((rows,))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, True], "i"),
        ([1, 2.5], "f"),
        ([2**63, 1], "u"),
        (np.array([1, 2], np.object_), "i"),
        (np.ma.masked_array([1, 2]), "i"),
        (np.array(["a", "b"], np.dtypes.StringDType(na_object=None)), "T"),
        ([], "f"),
    ],
)
def test_numbers_of_any_library_become_columns_without_rounding(values: Any, kind: str) -> None:
    column = as_column(values)
    assert column.dtype.kind == kind
    assert type(column) is np.ndarray
    assert column.tolist() == list(values)


@pytest.mark.parametrize(
    ("values", "name", "stored"),
    [
        ([np.timedelta64(5, "s")], "duration[s]", [5]),
        ([np.timedelta64(5, "ns"), np.timedelta64(1, "us"), None], "duration[ns]", [5, 1000, None]),
        ([np.timedelta64(2**62, "s")], "duration[s]", [2**62]),
        ([np.timedelta64(5, "us"), dt.timedelta(seconds=1)], "duration[us]", [5, 1_000_000]),
        ([dt.timedelta(seconds=1), np.timedelta64(5, "us")], "duration[us]", [1_000_000, 5]),
        ([np.datetime64(5, "us"), dt.datetime(1970, 1, 1)], "timestamp[us]", [5, 0]),
        (np.array([np.timedelta64(5, "s")], np.object_), "duration[s]", [5]),
    ],
)
def test_numpys_times_one_by_one_become_columns_of_times(values: Any, name: str, stored: list[int | None]) -> None:
    column = as_column(values)
    assert isinstance(column, Typed)
    assert column.type.name == name
    counts = np.asarray(column).astype(np.int64).tolist()
    assert [None if null else count for null, count in zip(is_null(column).tolist(), counts)] == stored


@pytest.mark.parametrize("lengths", [[-1, 3], [3], [1], [1 << 40]])
def test_contents_that_do_not_fit_their_lengths_are_refused(lengths: list[int]) -> None:
    buffers = [memoryview(np.array(lengths)).cast("B"), memoryview(b"ab")]
    for kind in ("text", "bytes"):
        with pytest.raises(ValueError, match="lengths"):
            columns_from_buffers([kind], buffers)
        with pytest.raises(ValueError, match="two buffers"):
            columns_from_buffers([kind], buffers[:1])


@pytest.mark.parametrize("dtype", [np.complex128, np.longdouble, "M8[D]", "m8[s]", [("a", np.int64), ("b", np.int8)]])
def test_a_column_that_no_peer_would_accept_is_not_encoded_and_its_type_is_named(dtype: Any) -> None:
    assert_not_encoded(np.zeros(2, dtype))


@pytest.mark.parametrize("kind", ["U0", "S0"])
def test_text_of_no_width_which_numpy_does_not_read_is_not_encoded(kind: str) -> None:
    assert_not_encoded(np.zeros(2, [("a", kind), ("b", np.int64)])["a"])


def assert_not_encoded(column: Array) -> None:
    with pytest.raises(DataError) as raised:
        encode(Columns((np.arange(2), column)))
    assert f"a column of {column.dtype} cannot be sent to another process" in str(raised.value)


@pytest.mark.parametrize("value", [1.5, "a", None])
def test_a_column_of_objects_that_are_not_bytes_is_not_encoded(value: Any) -> None:
    with pytest.raises(DataError, match=r"a column of Python objects may hold only bytes, not .*"):
        encode(Columns((np.array([b"to", value], object),)))


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(DataError, match=r"of one dimension and one length, not of lengths 2, 3"):
        Columns((np.arange(2), np.arange(3)))


class Unregistered:
    """An unregistered kind of batch."""

    kind = "unregistered"

    def __len__(self) -> int:
        return 1

    def take(self, rows: Array) -> Unregistered:
        return self

    def to_buffers(self) -> tuple[Any, list[Array]]:
        return None, []

    @classmethod
    def from_buffers(cls, meta: Any, buffers: Sequence[memoryview]) -> Unregistered:
        return cls()


def test_a_batch_of_a_kind_that_is_not_registered_is_not_encoded_and_its_class_is_named() -> None:
    with pytest.raises(DataError, match=r"kind 'unregistered' .*register with its class, `Unregistered`"):
        encode(Unregistered())


MEGABYTE = 1 << 20


@pytest.mark.parametrize(
    "batch",
    [
        [bytes(MEGABYTE) for _ in range(100)],
        [("a", "b" * MEGABYTE) for _ in range(100)],
        Columns((np.array(["a" * MEGABYTE] * 100, np.dtypes.StringDType()), np.arange(100))),
        Columns(as_columns(([bytes(MEGABYTE)] * 100,))),
        Columns((typed(["a" * MEGABYTE] * 100, "text?"), np.arange(100))),
        Columns((typed([["a" * MEGABYTE]] * 100, "value"),)),
        Updates.at((0,), (np.array(["a" * MEGABYTE] * 100, np.dtypes.StringDType()),)),
    ],
    ids=[
        "a list of bytes",
        "a list of tuples",
        "a column of text",
        "a column of bytes",
        "text or null",
        "lists",
        "updates",
    ],
)
def test_the_contents_of_text_and_bytes_have_weight(batch: Batch) -> None:
    weight = weight_of(batch)  # a failed assertion would print the batch
    assert 100 * MEGABYTE < weight < 101 * MEGABYTE


@pytest.mark.parametrize("rows", [0, 1, 31, 32, 33, 1000])
def test_the_weight_of_records_alike_is_that_of_each(rows: int) -> None:
    assert weight_of(Columns((np.array(["a" * 84] * rows, np.dtypes.StringDType()),))) == 100 * rows
    assert weight_of([bytes(100)] * rows) == rows * weight_of([bytes(100)])
    assert weight_of(Columns((np.arange(rows),))) == 8 * rows


class Readings(Unregistered):
    """A kind of batch with what a batch must have, and nothing more."""

    def to_buffers(self) -> tuple[Any, list[Array]]:
        return None, [np.array([20.5, 31.0]), np.arange(3, dtype=np.int32)]


@on_workers
def test_a_batch_of_a_programs_own_kind_has_the_weight_of_its_buffers(workers: int) -> None:
    found: list[Readings] = []

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            readings, stream = new_input(scope)
            stream.unary(Gather(), keep)
        readings.send_batch(Readings())

    def keep(input: InputPort, output: OutputPort) -> None:
        found.extend(batch for _, batch in input)  # type: ignore[misc]

    execute(program, Config(workers=workers))
    assert [weight_of(each) for each in found] == [28] * workers


BIG = 2**53 + 1


@pytest.mark.parametrize(
    ("one", "other", "dtype"),
    [
        (np.array([BIG]), np.array([BIG], np.uint64), "int64"),
        (np.array([BIG], np.uint64), np.array([-1], np.int8), "int64"),
        (np.array([2**63], np.uint64), np.array([7], np.uint8), "uint64"),
        (np.array([True]), np.array([7]), "int64"),
        (np.array([0.5], np.float32), np.array([0.25]), "float64"),
        (np.array([BIG]), np.array([], np.float64), "int64"),
        (np.array([], np.float64), as_column(["a"]), "StringDType()"),
        (np.array(["a"]), as_column(["1"]), "StringDType()"),
        (np.array([b"a"]), as_column([b"a\0"]), "object"),
    ],
)
def test_parts_of_a_column_that_are_of_one_kind_are_put_together_unchanged(
    one: Array, other: Array, dtype: str
) -> None:
    for parts in ((one, other), (other, one)):
        column = stacked(parts)
        assert column.tolist() == parts[0].tolist() + parts[1].tolist()
        assert str(column.dtype) == dtype


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        (np.array([BIG]), np.array([0.5]), f"{BIG} .int64. in one batch and 0.5 .float64. in another: convert"),
        (np.array([True]), np.array([0.5]), "True .bool. in one batch and 0.5 .float64. in another"),
        (np.array([1]), np.array(["1"]), "1 .int64. in one batch and '1' .<U1. in another"),
        (np.array([b"a"]), as_column(["a"]), "b'a' .|S1. in one batch and 'a'"),
        (np.array([2**63], np.uint64), np.array([1]), f"{2**63} .uint64. in one batch and 1 .int64. in another"),
    ],
)
def test_parts_of_a_column_that_are_of_several_kinds_are_refused(one: Array, other: Array, message: str) -> None:
    with pytest.raises(DataError, match=message):
        stacked((one, other))
    with pytest.raises(DataError, match="column 1 holds"):
        concatenate([Columns((one, other)), Columns((one, one))])


def test_columns_are_not_iterated_over() -> None:
    with pytest.raises(TypeError, match=r"rows\(\) yields these"):
        list(Columns((np.arange(3),)))
