"""What tables take, and what is read out of them."""

from __future__ import annotations

import copy
import datetime as dt
import decimal
import pickle
import re
from collections import namedtuple
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from differential import Session
from differential.errors import DataError, SessionError, TimelyError
from differential.session.row import Row
from differential.session.rows import SHOWN, Rows
from differential.session.table_data import order_of
from timely.lowlevel import typed

COLUMNS: dict[str, list[Any]] = {"name": ["ann", "bob"], "age": [30, 41], "height": [1.5, 1.75], "here": [True, False]}
RECORDS = [("ann", 30, 1.5, True), ("bob", 41, 1.75, False)]


def people_as(kind: str) -> Any:
    if kind == "dictionary":
        return COLUMNS
    if kind == "arrays":
        return {name: np.array(values) for name, values in COLUMNS.items()}
    if kind == "rows":
        return [dict(zip(COLUMNS, record)) for record in RECORDS]
    library = pytest.importorskip(kind, reason="the extra `test` has it")
    return (library.table if kind == "pyarrow" else library.DataFrame)(COLUMNS)


@pytest.mark.parametrize("kind", ["dictionary", "arrays", "rows", "pandas", "polars", "pyarrow"])
def test_a_table_takes_what_people_have(kind: str) -> None:
    with Session() as db:
        table = db.table("people", people_as(kind), key="age")
        db.commit()
        table.delete(people_as(kind))
        table.insert(people_as(kind))
        db.commit()
        assert table.records() == RECORDS
        assert table.columns == tuple(COLUMNS)


def test_rows_become_frames_of_each_library() -> None:
    with Session() as db:
        table = db.table("people", COLUMNS)
        db.commit()
        changes = table.changes()
        assert table.to_pandas().to_dict("list") == COLUMNS
        assert table.to_polars().to_dict(as_series=False) == COLUMNS
        assert table.to_arrow().to_pydict() == COLUMNS
        table.delete(name="ann")
        db.commit()
        (change,) = changes.read_nowait()
        changed = {**{name: values[:1] for name, values in COLUMNS.items()}, "time": [2], "diff": [-1]}
        assert change.to_pandas().to_dict("list") == changed
        assert change.to_polars().to_dict(as_series=False) == changed
        assert change.to_arrow().to_pydict() == changed


@pytest.mark.parametrize("kind", ["dictionary", "rows", "pandas", "polars", "pyarrow"])
def test_columns_are_found_by_name_in_any_order(kind: str) -> None:
    with Session() as db:
        table = db.table("people", {"here": bool, "height": float, "name": str, "age": int}, key="age")
        table.insert(people_as(kind))
        table.delete(people_as(kind))
        table.upsert(people_as(kind))
        db.commit()
        assert table.records() == sorted((here, height, name, age) for name, age, height, here in RECORDS)
        other = db.table("other", {"years": int, "name": str, "height": float, "here": bool})
        with pytest.raises(SessionError, match="'years' missing, 'age' unknown"):
            other.insert(people_as(kind))


def test_a_field_that_a_row_lacks_is_null_and_one_that_is_unknown_is_refused() -> None:
    with Session() as db:
        table = db.table("people", {"name": str, "age": int | None})
        table.insert([{"name": "ann"}, {"name": "bob", "age": 41}])
        db.commit()
        assert table.records() == [("ann", None), ("bob", 41)]
        with pytest.raises(SessionError, match="'size' unknown"):
            table.insert([{"name": "cem", "age": 3}, {"name": "dan", "age": 4, "size": 5}])
        with pytest.raises(DataError, match=r"column 'name' of table 'people' holds text and no nulls: `str [|] None`"):
            table.insert([{"name": "cem", "age": 3}, {"age": 4}])


def test_named_tuples_are_found_by_name() -> None:
    trade, other = namedtuple("trade", "bought sold"), namedtuple("other", "sold price")
    with Session() as db:
        table = db.table("trades", {"sold": int, "bought": int})
        table.insert([trade(bought=1, sold=2)])
        table.insert((trade(3, 4),))
        db.commit()
        assert table.records() == [(2, 1), (4, 3)]
        assert db.table("again", [trade(1, 2)]).columns == ("bought", "sold")
        with pytest.raises(SessionError, match="here, 'bought' missing, 'price' unknown"):
            table.insert([other(1, 2)])
        with pytest.raises(SessionError, match="has named tuples beside other rows: give all rows the same names"):
            table.insert([trade(1, 2), (3, 4)])


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_a_column_of_nulls_alone_fits_a_column_that_may_have_them(kind: str) -> None:
    library = pytest.importorskip(kind, reason="the extra `test` has it")
    make = library.table if kind == "pyarrow" else library.DataFrame
    with Session() as db:
        table = db.table("people", {"name": str | None, "age": int | None})
        table.insert(make({"age": [None, None], "name": ["ann", None]}))
        db.commit()
        assert table.records() == [("ann", None), (None, None)]


def test_a_nullable_column_without_nulls_fits_a_column_that_has_none() -> None:
    values = {"name": typed(["ann"], "text?"), "age": typed([3], "int64?"), "raw": typed([b"x"], "bytes?")}
    with Session() as db:
        table = db.table("people", {"name": str, "age": int, "raw": bytes})
        table.insert(values)
        db.commit()
        assert table.records() == [("ann", 3, b"x")]
        with pytest.raises(DataError, match="column 'age' of table 'people' holds integers and no nulls"):
            table.insert(values | {"age": typed([None], "int64?")})


