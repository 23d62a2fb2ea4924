"""An error names the likely cause and what to write, with the module of each function that it names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from differential import Session
from timely import rowwise
from timely.errors import DataError, SessionError
from timely.lowlevel import typed

NUMBER = [0]
"""What `numbered` returns for each row."""


def numbered(r: Any) -> Any:
    return r.id * 0 + NUMBER[0]


def test_a_function_that_returns_other_values_is_the_likely_cause_of_negative_rows() -> None:
    with Session() as db:
        orders = db.table("orders", {"id": [1], "total": [30]}, key="id")
        db.commit()
        view = db.view("v", lambda t: t.orders.select("id", seen=numbered))
        NUMBER[0] += 1
        orders.delete(id=1)
        db.commit()
        message = r"view 'v' \(at .*test_remedies.py:\d+\) cannot be read: .* The likely cause is a function .* another"
        with pytest.raises(DataError, match=message):
            view.records()
        orders.insert(id=1, total=3)
        db.commit()
        with pytest.raises(DataError, match=r"times, -1; negate\(\) makes such rows where there are fewer"):
            db.ask(lambda t: t.orders.negate())


def test_a_negative_group_has_the_same_likely_cause() -> None:
    with Session() as db:
        orders = db.table("orders", {"id": [1], "total": [30]}, key="id")
        db.commit()
        db.view("v", lambda t: t.orders.select(seen=numbered).group_by("seen").count())
        NUMBER[0] += 1
        orders.delete(id=1)
        with pytest.raises(SessionError, match="perhaps because a function returned another value for a record"):
            db.commit()


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda t: t.n.select("id", x=lambda r: np.where(r.id > 1, r.c, None)), r"typed\(values, 'text\?'\) of diff"),
        (
            lambda t: t.n.map(lambda r: (r.id, r.x)).named("id", "y").group_by("id").sum("y"),
            r"fill_null\(column, 0\) of differential.frames",
        ),
        (
            lambda t: t.n.map(lambda r: (r.id, r.x)).named("id", "y").group_by("id").max("y"),
            r"max: column 'y' has nulls, .*: filter\(lambda r: ~is_null\(r\['y'\]\)\), with is_null",
        ),
        (lambda t: t.n.filter(lambda r: 1 in r.id), r"is_null of differential.frames .* and timely.rowwise for"),
        (lambda t: t.n.join(t.n.select(c="id", d="x"), on="c"), r"typed\(column, name\) of differential.frames does"),
    ],
)
def test_a_function_that_a_remedy_names_has_its_module(use: Any, message: str) -> None:
    with Session() as db:
        db.table("n", {"id": [1, 2], "c": ["a", "b"], "x": [1, None]})
        db.commit()
        with pytest.raises(SessionError, match=message):
            db.ask(use)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda r: r.c.upper(), r"'NoneType' object has no attribute 'upper' \(for the row \(2, None, None\)\)$"),
        (lambda r: 100 // (r.id - 1), r"ZeroDivisionError: .* \(for the row \(1, 'a', 1\)\)$"),
        (lambda id, c: c, r"takes 2 positional arguments but 3 were given \(for the row \(1, 'a', 1\)\)$"),
    ],
)
def test_an_error_of_a_function_of_one_row_names_the_row(function: Any, message: str) -> None:
    with Session() as db:
        db.table("n", {"id": [1, 2], "c": ["a", None], "x": [1, None]})
        db.commit()
        with pytest.raises(SessionError, match=message):
            db.ask(lambda t: t.n.select("id", y=rowwise(function)))


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (
            lambda t: t.n.map(lambda r: (r.id, r.x)).named("id", "y").group_by("id").sum("y"),
            r"without nulls: fill_null\(column, 0\) .*; column 'y' holds int64\?",
        ),
        (
            lambda t: (
                t.n.map(lambda r: (r.id, r.id2, r.x))
                .named("id", "z", "y")
                .group_by("id")
                .aggregate(a=("z", "sum"), b=("y", "mean"))
            ),
            r"; column 'y' holds int64\?",
        ),
        (lambda t: t.n.group_by("id").sum("c"), r"column 'c' holds text\?, and a sum is one of numbers"),
        (
            lambda t: t.n.map(lambda r: (r.id, r.c)).named("id", "c").group_by("id").sum("c"),
            r"sum needs one column of numbers as the value; column 'c' holds text",
        ),
        (
            lambda t: t.n.select("id", y="id2").concat(t.n.select("id", y=lambda r: r.id2 / 2)),
            r"column 'y' held (floats|integers) and now holds (floats|integers): convert it",
        ),
    ],
)
def test_the_column_of_a_sum_or_of_collections_together_is_named(use: Any, message: str) -> None:
    with Session() as db:
        db.table("n", {"id": [1, 2], "id2": [1, 2], "c": ["a", None], "x": [1, None]})
        db.table("m", {"id": [1, 2], "x": [1, None]})
        db.commit()
        with pytest.raises(SessionError, match=message):
            db.ask(use)


def test_columns_may_be_called_self() -> None:
    with Session() as db:
        db.table("t", {"g": [1, 1], "v": [2, 3]})
        db.commit()
        assert db.ask(lambda t: t.t.select("g", self="v")).records() == [(1, 2), (1, 3)]
        assert db.ask(lambda t: t.t.group_by("g").aggregate(self="count")).records() == [(1, 2)]


def test_a_value_that_stands_for_a_null_is_named_where_missing_adds_nulls() -> None:
    with Session() as db:
        db.table("t", {"g": [1, 2]})
        db.table("u", {"g": [1], "u": typed([2**64 - 1], "uint64")})
        db.commit()
        null = typed([None], "uint64?")
        with pytest.raises(SessionError, match="18446744073709551615 at row 0 stands for a null"):
            db.ask(lambda t: t.t.left_join(t.u, on="g", missing={"u": null}))


def test_all_rows_are_removed_as_the_error_of_clear_states() -> None:
    with Session() as db:
        table = db.table("t", {"g": [1, 1], "v": [2, 2]})
        db.commit()
        with pytest.raises(AttributeError, match=r"delete\(table.to_pandas\(\)\) removes all rows"):
            table.clear()
        table.delete(table.to_pandas())
        db.commit()
        assert len(table) == 0
