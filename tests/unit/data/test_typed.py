"""Typed columns behave as read-only arrays of their values, and nulls are never mistaken for values."""

from __future__ import annotations

import datetime as dt
import pickle
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from timely.data.buffers import columns_from_buffers, columns_to_buffers
from timely.data.columns import as_column
from timely.data.container import as_mask
from timely.data.opaque import Items, decoded, encoded
from timely.data.typed import Typed, fill_null, is_null, name_of, nullable, typed
from timely.errors import DataError

COLUMNS: dict[str, list[Any]] = {
    "int64?": [3, None, -1],
    "uint64": [0, 1, (1 << 64) - 1],
    "float32?": [0.5, None, np.inf],
    "bool?": [True, None, False],
    "text?": ["né", None, ""],
    "bytes?": [b"\0", None, b""],
    "timestamp[ns, Asia/Tokyo]": [np.datetime64(1, "ns"), None, np.datetime64(-1, "ns")],
    "decimal(20, 1)": [Decimal("0.1"), None, Decimal("-123456789012345678.9")],
    "value": [Items([1, {"a": None}]), None, Items([])],
}


@pytest.mark.parametrize("name", COLUMNS)
def test_rows_are_moved_with_their_type(name: str) -> None:
    values, column = COLUMNS[name], typed(COLUMNS[name], name)
    assert column.tolist() == list(column) == values
    for moved, expected in [
        (column[1:], values[1:]),
        (column[::-1], values[::-1]),
        (column[[2, 0]], [values[2], values[0]]),
        (column[np.array([True, False, True])], [values[0], values[2]]),
        (column[typed([True, None, False], "bool?")], [values[0]]),
        (column.take([1, 1]), [values[1]] * 2),
        (np.take(column, [0]), [values[0]]),
        (column.repeat(2), [value for value in values for _ in range(2)]),
        (np.repeat(column, [0, 1, 2]), [values[1], values[2], values[2]]),
        (np.concatenate([column, column[:1]]), [*values, values[0]]),
        (np.where([True, False, True], column, column[::-1]), [values[0], values[1], values[2]]),
        (np.where([False, True, False], column, column[::-1]), [values[2], values[1], values[0]]),
        (np.where([False, True, False], values[0], column), [values[0], values[0], values[2]]),
        (column.copy(), values),
        (pickle.loads(pickle.dumps(column)), values),
    ]:
        assert moved.type.name == name
        assert moved.tolist() == expected
    assert column[0] == values[0]
    assert (len(column), column.shape, column.size, column.ndim) == (3, (3,), 3, 1)


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_is_sent_as_its_storage(name: str) -> None:
    column = typed(COLUMNS[name], name)
    dtypes, buffers = columns_to_buffers([column, np.arange(3)])
    first, second = columns_from_buffers(dtypes, [np.ascontiguousarray(buffer).data for buffer in buffers])
    assert isinstance(first, Typed)
    assert name_of(first) == name
    assert first.tolist() == COLUMNS[name]
    assert second.tolist() == [0, 1, 2]


@pytest.mark.parametrize("dtype", ["<i8 nothing", "text int64?", "<i8 text?", "bytes date", "<i8 ", " int64?"])
def test_a_type_that_a_peer_names_wrongly_is_refused(dtype: str) -> None:
    with pytest.raises(ValueError, match=r"column type|not stored as"):
        columns_from_buffers([dtype], [np.arange(3).data])


@pytest.mark.parametrize(
    "data", [b"", b"\x70", b"\x20", b"\x20\x85a", b"\x40a", b"\x99", b"\x80\x20\x80\x01", b"\xff\xff"]
)
def test_bytes_that_are_no_opaque_value_are_refused(data: bytes) -> None:
    with pytest.raises(DataError, match="is not an opaque value"):
        decoded(data)