def test_a_table_without_rows_has_the_types_of_its_columns() -> None:
    types = {"name": str, "day": dt.date, "raw": bytes, "age": int, "size": float | None}
    expected = ["string", "date32[day]", "binary", "int64", "double"]
    with Session() as db:
        table = db.table("people", types, key="day")
        assert [str(field.type) for field in table.to_arrow().schema] == expected
        assert table.to_pandas().dtypes["age"] == np.int64
        table.insert(name="ann", day=dt.date(2026, 3, 1), raw=b"x", age=3, size=None)
        db.commit()
        table.delete(day=dt.date(2026, 3, 1))
        db.commit()
        assert [str(field.type) for field in table.to_arrow().schema] == expected


STATED = {
    "id": "int64",
    "price": "double",
    "small": "float",
    "when": "timestamp[us]",
    "raw": "binary",
    "word": "string",
}


def _without_rows(kind: str) -> Any:
    if kind == "typed":
        names = ["int64", "float64", "float32", "timestamp[us]", "bytes", "text"]
        return {name: typed([], of) for name, of in zip(STATED, names)}
    arrow = pytest.importorskip("pyarrow", reason="the extra `test` has it")
    types = [arrow.int64(), arrow.float64(), arrow.float32(), arrow.timestamp("us"), arrow.binary(), arrow.string()]
    table = arrow.schema(zip(STATED, types)).empty_table()
    if kind == "pandas":
        of_pandas = pytest.importorskip("pandas", reason="the extra `test` has it").ArrowDtype
        return table.to_pandas().astype({"raw": of_pandas(arrow.binary()), "word": of_pandas(arrow.string())})
    if kind == "polars":
        return pytest.importorskip("polars", reason="the extra `test` has it").from_arrow(table)
    return table


@pytest.mark.parametrize("workers", [1, 2])
def test_a_view_without_rows_has_the_types_of_the_columns_that_it_takes_from_tables(workers: int) -> None:
    pytest.importorskip("pyarrow", reason="the extra `test` has it")
    with Session(workers=workers) as db:
        prices = db.table("prices", {"id": int, "price": float | None, "word": str}, key="id")
        db.table("names", {"key": int, "name": bytes}, key="key")
        views = {
            "some": db.view("some", lambda t: t.prices.filter(lambda r: r.price > 2)),
            "renamed": db.view("renamed", lambda t: t.some.select("price", text="word", twice=lambda r: 2 * r.price)),
            "both": db.view("both", lambda t: t.prices.join(t["names"], on={"id": "key"})),
            "few": db.view("few", lambda t: t.prices.join(t["names"], on={"id": "key"}).select("name", "price")),
        }
        known = {
            "some": {"id": "int64", "price": "double", "word": "string"},
            "renamed": {"price": "double", "text": "string", "twice": "double"},
            "both": {"id": "int64", "price": "double", "word": "string", "name": "binary"},
            "few": {"name": "binary", "price": "double"},
        }
        for name, view in views.items():
            assert {field.name: str(field.type) for field in view.to_arrow().schema} == known[name]
        prices.insert(id=1, price=None, word="x")
        prices.insert(id=2, price=5, word="y")
        db.rollback()
        prices.insert(id=3, price=4, word="z")
        db.commit()
        assert views["renamed"].records() == [(4.0, "z", 8.0)]
        for name in ("both", "few"):
            assert {field.name: str(field.type) for field in views[name].to_arrow().schema} == known[name]


@pytest.mark.parametrize("is_whole", [True, False])
@pytest.mark.parametrize("kind", ["typed", "pandas", "polars", "pyarrow"])
def test_a_frame_without_rows_states_the_types_of_its_columns(kind: str, is_whole: bool) -> None:
    frame = _without_rows(kind)
    with Session() as db:
        table = db.table("prices", frame if is_whole else {name: frame[name] for name in STATED})
        assert {field.name: str(field.type) for field in table.to_arrow().schema} == STATED
        row = {"id": 1, "price": 2, "small": np.float32(2), "when": dt.datetime(2026, 3, 1), "raw": b"x", "word": "y"}
        table.insert(**row)
        db.commit()
        assert {field.name: str(field.type) for field in table.to_arrow().schema} == STATED
        for name, value in {"price": "2.5", "when": "yesterday", "raw": "text", "word": b"z"}.items():
            with pytest.raises(DataError, match=f"column '{name}' of table 'prices' holds .*, not "):
                table.insert(row | {name: value})


