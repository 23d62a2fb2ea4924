"""Rows are instances of classes with fields, alone or in a list; a class itself is refused with its columns."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict

import pytest

from differential import Session
from timely.errors import DataError, SessionError


@dataclass
class Order:
    id: int
    customer: str | None
    at: dt.date


class Pair(NamedTuple):
    customer: str
    id: int


class Fields(TypedDict):
    id: int


class Plain:
    pass


DAY = dt.date(2026, 1, 1)


@pytest.mark.parametrize("data", [Order(1, "ann", DAY), [Order(1, "ann", DAY)]])
def test_a_dataclass_is_a_row_of_a_table(data: Any) -> None:
    with Session() as db:
        orders = db.table("orders", data)
        orders.insert(Order(2, "bob", DAY))
        orders.insert([Order(3, "cem", DAY)])
        db.commit()
        assert orders.records() == [(1, "ann", DAY), (2, "bob", DAY), (3, "cem", DAY)]
        orders.delete(Order(2, "bob", DAY))
        db.commit()
        assert len(orders) == 2


def test_one_named_tuple_or_dictionary_is_a_row_as_a_list_of_them_is() -> None:
    with Session() as db:
        pairs = db.table("pairs", {"id": int, "customer": str, "city": str | None})
        pairs.insert(Pair("ann", 1))
        pairs.insert([Pair("bob", 2)])
        pairs.insert({"id": 3, "customer": "cem"})
        db.commit()
        assert pairs.records() == [(1, "ann", None), (2, "bob", None), (3, "cem", None)]
        for columns in ({"id": [4], "customer": ["dan"]}, {"id": 4}):
            with pytest.raises(SessionError, match=r"table 'pairs' has the columns .* here, .*missing"):
                pairs.insert(columns)
        with pytest.raises(SessionError, match=r"here, .*'city' missing"):
            pairs.insert(id=4, customer="dan")


@pytest.mark.parametrize(
    ("of", "columns"),
    [
        (Order, r"\{'id': int, 'customer': str \| None, 'at': datetime.date\}"),
        (Pair, r"\{'customer': str, 'id': int\}"),
        (Fields, r"\{'id': int\}"),
        (Plain, r"\{'column': int, \.\.\.\}"),
    ],
)
def test_a_class_in_place_of_a_table_is_refused_with_its_columns(of: type, columns: str) -> None:
    with Session() as db:
        message = (
            rf"the class {of.__name__} is not a table: db.table\(name, {columns}\) .* insert\(\[{of.__name__}\(\.\.\."
        )
        with pytest.raises(SessionError, match=message):
            db.table("orders", of)


def test_a_tuple_in_place_of_a_list_of_rows_is_refused_with_the_list() -> None:
    with Session() as db:
        rows = db.table("rows", {"id": int, "name": str})
        for data in ((4, "x"), [4, "x"]):
            with pytest.raises(SessionError, match=r"4 is not a row .* id, name; \[\(4, 'x'\)\] is a list of one row"):
                rows.insert(data)


@pytest.mark.parametrize(
    ("columns", "types"),
    [
        ({"a": "int64"}, r"\{'a': int\}"),
        ({"a": "datetime", "b": "text?"}, r"\{'a': datetime.datetime, 'b': str \| None\}"),
        ({"a": "BIGINT", "b": "VARCHAR", "c": "double"}, r"\{'a': int, 'b': str, 'c': float\}"),
        ({"a": "datetime64[ns]", "b": "boolean"}, r"\{'a': datetime.datetime, 'b': bool\}"),
        ({"a": "decimal(9, 2)"}, r"\{'a': typed\(\[\], 'decimal\(9, 2\)'\)\}"),
    ],
)
def test_texts_that_name_types_are_refused_with_the_types(columns: Any, types: str) -> None:
    with Session() as db:
        with pytest.raises(SessionError, match=rf"is text, and {types} are the columns and their types(;| with typ)"):
            db.table("n", columns)
        assert len(db.table("m", columns | {"other": "Rome"}).columns) == len(columns) + 1
        db.rollback()


def test_a_time_with_a_zone_in_a_column_without_one_names_the_type_to_declare() -> None:
    with Session() as db:
        zoned, plain = dt.datetime(2026, 1, 1, tzinfo=dt.UTC), dt.datetime(2026, 1, 1)
        rows = db.table("rows", {"at": dt.datetime})
        message = r"tzinfo=datetime.timezone.utc\): typed\(\[\], 'timestamp\[us, UTC\]'\) of differential.frames as its"
        with pytest.raises(DataError, match=message):
            rows.insert(at=zoned)
        others = db.table("others", {"at": [zoned]})
        with pytest.raises(
            DataError, match=r"datetime\(2026, 1, 1, 0, 0\): value.replace\(tzinfo=datetime.timezone.utc"
        ):
            others.insert(at=plain)
        db.rollback()