def test_lists_are_distinguished_where_python_takes_them_for_equal() -> None:
    values: list[Any] = [[1], [1.0], [True], [["a", 1]], {"a": 1}]
    items = typed(values, "value").tolist()
    assert len(set(items)) == 5
    assert items[0] == (1,)
    assert items[4] != items[3]
    assert typed(items, "value").storage.tolist() == typed(values, "value").storage.tolist()
    assert np.asarray(typed(items, "value")).tolist() == values
    assert [type(item[0]) for item in np.asarray(typed(items[:3], "value")).tolist()] == [int, float, bool]


def test_an_opaque_value_has_a_limited_depth() -> None:
    deep: list[Any] = []
    for _ in range(100):
        deep = [deep]
    with pytest.raises(DataError, match="nested more than 64 levels"):
        encoded(deep)
    with pytest.raises(DataError, match="is not an opaque value"):
        decoded(b"\x70" * 100 + b"\x01" * 100)


def test_functions_of_numpy_pass_over_nulls() -> None:
    column = typed([3, None, 5], "int64?")
    assert (column * 2 - 1).tolist() == [5, None, 9]
    assert (column / 2).type.name == "float64?"
    assert np.maximum(column, np.array([4, 4, 4])).tolist() == [4, None, 5]
    assert (column == column).tolist() == [True, None, True]
    assert [part.tolist() for part in np.divmod(column, 2)] == [[1, None, 2], [1, None, 1]]
    assert (typed(["a", None], "text?") + "b").tolist() == ["ab", None]
    assert np.sqrt(typed([4.0, None], "float64?")).tolist() == [2.0, None]
    assert column.astype(np.float64).tolist() == [3.0, None, 5.0]
    assert (column + column[::-1]).type.name == "int64?"
    assert (typed([1, 2], "int64?") + 1).type.name == "int64?"  # the type does not depend on what is in a batch
    assert (np.array(["2024-01-01", "2024-01-01"], "M8[D]") + typed([1, None], "int64?")).tolist() == [
        dt.date(2024, 1, 2),
        None,
    ]


@pytest.mark.parametrize(
    ("one", "other", "both", "either"),
    [
        (True, None, None, True),
        (False, None, False, None),
        (None, None, None, None),
        (True, False, False, True),
    ],
)
def test_logic_has_three_values(one: Any, other: Any, both: Any, either: Any) -> None:
    for left, right in ((one, other), (other, one)):
        first, second = typed([left], "bool?"), typed([right], "bool?")
        assert (first & second).tolist() == np.logical_and(first, second).tolist() == [both]
        assert (first | second).tolist() == np.logical_or(first, second).tolist() == [either]
    assert (~typed([one], "bool?")).tolist() == [None if one is None else not one]


def test_a_plain_column_of_booleans_takes_part_in_logic() -> None:
    column = typed([True, None, False], "bool?")
    assert (column & np.array([False, False, True])).tolist() == [False, False, False]
    assert (np.array([True, True, False]) | column).tolist() == [True, True, False]
    assert (column | True).tolist() == [True, True, True]


def test_a_row_whose_predicate_is_null_is_left_out() -> None:
    column = typed([3, None, 5], "int64?")
    assert as_mask(column > 3, 3).tolist() == [False, False, True]
    assert as_mask(~(column > 3), 3).tolist() == [True, False, False]


@pytest.mark.parametrize(
    "function",
    [
        np.sort,
        np.sum,
        np.cumsum,
        np.isin,
        np.unique,
        np.asarray,
        lambda column: column.max(),
        lambda column: column.sum(),
    ],
)
def test_a_function_that_would_take_a_null_for_a_value_is_refused(function: Any) -> None:
    arguments = ([1],) if function is np.isin else ()
    with pytest.raises(DataError, match=r"is a null, which this function cannot see: fill_null"):
        function(typed([3, None], "int64?"), *arguments)


