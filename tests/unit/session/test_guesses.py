"""A name from another library raises an error that names the method to use, which exists."""

from __future__ import annotations

import re
from typing import Any

import pytest

from differential import Session
from differential.collection import Collection
from differential.session import GroupBy, Relation, Table, View
from differential.session.guesses import GROUPS, RELATION, SESSION, TABLE
from timely.errors import DataError, SessionError

GUESSES = {Relation: RELATION, GroupBy: GROUPS, Table: TABLE, View: TABLE, Session: SESSION}
FUNCTIONS = {"len", "table", "reduce", "top_k", "count", "select", "transaction", "left_join"}


@pytest.mark.parametrize("owner", GUESSES)
def test_a_guess_is_no_name_and_names_methods_that_exist(owner: type) -> None:
    for name, meaning in GUESSES[owner].items():
        assert not hasattr(owner, name), name
        for method in re.findall(r"(\w+)\(", meaning):
            assert any(hasattr(each, method) for each in (Session, Table, Relation, GroupBy, Collection)) or (
                method in FUNCTIONS
            ), (name, method)


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda t: t.orders.groupby("customer"), r"has no attribute 'groupby': group_by\('column'\) makes groups"),
        (lambda t: t.orders.group_by("customer").agg(n="count"), r"'agg': aggregate\(n='count'"),
        (lambda t: t.orders.group_by("customer").total, r"'total': sum\('total'\) adds up the column"),
        (lambda t: t.orders.group_by(["customer"]), r"takes column names as separate arguments, not \['customer'\]"),
        (lambda t: t.orders.total, r"it is a column, which functions receive, as in filter\(lambda r: r.total > 0\)"),
        (lambda t: t.orders["total"], r"cannot be indexed with 'total': select\('column'\)"),
        (lambda t: t.orders.filter("total > 3"), r"filter \(at .*\) takes a function .*, not 'total > 3'"),
        (lambda t: t.orders.select("customer", lambda r: r.total), r"a computed column needs a name, as in select"),
        (lambda t: t.orders.select(), r"select \(at .*\) needs a column, as in select\('kept', new='old'\)"),
        (lambda t: t.orders.outer_join(t.orders), r"'outer_join': left.left_join\(right, on=\"id\", missing="),
        (lambda t: t.orders.group_by("customer").head(2), r"'head': top_k\(3, by='total'\) keeps the largest records"),
        (lambda t: t.orders.group_by("customer").top_k(2, by="totl"), r"top_k \(at .*'totl'.*did you mean 'total'"),
        (lambda t: t.orders.group_by().top_k(2, lambda r: r.total), r"top_k \(at .*\): a computed column needs a name"),
        (lambda t: t.orders.group_by().top_k(2.5, "total"), r"top_k \(at .*\) needs a whole number"),
        (lambda t: t.orders.order_by("total"), r"group_by\(\).top_k\(3, by='total'\) keeps the largest records"),
        (lambda t: t.orders.group_by("customer").reduce(max), r"keyed_by\('column'\).reduce\(function\) computes any"),
        (lambda t: t.orders.group_by("customer").nunique("total"), r"count_distinct\('column'\) counts the different"),
        (lambda t: t.orders.nunique("total"), r"group_by\('column'\).count_distinct\('other'\) counts the different"),
        (lambda t: t.orders.unnest("total"), r"'unnest': flat_map\(function\) makes several records of each"),
        (lambda t: t.orders.group_by("customer").cumsum("total"), r"'cumsum': keyed_by\('column'\).reduce\(function\)"),
        (
            lambda t: t.orders.group_by("customer").collect("total"),
            r"'collect': there are count, .* any other aggregate",
        ),
        (lambda t: t.orders.columns, "'columns': names has the names of the columns"),
        ("SELECT 1", "the definition of the question is 'SELECT 1': give a function, such as lambda t: t.orders"),
    ],
)
def test_what_a_definition_guesses_is_explained(use: Any, message: str) -> None:
    with Session() as db:
        db.table("orders", {"customer": ["ann"], "total": [3]})
        with pytest.raises(SessionError, match=message):
            db.ask(use)


