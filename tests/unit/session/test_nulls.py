"""Nulls and NaN in tables: as one row or many, inserted, replaced and deleted."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from differential import Session
from timely import rowwise
from timely.errors import DataError, SessionError
from timely.lowlevel import fill_null, is_null, nullable, typed

NEW_YEAR = dt.date(2026, 1, 1)
SIGN = np.sign(np.array([dt.timedelta(days=3)], "m8[us]")).tolist()[0]
"""A duration, and from NumPy 2.5 on a float."""

NULLABLE = {
    "number": (int | None, 7),
    "size": (float | None, 0.5),
    "word": (str | None, "ann"),
    "is_new": (bool | None, True),
    "raw": (bytes | None, b"x"),
    "day": (dt.date, dt.date(2026, 3, 1)),
    "at": (dt.datetime | None, dt.datetime(2026, 3, 1, 12)),
    "time": (dt.time, dt.time(1, 2)),
    "took": (dt.timedelta, dt.timedelta(seconds=3)),
    "tags": (list, [1, 2]),
    "price": (typed([], "decimal(18, 2)"), Decimal("1.50")),
    "large": (typed([], "uint64?"), 2**63 + 1),
}


@pytest.mark.parametrize("name", NULLABLE)
def test_a_null_is_inserted_replaced_and_deleted_as_a_scalar(name: str) -> None:
    of, value = NULLABLE[name]
    stored = tuple(value) if isinstance(value, list) else value
    with Session() as db:
        table = db.table("t", {"key": int, name: of}, key="key")
        table.insert(key=1, **{name: None})
        table.insert(key=[2, 3, 4], **{name: [value, None, None]})
        db.commit()
        assert table.records() == [(1, None), (2, stored), (3, None), (4, None)]
        table.delete({"key": 1, name: None})
        table.upsert({"key": 2, name: None})
        table.upsert({"key": [3], name: [value]})
        db.commit()
        assert table.records() == [(2, None), (3, stored), (4, None)]


@pytest.mark.parametrize("name", ["number", "word", "day", "price"])
def test_a_null_is_a_key(name: str) -> None:
    of, value = NULLABLE[name]
    with Session() as db:
        table = db.table("t", {name: of, "x": int}, key=name)
        table.insert({name: [None, value], "x": [1, 2]})
        db.commit()
        table.upsert({name: None, "x": 3})
        db.commit()
        assert table.records() == [(value, 2), (None, 3)]
        table.delete({name: None})
        db.commit()
        assert table.records() == [(value, 2)]


def test_values_without_nulls_go_into_a_column_that_may_have_them() -> None:
    with Session() as db:
        table = db.table("people", {"name": ["ann", None], "age": [41, None]})
        table.insert(name="bob", age=28)
        table.insert({"name": ["cem", "dan"], "age": [1, 0]})
        db.commit()
        assert table.records() == [("ann", 41), ("bob", 28), ("cem", 1), ("dan", 0), (None, None)]
        with pytest.raises(DataError, match=r"column 'age' of table 'people' holds integers, not text such as 'x'"):
            table.insert(name="eve", age="x")
        with pytest.raises(DataError, match=r"column 'age' .* holds integers, not booleans such as True"):
            table.insert({"name": ["eve", "fay"], "age": [True, False]})


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"x": int}, "column 'x' of table 't' holds integers and no nulls: `int [|] None` as its type"),
        ({"x": []}, "column 'x' of table 't' holds only nulls, which have no type"),
    ],
)
def test_a_null_without_a_place_is_refused(columns: dict[str, Any], message: str) -> None:
    with Session() as db:
        table = db.table("t", columns)
        for given in (None, [None, None]):
            with pytest.raises(DataError, match=message):
                table.insert(x=given)


@pytest.mark.parametrize("of", [int | str, complex, Decimal | None])
def test_a_class_that_is_no_type_of_column_is_refused(of: Any) -> None:
    with Session() as db, pytest.raises(SessionError, match=r"column 'x': .* is not a column type: use int, float"):
        db.table("t", {"x": of})


def test_nan_equals_itself_and_is_ordered_last() -> None:
    other = np.array([np.nan]).view(np.int64) | (1 << 51) | 1
    nan = -other.view(np.float64)[0]
    with Session() as db:
        table = db.table("t", {"x": float, "y": float | None}, key="x")
        table.insert({"x": [math.nan, 1.0, math.inf], "y": [math.nan, None, -0.0]})
        db.commit()
        assert table.records() == [(1.0, None), (math.inf, 0.0), (np.nan, np.nan)]
        with table.changes() as changes:
            table.upsert(x=nan, y=5.0)
            db.commit()
            (change,) = changes.read_nowait()
            assert change.records() == [((np.nan, 5.0), 1), ((np.nan, np.nan), -1)]
        table.delete(x=nan, y=5.0)
        table.delete(x=math.inf, y=0.0)
        db.commit()
        assert table.records() == [(1.0, None)]
        table.delete(x=nan, y=nan)
        with pytest.raises(SessionError, match=r"does not have the row \(nan, nan\)"):
            db.commit()


@pytest.mark.parametrize("width", [np.float16, np.float32, np.float64])
def test_nan_of_each_width_is_found_again(width: Any) -> None:
    with Session(workers=2) as db:
        table = db.table("t", {"x": np.array([1, np.nan, 2], width)})
        db.commit()
        table.delete(x=np.array([np.nan], width))
        db.commit()
        assert table.records() == [(1.0,), (2.0,)]


def test_rows_of_an_empty_table_are_replaced_by_a_key_of_text_and_floats() -> None:
    with Session() as db:
        table = db.table("t", {"name": str, "size": float, "x": int}, key=["name", "size"])
        table.upsert(name="ann", size=0.5, x=1)
        table.upsert(name="bob", size=math.nan, x=2)
        db.commit()
        table.upsert(name="ann", size=0.5, x=3)
        db.commit()
        assert table.records() == [("ann", 0.5, 3), ("bob", np.nan, 2)]


def test_changes_with_nulls_are_sorted() -> None:
    with Session() as db:
        table = db.table("t", {"x": int | None})
        with table.changes() as changes:
            table.insert(x=[3, None, 1])
            db.commit()
            assert [change.records() for change in changes.read_nowait()] == [[((1,), 1), ((3,), 1), ((None,), 1)]]


@pytest.mark.parametrize(("of", "value"), [(int | None, 2**63 - 1), (typed([], "uint64?"), 2**64 - 1)])
def test_the_number_that_stands_for_a_null_is_refused_by_name(of: Any, value: int) -> None:
    with Session() as db:
        table = db.table("t", {"x": of})
        with pytest.raises(DataError, match=rf"column 'x' of table 't' .*{value} at row 1 stands for a null"):
            table.insert(x=[1, value])
        table.insert(x=value - 1)
        db.commit()
        assert table.records() == [(value - 1,)]


@pytest.mark.parametrize("of", ["uint64", "uint64?"])
@pytest.mark.parametrize("made", [int, np.uint64, lambda value: [value], lambda value: np.array([value], np.uint64)])
def test_unsigned_numbers_beyond_signed_ones_are_inserted_and_deleted(of: str, made: Any) -> None:
    with Session() as db:
        table = db.table("t", {"x": typed([], of)})
        for value in (2**63, 2**64 - 2):
            table.insert(x=made(value))
        db.commit()
        assert table.records() == [(2**63,), (2**64 - 2,)]
        table.delete(x=made(2**63))
        db.commit()
        assert table.records() == [(2**64 - 2,)]


def test_columns_of_text_are_made_of_columns_of_text_and_others() -> None:
    with Session() as db:
        db.table("people", {"id": [1, 2], "name": ["ann", "bob"], "nick": ["a", None], "born": [NEW_YEAR, None]})
        db.commit()
        label = db.ask(lambda t: t.people.select(label=lambda r: r.name.astype(str) + ":" + r.id.astype(str)))
        assert label.records() == [("ann:1",), ("bob:2",)]
        nulls = db.ask(lambda t: t.people.select(nick=lambda r: r.nick.astype(str), born=lambda r: r.born.astype(str)))
        assert nulls.records() == [("a", "2026-01-01"), (None, None)]


def test_a_function_of_rows_may_return_none_beside_a_date() -> None:
    with Session() as db:
        people = db.table("people", {"id": int, "born": dt.date}, key="id")
        after = rowwise(lambda r: r.born and r.born + dt.timedelta(days=1))
        later = db.view("later", lambda t: t.people.select("id", later=after))
        people.insert([(1, NEW_YEAR), (2, None)])
        db.commit()
        assert later.records() == [(1, dt.date(2026, 1, 2)), (2, None)]


def test_a_condition_on_a_null_decimal_leaves_the_row_out() -> None:
    with Session() as db:
        orders = db.table("orders", {"id": int, "price": typed([], "decimal(18, 2)")}, key="id")
        large = db.view("large", lambda t: t.orders.filter(lambda r: r.price > Decimal(2)))
        small = db.view("small", lambda t: t.orders.filter(lambda r: ~(r.price > Decimal(2))))
        orders.insert(id=1, price=Decimal("5.00"))
        db.commit()
        orders.insert([(2, None), (3, Decimal("1.50"))])
        db.commit()
        assert large.records() == [(1, Decimal("5.00"))]
        assert small.records() == [(3, Decimal("1.50"))]


@pytest.mark.parametrize("values", [[1, None, 3], [None, None], [2], [2**53 + 1, None]])
def test_whole_numbers_with_nulls_fit_a_column_of_floats_that_holds_each(values: list[int | None]) -> None:
    with Session() as db:
        table = db.table("t", {"x": float | None})
        column = typed(values, "int64?")
        if 2**53 + 1 in values:
            with pytest.raises(DataError, match="9007199254740993"):
                table.insert(x=column)
            return
        table.insert(x=column)
        db.commit()
        assert sorted(map(repr, table.records())) == sorted(
            repr((None if value is None else float(value),)) for value in values
        )
        plain = db.table("plain", {"x": float})
        if None in values:
            with pytest.raises(DataError, match=r"holds floats and no nulls: `float \| None` as its type"):
                plain.insert(x=column)
        else:
            plain.insert(x=column)
        db.rollback()


def computed(function: Any) -> list[Any]:
    """Return what a function makes of dates, durations and decimals, of which some are null, by the number of a row."""
    late, price = dt.timedelta(days=3), Decimal("1.50")
    with Session() as db:
        db.table("t", {"id": [1, 2], "day": [dt.date(2026, 3, 1), None], "late": [late, None], "price": [price, None]})
        db.commit()
        return db.ask(lambda t: t.t.select("id", made=function)).records()


@pytest.mark.parametrize(
    ("function", "made"),
    [
        (lambda r: (r.day - NEW_YEAR) // dt.timedelta(days=1), 59),
        (lambda r: (r.day - NEW_YEAR).astype(int), 59),
        (lambda r: r.day.astype("datetime64[Y]").astype(int) + 1970, 2026),
        (lambda r: r.late // dt.timedelta(hours=1), 72),
        (lambda r: r.late / dt.timedelta(hours=1), 72.0),
        (lambda r: np.sign(r.late), SIGN),
        (lambda r: r.late.astype(bool), True),
        (lambda r: np.is_busday(r.day), False),
        (lambda r: r.price.astype(float), 1.5),
        (lambda r: r.price.astype(int), 1),
        (lambda r: r.day - NEW_YEAR, dt.timedelta(days=59)),
        (lambda r: np.where(r.id > 0, r.day, r.day + np.timedelta64(1, "D")), dt.date(2026, 3, 1)),
    ],
)
def test_what_is_computed_of_a_null_is_null(function: Any, made: Any) -> None:
    assert computed(function) == [(1, made), (2, None)]


def test_a_null_time_is_not_seen_as_a_number() -> None:
    for function in (lambda r: r.day.view("i8"), lambda r: (r.day - NEW_YEAR).view("i8"), lambda r: r.late.any()):
        with pytest.raises(SessionError, match="is a null, which this function cannot see"):
            computed(function)


def test_nulls_of_computed_times_are_found_and_replaced() -> None:
    assert computed(lambda r: is_null(r.day - NEW_YEAR)) == [(1, False), (2, True)]
    assert computed(lambda r: fill_null(r.day - NEW_YEAR, dt.timedelta(0)) // dt.timedelta(days=1)) == [(1, 59), (2, 0)]


def test_a_computed_array_of_times_can_be_changed() -> None:
    def function(r: Any) -> Any:
        waited = r.day - NEW_YEAR
        waited[np.isnat(waited)] = np.timedelta64(0, "D")
        waited += np.timedelta64(1, "D")
        return waited // np.timedelta64(1, "D")

    assert computed(function) == [(1, 60), (2, 1)]


def test_a_stated_type_is_that_of_batches_without_nulls_too() -> None:
    with Session() as db:
        rows = db.table("t", {"id": int, "day": dt.date}, key="id")
        days = db.view(
            "days", lambda t: t.t.select("id", days=lambda r: nullable((r.day - NEW_YEAR) // dt.timedelta(days=1)))
        )
        rows.insert(id=1, day=dt.date(2026, 1, 3))
        db.commit()
        rows.insert(id=2, day=None)
        db.commit()
        assert days.records() == [(1, 2), (2, None)]


def test_missing_values_that_pandas_reads_of_a_file_are_nulls() -> None:
    pandas = pytest.importorskip("pandas", reason="the extra `test` has it")
    columns = {"id": [1, 2, 3], "age": [30.0, math.nan, -1.0], "note": [math.nan] * 3, "size": [1.5, math.nan, 2]}
    frame = pandas.DataFrame(columns)
    with Session() as db:
        people = db.table("people", {"id": int, "age": int | None, "note": str | None, "size": float}, key="id")
        people.insert(frame)
        db.commit()
        assert [row[:3] for row in people.records()] == [(1, 30, None), (2, None, None), (3, -1, None)]
        assert math.isnan(people.records()[1][3])
        for wrong in (30.5, 2.0**53):
            with pytest.raises(DataError, match=r"'age' of table 'people' holds int.*, not floats .*convert_dtypes"):
                people.insert(frame.assign(age=[wrong, math.nan, 1]))
        strict = db.table("strict", {"id": int, "age": int, "note": str | None, "size": float}, key="id")
        with pytest.raises(DataError, match=r"column 'age' .* no nulls: `int \| None` as its type"):
            strict.insert(frame)


@pytest.mark.skipif(np.dtype(np.longdouble).itemsize == 8, reason="here, these are floats of 64 bits")
def test_a_column_of_floats_that_no_table_holds_is_named() -> None:
    with Session() as db, pytest.raises(DataError, match=r"^column 'x' of table 't' a column of dtype"):
        db.table("t", {"x": []}).insert(x=np.array([1.0], np.longdouble))