def test_times_are_arrays_of_numpy() -> None:
    moments = typed([dt.datetime(2024, 1, 1, 12), None], "timestamp[us]")
    assert np.asarray(moments).tolist() == [dt.datetime(2024, 1, 1, 12), None]
    assert (moments + np.timedelta64(1, "h"))[0] == np.datetime64("2024-01-01T13", "us")
    assert (moments > np.datetime64("2024-01-01")).tolist() == [True, False]
    assert moments.astype("M8[D]").dtype == np.dtype("M8[D]")
    zoned = typed([dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)], "timestamp[us, Asia/Tokyo]")
    assert np.asarray(zoned)[0] == np.datetime64("2024-01-01T12", "us")


def test_the_hour_that_a_clock_shows_twice_is_two_values() -> None:
    early, late = (dt.datetime(2024, 10, 27, hour, 30, tzinfo=dt.UTC) for hour in (0, 1))
    column = typed([early, late], "timestamp[us, Europe/Berlin]")
    assert len(np.unique(column.storage)) == 2
    assert column.tolist() == [early, late]


def test_nulls_are_found_and_filled() -> None:
    column = typed([3, None], "int64?")
    assert is_null(column).tolist() == [False, True]
    assert fill_null(column, 7).tolist() == [3, 7]
    assert name_of(fill_null(column, 7)) == "int64"
    assert fill_null(typed([None, "b"], "text?"), "").tolist() == ["", "b"]
    assert fill_null(np.array([1]), 0).tolist() == [1]
    dates = fill_null(typed([None], "date"), dt.date(2024, 1, 1))
    assert (dates.type.name, dates.tolist()) == ("date", [dt.date(2024, 1, 1)])
    with pytest.raises(DataError, match="is of class str"):
        fill_null(column, "x")


def test_columns_become_nullable_and_plain_again() -> None:
    assert nullable(np.array([1])).type.name == "int64?"
    assert nullable(typed([1], "uint64")).type.name == "uint64?"
    assert nullable(typed([None], "date")).type.name == "date"
    assert typed(nullable(np.array(["a"])), "text").tolist() == ["a"]
    assert typed(typed([1, None], "int64?"), "uint64?").tolist() == [1, None]
    with pytest.raises(DataError, match="is a null"):
        typed(typed([1, None], "int64?"), "int64")