def test_what_a_program_guesses_is_explained() -> None:
    with Session() as db:
        orders: Any = db.table("orders", {"customer": ["ann"], "total": [3]})
        with pytest.raises(AttributeError, match=r"'append': insert\(\.\.\.\) adds rows"):
            orders.append([("bob", 4)])
        with pytest.raises(AttributeError, match="'total': it is a column, whose values are in to_pandas"):
            _ = orders.total
        with pytest.raises(AttributeError, match=r"'groupby': in a definition, .* group_by\('column'\) makes groups"):
            orders.groupby("customer")
        with pytest.raises(AttributeError, match=r"'fliter': it is an operator of .* t.orders.filter\(\.\.\.\)"):
            orders.fliter(len)
        program: Any = db
        with pytest.raises(AttributeError, match=r"'sql': ask\(definition\) answers a question"):
            program.sql("SELECT 1")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("dtypes", r"'dtypes': to_arrow\(\).schema has the types of the columns$"),
        ("names", r"'names': .columns are the names of the columns$"),
        ("to_json", r"'to_json': to_pandas\(\) and to_polars\(\) write files"),
        ("stream", r"'stream'$"),  # a property of relations
        ("declared", r"'declared'$"),  # a method of the class
        ("describe", r"'describe'$"),  # `declared` is too far from it, and
        ("info", r"'info'$"),  # so is `window`
    ],
)
def test_an_attribute_that_is_far_from_every_operator_is_not_one(name: str, message: str) -> None:
    with Session() as db:
        table = db.table("orders", {"customer": ["ann"], "total": [3]})
        with pytest.raises(AttributeError, match=message):
            getattr(table, name)


def test_a_table_or_view_in_place_of_a_definition_or_of_its_rows_is_named() -> None:
    with Session() as db:
        orders = db.table("orders", {"customer": ["ann"], "total": [3]})
        sums = db.view("sums", lambda t: t.orders.group_by("customer").sum("total"))
        for own in (orders, sums):
            named = rf"(table|view) '{own.name}', which is t\['{own.name}'\] in a definition: "
            definition: Any = own
            with pytest.raises(SessionError, match=f"the definition of the question is {named}give a function"):
                db.ask(definition)
            with pytest.raises(SessionError, match=f"the definition of view 'same' returns {named}return a collection"):
                db.view("same", lambda t, own=own: own)  # type: ignore[misc]


def test_rows_that_are_no_rows_are_refused_with_the_remedy() -> None:
    pandas = pytest.importorskip("pandas", reason="the extra `test` has it")
    with Session() as db:
        orders: Any = db.table("orders", {"customer": ["ann"], "total": [3]})
        row = pandas.DataFrame({"customer": ["bob"], "total": [4]}).iloc[0]
        with pytest.raises(SessionError, match=r"a function is not a table: db\.ask\(function\) returns rows"):
            orders.delete(lambda r: r.total > 2)
        with pytest.raises(DataError, match=r"a Series is not a frame: .* to_dict\(\) makes a row"):
            orders.insert(row)
        with pytest.raises(DataError, match=r"0 column\(s\): a frame has at least one"):
            orders.insert(pandas.DataFrame())
        orders.insert(row.to_dict())
        db.commit()
        orders.delete(db.ask(lambda t: t.orders.filter(lambda r: r.total < 4)))
        db.commit()
        assert orders.records() == [("bob", 4)]


@pytest.mark.parametrize("name", ["semijoin", "antijoin", "concat", "union", "intersect", "except_", "assert_eq"])
def test_a_table_in_place_of_its_rows_is_refused_with_the_line_and_the_remedy(name: str) -> None:
    with Session() as db, Session() as other:
        db.table("orders", {"customer": ["ann"], "total": [3]})
        strangers = [db.table("names", {"customer": ["ann"]}), other.table("people", {"customer": ["ann"]})]
        for table in strangers:
            label = table.name
            message = rf"{__file__}:\d+\): `\w+( \d)?` must be a collection, not table '{label}'; .* as t\.{label}$"
            with pytest.raises(SessionError, match=message):
                db.ask(lambda t, table=table: getattr(t.orders, name)(table))  # type: ignore[misc]