def test_decimals_of_a_frame_and_of_a_list_have_one_type_and_those_that_do_not_fit_a_remedy() -> None:
    pandas = pytest.importorskip("pandas", reason="the extra `test` has it")
    prices = {"price": [Decimal("1.10"), Decimal("2.22")]}
    with Session() as db:
        for number, data in enumerate([prices, pandas.DataFrame(prices)]):
            table = db.table(f"t{number}", data)
            table.insert(price=Decimal("10.00"))
            with pytest.raises(DataError, match=re.escape(_too_wide(f"t{number}", "decimal(38, 3)"))):
                table.insert(price=[Decimal("1.10"), Decimal("1.001")])
        narrow = db.table("narrow", {"price": typed([], "decimal(4, 3)")})
        with pytest.raises(DataError, match=r"not Decimal\('10.1'\): .*typed\(\[\], 'decimal\(18, 3\)'\)"):
            narrow.insert(price=Decimal("10.1"))
        precise = db.table("precise", {"price": typed([], "decimal(76, 75)")})
        with pytest.raises(DataError, match=r"not Decimal\('100'\): decimals of 78 digits: at most 76 fit"):
            precise.insert(price=[Decimal(1), Decimal(100)])


def _too_wide(table: str, name: str) -> str:
    return (
        f"column 'price' of table '{table}' holds decimal(18, 2), not Decimal('1.001'): typed([], '{name}') of "
        "differential.frames as its type in db.table() allows it"
    )


@pytest.mark.parametrize(
    ("first", "held", "second", "other"),
    [
        (["a", "b"], "lists of text", [1, 2], "lists of numbers"),
        ([1, None, 2.5], "lists of numbers", [True], "lists of booleans"),
        ([[], ["a"]], "lists of lists of text", ["a"], "lists of text"),
        (["a"], "lists of text", ["a", 1], "lists of values of several types"),
        ({"a": 1}, "dicts", [dt.date(2026, 3, 1)], "lists of dates"),
    ],
)
def test_a_column_of_lists_refuses_those_of_another_type(first: Any, held: str, second: Any, other: str) -> None:
    message = f"column 'tags' of table 't' holds {held}, not {re.escape(f'{other} such as {second!r}')}$"
    with Session() as db:
        table = db.table("t", {"id": [1, 2, 3], "tags": [None, [] if isinstance(first, list) else {}, first]})
        for _ in range(2):
            with pytest.raises(DataError, match=message):
                table.insert([(4, second)])
            db.commit()
        table.insert([(4, first), (5, None)])
        with pytest.raises(DataError, match=message):
            table.insert([(6, first), (7, second)])
        db.commit()
        assert table.to_arrow().num_rows == 5


def test_what_the_lists_of_a_column_hold_is_forgotten_with_the_rows_and_known_in_the_next_session(
    tmp_path: Path,
) -> None:
    with Session(state=tmp_path) as db:
        table = db.table("t", {"id": int, "tags": list})
        table.insert(id=1, tags=["a"])
        db.rollback()
        table.insert(id=1, tags=[1])
        db.commit()
    with Session(state=tmp_path) as db:
        table = db.table("t", {"id": int, "tags": list})
        with pytest.raises(DataError, match=r"'tags' of table 't' holds lists of numbers, not lists of text"):
            table.insert(id=2, tags=["a"])


def test_a_list_beside_scalars_is_the_value_of_one_row() -> None:
    with Session() as db:
        table = db.table("t", {"id": int, "tags": list}, key="id")
        table.insert(id=1, tags=["a"])
        table.insert(id=2, tags=["a", "b"])
        table.insert({"id": 3, "tags": []})
        table.insert(id=[4], tags=[["c", None]])
        table.insert(id=[5], tags=[["d"]])
        table.upsert(id=6, tags=("e", "f"))
        table.insert(id=7, tags=None)
        table.delete(id=1, tags=["a"])
        db.commit()
        values = [("a", "b"), (), ("c", None), ("d",), ("e", "f"), None]
        assert table.records() == list(enumerate(values, 2))
        with pytest.raises(DataError, match="'tags' of table 't' holds lists of text, not lists of lists"):
            table.insert(id=8, tags=[["a"], ["b"]])
        with pytest.raises(SessionError, match=r"'id' has 2, 'tags' has 3; a list of rows, as \[\(1, \['a'\]\)\]"):
            table.insert(id=[8, 9], tags=[["a"], ["b"], ["c"]])
        with pytest.raises(DataError, match="'tags' of table 't' holds lists or dicts, not text such as 'a'"):
            table.insert(id=[8, 9], tags=["a", "b"])


@pytest.mark.parametrize(
    ("tags", "value"),
    [
        ([["a"]], (("a",),)),
        ([["a"], ["b"]], (("a",), ("b",))),
        ([[]], ((),)),
        ([None], (None,)),
        ([[None]], ((None,),)),
        ([{"a": 1}], ((("a", 1),),)),
    ],
)
def test_a_list_of_lists_beside_scalars_keeps_its_levels(tags: list[Any], value: tuple[Any, ...]) -> None:
    with Session() as db:
        table = db.table("t", {"id": int, "tags": list}, key="id")
        table.insert(id=1, tags=tags)
        table.insert({"id": 2, "tags": tags})
        table.insert([{"id": 3, "tags": tags}])
        table.insert([(4, tags)])
        table.upsert(id=[5], tags=[tags])
        db.commit()
        assert table.records() == [(number, value) for number in range(1, 6)]


def test_columns_without_rows_or_types_take_those_of_the_first_row() -> None:
    pandas = pytest.importorskip("pandas", reason="the extra `test` has it")
    nothing: list[int] = []
    with Session() as db:
        for number, data in enumerate([{"x": nothing}, {"x": np.array(nothing)}, pandas.DataFrame(columns=["x"])]):
            table = db.table(f"t{number}", data)
            table.insert(x="text")
            db.commit()
            assert table.records() == [("text",)]