@pytest.mark.parametrize(
    ("values", "name", "message"),
    [
        ([(1 << 63) - 1], "int64?", "at row 0 stands for a null"),
        ([None, (1 << 64) - 1], "uint64?", "at row 1 stands for a null"),
        (["a", "\U0010ffffx"], "text?", "at row 1 stands for a null"),
        ([1 << 63], "int64", "out of range"),
        ([-1], "uint64", "out of range"),
        (np.array([-1]), "uint64", "out of range"),
        (np.array([1 << 63], np.uint64), "int64?", "out of range"),
        ([True], "int64", "is of class bool"),
        ([1.5], "int64?", "is of class float"),
        ([0.1], "float32", "would be rounded"),
        ([(1 << 53) + 1], "float64?", "would be rounded"),
        (np.array([0.5]), "float32?", "a column of float64 is not one of float32"),
        ([dt.datetime(2024, 1, 1)], "date", "has a time of day"),
        ([dt.datetime(2024, 1, 1)], "timestamp[us, UTC]", "has no zone"),
        ([dt.datetime(2024, 1, 1, tzinfo=dt.UTC)], "timestamp[us]", "has a zone"),
        ([dt.datetime(2024, 1, 1, 0, 0, 0, 1)], "timestamp[ms]", "too large or too precise"),
        ([dt.datetime(9999, 1, 1)], "timestamp[ns]", "too large or too precise"),
        ([dt.time(1, tzinfo=dt.UTC)], "time[us]", "has a zone"),
        ([np.timedelta64(86_400, "s")], "time[s]", "not within a day"),
        ([Decimal("0.001")], "decimal(9, 2)", "more than 2 digits after the point"),
        ([Decimal("12345678")], "decimal(9, 2)", "more than 9 digits"),
        ([Decimal("NaN")], "decimal(9, 2)", "is not finite"),
        ([0.5], "decimal(9, 2)", "is of class float"),
        ([b"a"], "text", "is of class bytes"),
        (["a"], "bytes?", "is of class str"),
        ([["a", object()]], "value", "contains a object"),
        ([1], "value", "is of class int, which is not a list or dict"),
        ([{1: 2}], "value", "keys that are not text"),
        ([None], "int64", "is a null"),
        ([None], "text", "is a null"),
        (["\ud800"], "text?", "not valid Unicode"),
        ([1], "int32", "is not a column type"),
        ([1], "decimal(99, 2)", "from 1 to 76 digits"),
    ],
)
def test_a_value_that_is_not_of_a_type_is_refused(values: Any, name: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        typed(values, name)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("date", [dt.date(2026, 3, 1), dt.date(1969, 1, 1)]),
        ("timestamp[us]", [dt.datetime(2026, 3, 1, 12), dt.datetime(1969, 1, 1)]),
        (
            "timestamp[us, Europe/Berlin]",
            [dt.datetime(2026, 3, 1, tzinfo=dt.UTC), dt.datetime(1969, 1, 1, tzinfo=dt.UTC)],
        ),
        ("timestamp[ns]", [dt.datetime(2026, 3, 1, 12), dt.datetime(1969, 1, 1)]),
        ("duration[us]", [dt.timedelta(1), dt.timedelta(-1)]),
        ("time[us]", [dt.time(12), dt.time(1, 2, 3)]),
    ],
)
def test_times_are_compared_with_those_of_python_and_a_null_is_none_of_them(name: str, values: list[Any]) -> None:
    late, early = values
    column = typed([late, None, early], name)
    assert (column == late).tolist() == [True, False, False]
    assert (column < late).tolist() == [False, False, True]
    assert (early < column).tolist() == [True, False, False]
    assert (column != early).tolist() == [True, True, False]


def test_times_are_computed_with_those_of_python() -> None:
    moments = typed([dt.datetime(2026, 3, 1), None], "timestamp[us]")
    assert (moments + dt.timedelta(hours=1)).tolist() == [dt.datetime(2026, 3, 1, 1), None]
    assert (dt.datetime(2026, 3, 2) - moments).tolist() == [dt.timedelta(1), None]
    days = typed([dt.date(2026, 3, 1), None], "date")
    assert (days + dt.timedelta(days=1)).astype("M8[D]").tolist() == [dt.date(2026, 3, 2), None]
    with pytest.raises(TypeError, match="offset-naive and offset-aware"):
        moments[:1] < dt.datetime(2026, 3, 1, tzinfo=dt.UTC)  # noqa: B015


def test_columns_of_two_types_are_not_joined_end_to_end() -> None:
    with pytest.raises(DataError, match=r"beside one of .*: convert one with typed\(column"):
        np.concatenate([typed([None], "date"), typed([None], "timestamp[us]")])
    with pytest.raises(DataError, match="convert one"):
        np.where([True], typed([1], "uint64"), np.array([1]))
    assert np.concatenate([np.array([1]), typed([None], "int64?")]).tolist() == [1, None]


def test_equal_values_have_equal_hashes_wherever_they_are_stored() -> None:
    for name, values in COLUMNS.items():
        column = typed(values, name)
        hashes = column.hashes()
        assert len(set(hashes.tolist())) == 3
        assert typed(values[::-1], name).hashes().tolist() == hashes[::-1].tolist()


def test_a_column_is_read_only() -> None:
    column = typed([1, 2], "int64?")
    with pytest.raises(ValueError, match="read-only"):
        column[0] = 7
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(column)[0] = 7
    with pytest.raises(ValueError, match="WRITEABLE"):
        column.setflags(write=True)