def test_a_view_without_rows_becomes_a_frame() -> None:
    with Session() as db:
        db.table("people", {"name": str, "age": int})
        ages = db.view("ages", lambda t: t.people.group_by("name").aggregate(n="count", age=("age", "max")))
        unnamed = db.view("unnamed", lambda t: t.people.map(lambda name, age: (age, name)))
        db.commit()
        for read in ("to_pandas", "to_polars", "to_arrow"):
            frame = getattr(ages, read)()
            assert (list(getattr(frame, "column_names", frame.columns)), len(frame)) == (["name", "n", "age"], 0)
            assert len(getattr(unnamed, read)()) == 0


def test_changes_of_columns_with_the_names_of_the_added_ones_have_all_columns() -> None:
    with Session() as db:
        table = db.table("visits", {"time": int, "diff": str})
        changes = table.changes()
        table.insert(time=7, diff="x")
        db.commit()
        (change,) = changes.read_nowait()
        expected = {"time": [7], "diff": ["x"], "time_": [1], "diff_": [1]}
        assert change.to_pandas().to_dict("list") == expected
        assert change.to_arrow().to_pydict() == expected


def test_an_empty_view_has_the_names_of_its_columns() -> None:
    with Session() as db:
        db.table("people", {"name": str, "age": int})
        view = db.view("old", lambda t: t.people.filter(lambda r: r.age > 90))
        for when in range(2):
            assert view.records() == []
            assert view.columns == ("name", "age")
            assert list(view.to_pandas().columns) == ["name", "age"]
            assert "name" in view._repr_html_()
            db["people"].insert(name="ann", age=when)  # type: ignore[union-attr]
            db.commit()
        assert db.view("unnamed", lambda t: t.people.map(lambda name, age: age)).columns == ("column_0",)


def test_columns_may_have_the_names_of_parameters() -> None:
    with Session() as db:
        table = db.table("odd", {"data": int, "self": int, "keys": int}, key="self")
        table.insert(data=1, self=2, keys=3)
        table.upsert(data=4, self=2, keys=5)
        db.commit()
        assert table.records() == [(4, 2, 5)]


@pytest.mark.parametrize("form", ["scalar", "rows", "columns", "objects"])
def test_values_of_pandas_and_numpy_are_the_same_alone_and_among_others(form: str) -> None:
    pandas = pytest.importorskip("pandas", reason="the extra `test` has it")
    values = {
        "precise": (pandas.Timestamp("2026-01-02 03:04:05.123456789"), pandas.NaT),
        "zoned": (pandas.Timestamp("2026-01-02", tz="Europe/Rome"), pandas.NaT),
        "long": (pandas.Timedelta("1h"), pandas.NaT),
        "moment": (np.datetime64("2026-01-02T03:04:05"), np.datetime64("NaT", "s")),
        "seconds": (np.timedelta64(5, "s"), np.timedelta64("NaT", "s")),
        "number": (7, pandas.NA),
        "text": ("text", pandas.NA),
    }
    with Session() as db:
        table = db.table("t", {"key": [0, 1], **{name: list(pair) for name, pair in values.items()}}, key="key")
        for key in (2, 3):
            row = {name: pair[key % 2] for name, pair in values.items()}
            if form == "scalar":
                table.insert(key=key, **row)
            elif form == "rows":
                table.insert([{"key": key, **row}])
            elif form == "columns":
                table.insert({"key": [key], **{name: [value] for name, value in row.items()}})
            else:
                objects = {name: np.array([value, None], np.object_)[:1] for name, value in row.items()}
                table.insert({"key": [key], **objects})
        db.commit()
        first, nothing, second, still_nothing = (record[1:] for record in table.records())
    assert first == second
    assert None not in first
    assert nothing == still_nothing == (None,) * len(values)


def test_text_and_bytes_keep_their_kind() -> None:
    with Session() as db:
        table = db.table("words", {"word": ["ä", "b\0c"], "raw": [b"x", b"\0"]})
        db.commit()
        table.delete(word="b\0c", raw=b"\0")
        table.insert(word="", raw=b"")
        db.commit()
        assert table.records() == [("", b""), ("ä", b"x")]