@pytest.mark.parametrize("units", [("D", "ns"), ("ns", "D"), ("us", "ns")])
def test_times_of_several_units_are_refused_where_the_finest_does_not_hold_them(units: tuple[str, str]) -> None:
    old, new = np.datetime64("0001-01-01"), np.datetime64("2026-03-01")
    given = [(old if unit != "ns" else new).astype(f"M8[{unit}]") for unit in units]
    row = units.index("ns") ^ 1
    with pytest.raises(DataError, match=rf"\(1, 1, 1.* at row {row} is too large"):
        as_column(given)
    with pytest.raises(DataError, match=rf"\(1, 1, 1.* at row {row} is too large"):
        typed([*given, None], "timestamp[ns]")
    assert typed([*given, None], "timestamp[us]").tolist()[row] == dt.datetime(1, 1, 1)


def test_times_of_numpy_and_python_are_of_one_column() -> None:
    moments = [dt.datetime(2026, 3, 1), np.datetime64("2026-03-01T00:00:00.000001"), np.datetime64("2026-03-02"), None]
    found = typed(moments, "timestamp[us]").tolist()
    assert found == [dt.datetime(2026, 3, 1), dt.datetime(2026, 3, 1, 0, 0, 0, 1), dt.datetime(2026, 3, 2), None]
    spans = typed([np.timedelta64(1, "ns"), dt.timedelta(1)], "duration[ns]").tolist()
    assert spans == [np.timedelta64(1, "ns"), np.timedelta64(1, "D")]


NULLABLE = {
    "int64?": ([1, None, 3], 1),
    "text?": (["a", None, "c"], "a"),
    "date": ([dt.date(2026, 1, 1), None, dt.date(2026, 1, 3)], dt.date(2026, 1, 1)),
    "timestamp[us, UTC]": (
        [dt.datetime(2026, 1, 1, tzinfo=dt.UTC), None, dt.datetime(2026, 1, 3, tzinfo=dt.UTC)],
        dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
    ),
    "duration[us]": ([dt.timedelta(1), None, dt.timedelta(3)], dt.timedelta(1)),
    "decimal(18, 2)": ([Decimal("1.00"), None, Decimal("3.00")], Decimal("1.00")),
}
"""Columns of three rows, of which the second is a null, and the value of the first."""


@pytest.mark.parametrize("name", ["int64?", "text?", "decimal(18, 2)"])
def test_a_comparison_with_a_null_is_a_null(name: str) -> None:
    values, first = NULLABLE[name]
    column = typed(values, name)
    assert [(column == first).tolist(), (column != first).tolist()] == [[True, None, False], [False, None, True]]
    assert [(column <= first).tolist(), (column > first).tolist()] == [[True, None, False], [False, None, True]]
    assert as_mask(~(column > first), 3).tolist() == [True, False, False]
    assert (column[:1] == first).tolist() == [True]


@pytest.mark.parametrize("name", NULLABLE)
def test_the_text_of_a_null_is_a_null(name: str) -> None:
    texts = typed(NULLABLE[name][0], name).astype(str)
    assert is_null(texts).tolist() == [False, True, False]


def test_arithmetic_leaves_null_decimals_out() -> None:
    column = typed([Decimal("1.50"), None], "decimal(18, 2)")
    assert (column + 1).tolist() == [Decimal("2.50"), None]
    assert typed(-column, "decimal(18, 2)").tolist() == [Decimal("-1.50"), None]
    assert (column * typed([2, 2], "int64?")).tolist() == [Decimal("3.00"), None]


def test_dates_and_times_of_python_are_a_column_with_nulls_for_none() -> None:
    for values, name in (
        ([None, dt.date(2026, 1, 1)], "date"),
        ([dt.datetime(2026, 1, 1), None], "timestamp[us]"),
        ([None, dt.timedelta(1)], "duration[us]"),
        ([None, dt.time(1)], "time[us]"),
    ):
        column = as_column(values)
        assert name_of(column) == name
        assert column.tolist() == values