def test_numbers_that_fit_exactly_are_converted() -> None:
    with Session() as db:
        table = db.table("prices", {"item": int, "price": float})
        table.insert(item=1, price=3)
        table.insert({"item": np.array([2], np.uint8), "price": np.array([0.5], np.float32)})
        db.commit()
        assert table.records() == [(1, 3.0), (2, 0.5)]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"item": "nut", "price": 1.0}, "column 'item' of table 'prices' holds integers, not text such as 'nut'"),
        ({"item": 1, "price": "x"}, "column 'price' of table 'prices' holds floats, not text"),
        ({"item": 0.5, "price": 1.0}, "column 'item' of table 'prices' holds integers, not floats such as 0.5"),
        ({"item": 1, "price": 2**53 + 1}, "column 'price' .* not integers such as 9007199254740993"),
        ({"item": 2**64 - 1, "price": 1.0}, "column 'item' of table 'prices' holds 18446744073709551615"),
        ({"item": True, "price": 1.0}, "column 'item' of table 'prices' holds integers, not booleans such as True"),
        ({"item": 1, "price": np.array([True])}, "column 'price' of table 'prices' holds floats, not booleans"),
        ({"item": None, "price": 1.0}, "column 'item'"),
        ({"item": [1, None], "price": [1.0, 2.0]}, "column 'item'"),
        ({"item": 1}, "has the columns item, price; here, 'price' missing"),
        ({"item": 1, "price": 1.0, "x": 2}, "here, 'x' unknown"),
        ({"item": [1, 2], "price": [1.0]}, "do not have the same number of rows: 'item' has 2, 'price' has 1"),
    ],
)
def test_a_row_that_does_not_fit_is_refused_where_it_is_stated(row: dict[str, Any], message: str) -> None:
    with Session() as db:
        table = db.table("prices", {"item": int, "price": float})
        table.insert(item=1, price=2.0)
        with pytest.raises(TimelyError, match=message):
            table.insert(row)
        assert db.commit() == 1
        assert table.records() == [(1, 2.0)]


@pytest.mark.parametrize(
    ("of", "value"),
    [
        ("decimal(18, 2)", 1),
        ("decimal(18, 2)", 1.5),
        ("decimal(18, 2)", "1.5"),
        ("float32", 0.1),
        ("float32?", 0.1),
        ("date", "2026-03-01"),
        ("timestamp[us]", "2026-03-01 12:00:00"),
        ("time[us]", "12:00:00"),
    ],
)
def test_the_error_for_a_value_of_another_type_has_an_expression_that_makes_one_of_the_column(
    of: str, value: object
) -> None:
    with Session() as db:
        table = db.table("t", {"x": typed([], of)})
        with pytest.raises(
            DataError, match=r"column 'x' of table 't' holds .*, not .* such as .* makes one$"
        ) as raised:
            table.insert(x=value)
        expression = str(raised.value).rpartition(": ")[2].removesuffix(" makes one")
        modules = {"datetime": dt, "decimal": decimal, "numpy": np}
        table.insert(x=eval(expression, modules | {"value": value}))
        db.commit()
        assert len(table) == 1


def test_kinds_that_were_rolled_back_are_forgotten() -> None:
    with Session() as db:
        table = db.table("empty", {"x": []})
        table.insert(x="text")
        db.rollback()
        table.insert(x=1)
        with pytest.raises(DataError, match="holds integers"):
            table.insert(x="text")
        db.commit()
        assert table.records() == [(1,)]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (7, "int is not a table"),
        ({}, "needs columns"),
        ({"a": complex}, "complex is not a column type"),
        (
            {"a": int, "b": list[int]},
            r"column 'b': list\[int\] is not a column type: use int, .*, list, dict, one of them",
        ),
        ({"a": Literal["x"]}, r"column 'a': typing.Literal\['x'\] is not a column type"),
        ({"a": int | str}, r"column 'a': int \| str is not a column type"),
        ([(1, 2)], "need names of columns"),
    ],
)
def test_what_is_no_table_is_refused(data: Any, message: str) -> None:
    with Session() as db, pytest.raises(SessionError, match=message):
        db.table("wrong", data)


@pytest.mark.parametrize(
    ("library", "of", "shown"),
    [
        ("numpy", lambda numpy: numpy.dtype("int64"), "int64"),
        ("pandas", lambda pandas: pandas.Int64Dtype(), "Int64"),
        ("polars", lambda polars: polars.Datetime("us"), r"Datetime\(.*\)"),
        ("pyarrow", lambda pyarrow: pyarrow.int64(), "int64"),
    ],
)
def test_a_type_of_another_library_is_not_taken_for_a_value(library: str, of: Callable[[Any], Any], shown: str) -> None:
    columns = {"a": of(pytest.importorskip(library, reason="the extra `test` has it"))}
    with Session() as db, pytest.raises(SessionError, match=rf"column 'a': {shown} is not a column type: use int, "):
        db.table("wrong", columns)


@pytest.mark.parametrize("data", [{1: [1]}, [{"a": 1, 1: 2}]])
def test_the_name_of_a_column_that_is_no_text_is_refused(data: Any) -> None:
    with Session() as db:
        with pytest.raises(DataError, match="the name of a column must be text, not 1"):
            db.table("wrong", data)
        db.table("right", {"a": [1]})
        with pytest.raises(SessionError, match=r"columns .* takes different names, .* not \(1,\)"):
            db.view("wrong", lambda t: t.right, columns=(1,))  # type: ignore[arg-type]


def test_a_key_that_is_no_column_is_refused() -> None:
    with Session() as db:
        for key in ("z", ["a", "a"], [], 1, [["a"]]):
            with pytest.raises(SessionError, match="a key among them"):
                db.table("wrong", {"a": [1]}, key=key)
        db.table("right", {"a": [1]})


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 2)), min_size=1, max_size=60), st.booleans())
def test_the_rows_shown_are_the_first_ones(records: list[tuple[int, int]], is_text: bool) -> None:
    first, second = zip(*records)
    column = np.array([f"{x:02}" for x in first], np.dtypes.StringDType()) if is_text else np.array(first)
    counts = np.array(second) + 1
    shown = Rows(("x", "y"), (column, np.array(second)), counts)
    lines = str(shown).splitlines()[1:]
    everything = [(one, other) for one, other in records for _ in range(other + 1)]
    expected = [f"{one:02}  {other}" if is_text else (f"{one}", f"{other}") for one, other in sorted(everything)][
        :SHOWN
    ]
    assert [line if is_text else tuple(line.split()) for line in lines[: len(expected)]] == expected
    assert len(shown) == len(everything)
    assert len(lines) == len(expected) + (len(everything) > SHOWN)


def test_text_that_is_long_or_moves_what_follows_keeps_a_row_on_its_line() -> None:
    texts = ["a\nb\tc", "\x1b[31mred", "\u202etfel", "long" * 100, "👩\u200d👧", "é"]
    with Session() as db:
        table = db.table("texts", {"text": texts, "line\n": [1] * 6})
        db.commit()
        _, head, *lines = repr(table).splitlines()
        assert [line.rsplit(maxsplit=1)[0] for line in (head, *lines)] == [
            "text",
            r"\x1b[31mred",
            r"a\nb\tc",
            "long" * 19 + "l...",
            "é",
            r"\u202etfel",
            "👩\u200d👧",
        ]
        assert head.endswith(r"line\n")
        html = table._repr_html_()
        assert not {"\x1b", "\n"} & set(html)
        assert r"<td>a\nb\tc</td>" in html


def test_many_rows_are_cut_where_they_are_shown() -> None:
    with Session() as db:
        table = db.table("numbers", {"x": list(range(100)), "<b>": [""] * 100})
        db.commit()
        assert repr(table).splitlines()[:3] == ["table 'numbers', 100 rows as of commit 1", "x  <b>", "0"]
        assert repr(table).endswith("... and 90 more rows")
        assert "&lt;b&gt;" in table._repr_html_()
        assert table._repr_html_().count("<tr>") == 11


def test_many_columns_are_cut_where_they_are_shown() -> None:
    with Session() as db:
        table = db.table("wide", {f"c{number}": [10 * number] for number in range(60)})
        db.commit()
        _, names, values, more = repr(table).splitlines()
        assert (names.split()[-2:], values.split()[-2:]) == (["c19", "..."], ["190", "..."])
        assert more == "... and 40 more columns"
        assert table._repr_html_().count("<td>") == 21
        assert len(table.records()[0]) == 60


def test_other_libraries_read_tables_views_and_answers_as_they_are() -> None:
    duckdb, polars = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    with Session() as db:
        orders = db.table("orders", {"customer": ["ann", "bob", "ann"], "total": [30, 5, 20]})
        spent = db.view("spent", lambda t: t.orders.group_by("customer").sum("total"))
        db.commit()
        assert duckdb.sql("SELECT sum(total) FROM spent").fetchall() == [(55,)]
        assert polars.DataFrame(orders).rows() == orders.records()
        answer = db.ask(lambda t: t.spent.filter(lambda r: r.total > 10))
        assert polars.DataFrame(answer).rows() == [("ann", 50)]
        assert db.table("copy", spent).columns == ("customer", "total")
        db.commit()
        assert db["copy"].records() == spent.records()


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda db: db["orders"].reduce, "'Table' object has no attribute 'reduce': it is an operator of collections"),
        (lambda db: db["spent"].upsert, "'View' object has no attribute 'upsert': a view is computed"),
        (lambda db: db["orders"].to_panda, "did you mean 'to_pandas'?"),
        (lambda db: db.comit, "did you mean 'commit'?"),
        (lambda db: db.spent, "'Session' object has no attribute 'spent': db\\['spent'\\] is view 'spent'"),
    ],
)
def test_an_attribute_that_does_not_exist_is_explained(use: Any, message: str) -> None:
    with Session() as db:
        db.table("orders", {"customer": ["ann"], "total": [30]})
        db.view("spent", lambda t: t.orders.group_by("customer").sum("total"))
        with pytest.raises(AttributeError, match=message):
            use(db)
        for private in "_repr_png_", "_ipython_display_":
            assert not hasattr(db, private)
            assert not hasattr(db["spent"], private)


def test_a_view_whose_name_is_a_method_of_a_definition_is_found_by_its_name() -> None:
    with Session() as db:
        db.table("final", {"x": [1, 1]})
        db.commit()
        with pytest.raises(
            SessionError, match=r"no attribute 'count': t.final is a method, and t\['final'\] is table 'final'"
        ):
            db.ask(lambda t: t.final.count())
        assert db.ask(lambda t: t["final"].count()).records() == [(1, 2)]
        with pytest.raises(SessionError, match=r"no attribute 'nothing'$"):
            db.ask(lambda t: t.named.nothing)


@pytest.mark.parametrize("name", ["reads", "scope", "_items"])
def test_a_table_whose_name_is_another_attribute_of_a_definition_is_found_by_its_name(name: str) -> None:
    with Session() as db:
        db.table(name, {"x": [1, 1]})
        db.commit()
        hint = rf"no attribute 'count': t.{name} is another attribute, and t\['{name}'\] is table '{name}'"
        with pytest.raises(SessionError, match=hint):
            db.ask(lambda t: getattr(t, name).count())
        assert db.ask(lambda t: t[name].count()).records() == [(1, 2)]


def test_a_notebook_completes_the_names_of_tables_and_views() -> None:
    with Session() as db:
        db.table("orders", {"customer": ["ann"], "total": [30]})
        db.view("spent", lambda t: t.orders.group_by("customer").sum("total"))
        assert db._ipython_key_completions_() == ["orders", "spent"]


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["", "a", "ab", "b"]), st.integers(0, 2)), max_size=8))
@settings(max_examples=60)
@pytest.mark.parametrize("is_sorted", [False, True])
def test_rows_are_in_order_of_their_columns(is_sorted: bool, rows: list[tuple[int, str, int]]) -> None:
    rows = sorted(rows) if is_sorted else rows
    numbers, texts, others = zip(*rows) if rows else ((), (), ())
    nulls: Any = typed([None if number == 2 else number for number in others], "int64?")  # nulls come last
    objects = np.array([text.encode() for text in texts], object)
    columns = (np.array(numbers, float), np.array(texts, np.dtypes.StringDType()), objects, nulls)
    assert order_of(columns).tolist() == sorted(range(len(rows)), key=lambda at: rows[at])


@pytest.mark.parametrize(("of", "is_aware"), [("timestamp[us]", True), ("timestamp[us, Europe/Rome]", False)])
def test_timestamps_with_and_without_a_zone_are_not_taken_for_each_other(of: str, is_aware: bool) -> None:
    moment = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC if is_aware else None)
    with Session() as db:
        visits = db.table("visits", {"id": int, "at": typed([], of)})
        frame = pytest.importorskip("polars", reason="the extra `test` has it").DataFrame({"id": [1], "at": [moment]})
        for data in [(1, moment)], frame, frame.to_arrow(), frame.to_pandas():
            with pytest.raises(DataError, match=r"column 'at' of table 'visits' holds timestamp\[us.*, not timestamp"):
                visits.insert(data)
        visits.insert(id=1, at=moment.replace(tzinfo=None if is_aware else dt.UTC))
        assert db.commit() == 1


def test_an_instant_is_no_date_because_its_date_depends_on_the_zone() -> None:
    midnight = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    with Session() as db:
        days = db.table("days", {"id": int, "day": dt.date})
        polars = pytest.importorskip("polars", reason="the extra `test` has it")
        frame = polars.DataFrame({"id": [1], "day": [midnight]})
        for data in {"id": 1, "day": midnight}, [(1, midnight)], frame, frame.to_arrow(), frame.to_pandas():
            with pytest.raises(DataError, match=r"'day' of table 'days' holds date, not timestamp\[us, UTC\]"):
                days.insert(data)
        days.insert(id=1, day=midnight.replace(tzinfo=None))
        assert db.commit() == 1
        assert days.records() == [(1, dt.date(2026, 1, 1))]


def test_a_time_that_pandas_does_not_count_in_nanoseconds_may_be_far_away() -> None:
    pandas = pytest.importorskip("pandas", reason="the extra `test` has it")
    end = pandas.Timestamp("9999-12-31").as_unit("us")
    with Session() as db:
        table = db.table("contracts", pandas.DataFrame({"name": ["ann"], "end": [end]}), key="name")
        table.insert(name="bob", end=end)
        table.insert([{"name": "cem", "end": end}])
        db.commit()
        assert {row[1] for row in table.records()} == {dt.datetime(9999, 12, 31)}
        table.delete(name="ann", end=end)
        db.commit()
        assert len(table) == 2


def test_a_series_or_an_array_beside_others_is_read_as_in_a_frame() -> None:
    pandas = pytest.importorskip("pandas", reason="the extra `test` has it")
    polars = pytest.importorskip("polars", reason="the extra `test` has it")
    arrow = pytest.importorskip("pyarrow", reason="the extra `test` has it")
    index = pandas.Index([7, 8], name="named")
    columns = {
        "key": arrow.chunked_array([[1], [2]]),
        "text": pandas.Series(["x", float("nan")], index, dtype="str"),
        "objects": pandas.Series([float("nan"), "y"], index, dtype=object),
        "category": pandas.Categorical(["u", None], ["v", "u"]),
        "lists": polars.Series([[1], None]),
        "code": arrow.array(["p", None]).dictionary_encode(),
        "exact": arrow.array([Decimal("1.5"), None], arrow.decimal128(9, 2)),
        "day": arrow.array([dt.date(2026, 3, 1), None]),
        "index": pandas.Index(["a", "b"]),
    }
    row = (1, "x", None, "u", (1,), "p", Decimal("1.5"), dt.date(2026, 3, 1), "a")
    with Session() as db:
        table = db.table("t", columns)
        table.insert(columns)
        table.insert(**{**columns, "text": pandas.Series([None, None], dtype=object)})
        db.commit()
        assert table.records()[:3] == [row, row, (1, None, *row[2:])]
        table.delete(columns)
        db.commit()
        assert len(table) == 4


@pytest.mark.parametrize("nulls", [[None], np.ma.MaskedArray(np.array([1, 2], np.uint64), [True, False])])
def test_a_null_among_unsigned_integers_is_refused_with_the_type_that_has_it(nulls: Any) -> None:
    with Session() as db:
        table = db.table("t", {"x": np.array([1 << 63], np.uint64)})
        with pytest.raises(DataError, match=r"uint64 and no nulls: typed\(\[\], 'uint64\?'\) of differential.frames"):
            table.insert(x=nulls)


def test_unsigned_integers_that_fit_are_integers_of_the_column() -> None:
    small, large = np.array([7], np.uint64), np.array([1 << 63], np.uint64)
    with Session() as db:
        table = db.table("t", {"signed": int, "nullable": int | None, "real": float, "text": str | None})
        table.insert(signed=small, nullable=small, real=small, text="x")
        db.commit()
        assert table.records() == [(7, 7, 7.0, "x")]
        for name in "signed", "nullable", "real":
            with pytest.raises(DataError, match=f"column '{name}' of table 't' holds .*, not uint64 such as 92233"):
                table.insert({"signed": small, "nullable": small, "real": small, "text": "x"} | {name: large})
        with pytest.raises(DataError, match=r"column 'text' .* holds text.*, not integers such as 7"):
            table.insert(signed=1, nullable=1, real=1.0, text=small)


def test_a_field_that_no_dictionary_of_a_list_names_is_null() -> None:
    with Session() as db:
        people = db.table("people", {"id": int, "name": str | None, "born": int}, key="id")
        people.insert([{"id": 1, "born": 1815}, {"id": 2, "born": 1912}])
        people.upsert(({"born": 1906, "id": 2},))
        people.insert([])
        db.commit()
        assert people.records() == [(1, None, 1815), (2, None, 1906)]
        with pytest.raises(SessionError, match="here, 'born' missing"):
            people.insert([{"id": 3}])  # `born` may not be null
        with pytest.raises(SessionError, match="here, 'name' missing"):
            people.insert(id=3, born=1930)  # a row that is given by name, or a frame, has all columns
        people.delete([{"id": 1}])
        db.commit()
        assert people.records() == [(2, None, 1906)]


def test_a_row_that_is_none_names_the_table_and_the_line() -> None:
    with Session() as db:
        table = db.table("pairs", {"a": int, "b": str})
        for rows, why in (
            ([{}], "has no values"),
            ([3, 4], "3 is not a row of the 2 column"),
            ([(1,)], "not a row of the 2"),
        ):
            with pytest.raises(SessionError, match=rf"insert on table 'pairs' \(at .*test_data.py:\d+\): .*{why}"):
                table.insert(rows)


def test_a_file_is_read_with_the_types_that_the_columns_of_a_table_have(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    types = {"zip": str, "name": str | None, "price": typed([], "decimal(18, 2)"), "is_new": bool, "n": float}
    with Session() as db:
        table = db.table("t", types, key="zip")
        path.write_text("zip,name,price,is_new,n\n00123,007,1.5,1,1\n,,2,false,0.5\n")
        table.insert(path)
        path.write_text("n,zip,name,price,is_new\n2,1,,0.01,true\n")
        table.upsert(str(path))
        assert db.commit() == 1
        assert table.records() == [
            ("", None, Decimal("2.00"), False, 0.5),
            ("00123", "007", Decimal("1.50"), True, 1.0),
            ("1", None, Decimal("0.01"), True, 2.0),
        ]
        path.write_text("zip\n00123\n")
        table.delete(path)
        path.write_text("zip,name,price,is_new,n\n1,,x,1,1\n")
        with pytest.raises(DataError, match=r"a\.csv: In column 'price': The string 'x' is not a valid decimal"):
            table.insert(path)
        path.write_text("zip,name,price,is_new,n\n1,,1,1,x\n")
        with pytest.raises(DataError, match="column 'n' of table 't' holds floats, not text such as 'x'"):
            table.insert(path)
        db.commit()
        assert len(table) == 2


def test_in_a_large_statement_only_the_first_lists_are_looked_at() -> None:
    with Session(progress=False) as db:
        table = db.table("notes", {"id": [0], "tags": [["a"]]}, key="id")
        db.commit()
        table.insert({"id": [*range(1, 3001)], "tags": [["a"]] * 2999 + [[1]]})
        with pytest.raises(DataError, match="holds lists of text, not lists of numbers such as"):
            table.insert({"id": [*range(3001, 6001)], "tags": [["a"]] * 999 + [[1]] * 2001})
        assert db.commit() == 2
        assert len(table) == 3001


def test_an_interrupt_while_rows_are_sorted_leaves_them_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Rows(("x",), (np.array([2, 1]),), np.array([1, 2]))

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("differential.session.rows.np", SimpleNamespace(ones=interrupted, int64=np.int64))
        with pytest.raises(KeyboardInterrupt):
            rows.records()
    assert rows.records() == [(1,), (1,), (2,)]


def test_a_row_of_columns_can_be_copied() -> None:
    row = Row(("x",), (np.array([2, 1]),))
    for copied in copy.copy(row), copy.deepcopy(row), pickle.loads(pickle.dumps(row)):
        assert copied.x.tolist() == [2, 1]
        with pytest.raises(AttributeError, match="there is no column 'y'"):
            _ = copied.y
