"""A mistake in a definition raises an error that names its line, what is wrong, and what to write instead."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from typing import Any

import pytest

from differential import Session
from differential.session import sessions, tumbling
from timely import rowwise
from timely.errors import SessionError


@pytest.fixture(scope="module")
def db() -> Iterator[Session]:
    days = [dt.date(2026, 1, 1), None]
    with Session(progress=False) as db:
        db.table("o", {"id": [1, 2], "c": ["a", "b"], "day": days, "x": [5, None]}, key="id")
        db.table("c", {"c": ["a"], "city": ["Rome"]})
        db.table("v", {"at": [1, 70]})
        db.commit()
        yield db


WRONG = [
    (lambda t: t.o.filter(lambda r: t.c.city == "Rome"), r"table 'c' is used in a function of rows .*: join"),
    (lambda t: t.o.select("id", z=lambda r: t["c"]), r"table 'c' is used in a function of rows .*: join"),
    (lambda t: t.o.map(lambda r: t.o.id), r"table 'o' is used in a function of rows .*: join"),
    (
        lambda t: t.o.select("id", keys="id"),
        r"select \(at .*\): `keys` is the number of key columns, here from 1 to 1, not 'id'",
    ),
    (lambda t: t.o.select("id", keys=5), r"select \(at .*\): `keys` is .* from 1 to 1, not 5"),
    (lambda t: t.o.join(t.c.select("city"), on=[]), r"join \(at .*\): on=\[\] names no column: on='city'"),
    (
        lambda t: t.o.join(t.c, on=[("c", "id")]),
        r"join \(at .*\): on=\[\('c', 'id'\)\] names no column: .* on=\{'city': 'name'\}",
    ),
    (
        lambda t: t.o.join(t.o).filter(lambda r: r.id > 1),
        r"filter \(at .*\): the columns have no names, because join \(at .*\) has the columns "
        r"'c', 'day', 'x' of both sides: join\(other, on='column'\) .* named\(name, \.\.\.\)",
    ),
    (lambda t: t.o.join(t.o).select("id"), r"select \(at .*\): the columns have no names, because join \(at "),
    (
        lambda t: t.v.window(tumbling(10), at="at").count().window(tumbling(60), at="window_start").sum("count"),
        r"window \(at .*\): the columns window_start, window_end are those of another window: .*"
        r"select\('count', start='window_start'\)",
    ),
    (
        lambda t: t.o.group_by("c").window(tumbling(10), at="x").count(),
        r"'GroupBy' object has no attribute 'window': window\(\.\.\.\) comes before group_by\('column'\)",
    ),
    (
        lambda t: t.v.window(tumbling(10), at="at").filter(lambda r: r.at > 1),
        r"'Windows' object has no attribute 'filter': filter\(\.\.\.\) comes before window\(\.\.\.\)",
    ),
    (
        lambda t: t.o.group_by("c").select("id"),
        r"'GroupBy' object has no attribute 'select': select\(\.\.\.\) comes before window\(\.\.\.\) and group_by",
    ),
    (
        lambda t: t.o.window(tumbling(10), at="x").count(),
        r"\(built at .*column 'x': an event time is null: filter\(lambda r: ~is_null\(r.x\)\) before window",
    ),
    (lambda t: t.o.window(sessions(10), at="x").count(), "column 'x': an event time is null: filter"),
    (lambda t: t.o.top_k("x"), r"top_k \(at .*\) needs a whole number"),
    (
        lambda t: t.o.group_by("c").aggregate(m=(["id"], "sum")),
        r"aggregate \(at .*\): m=\(\['id'\], 'sum'\) is neither",
    ),
    (lambda t: t.o.group_by("c").sum("nope"), r"sum \(at .*\): there is no column 'nope'"),
    (lambda t: t.o.group_by("c").mean("nope"), r"mean \(at .*\): there is no column 'nope'"),
    (lambda t: t.o.group_by("c").max(3), r"max \(at .*\) takes column names as separate arguments, not 3"),
    (lambda t: t.o.group_by("c").count("c"), r"count \(at .*\): 'c' is a column of the groups"),
    (lambda t: t.o.group_by("c").min("c"), r"min \(at .*\): 'c' is a column of the groups"),
    (lambda t: t.o.select("id", y=lambda r: r.day.year), r"column 'day': .* has no attribute 'year'.*rowwise"),
    (lambda t: t.o.select("id", y=lambda r: r.c.upper()), r"column 'c': .* has no attribute 'upper'.*rowwise"),
    (lambda t: t.o.filter(lambda r: r.c.startswith("a")), r"column 'c': .* has no attribute 'startswith'.*rowwise"),
    (lambda t: t.c.map(lambda r: r.city.upper()), r"column 'city': .* has no attribute 'upper'.*rowwise"),
    (
        lambda t: t.o.select("id").iterate(lambda _: t.o.select(id="x")),
        r"\. One side may have nulls, and the other not: nullable\(column\), .* id=lambda r: nullable\(r.id\)\)",
    ),
]


@pytest.mark.parametrize(("definition", "message"), WRONG)
def test_a_mistake_is_named_with_its_line_and_the_remedy(db: Session, definition: Any, message: str) -> None:
    with pytest.raises(SessionError, match=message) as found:
        db.ask(definition)
    assert re.search(r"test_mistakes.py:\d+", str(found.value))


def test_a_column_may_be_selected_several_times_under_other_names(db: Session) -> None:
    assert db.ask(lambda t: t.c.select("c", again="c", twice="c")).records() == [("a", "a", "a")]
    assert db.ask(lambda t: t.c.select(a="city", b="city")).records() == [("Rome", "Rome")]


def test_windows_of_windows_have_names_of_their_own(db: Session) -> None:
    def daily(t: Any) -> Any:
        hourly = t.v.window(tumbling(10), at="at").count()
        return hourly.select("count", start="window_start").window(tumbling(100), at="start").sum("count")

    assert db.ask(daily).records() == [(0, 100, 2)]


def test_names_that_a_join_loses_are_given_again(db: Session) -> None:
    def joined(t: Any) -> Any:
        return t.c.join(t.c).named("c", "city", "other").filter(lambda r: r.city == r.other)

    assert db.ask(joined).records() == [("a", "Rome", "Rome")]
    assert db.ask(lambda t: t.c.join(t.c).filter(lambda *columns: columns[0] == "a")).records()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda db: db.run(every="1s"), r"run \(at .*\): every='1s' is not a number of seconds"),
        (lambda db: db.start(every="1s"), r"start \(at .*\): every='1s' is not a number of seconds"),
        (lambda db: db.run(every=-1), r"run \(at .*\): every=-1 is not a number of seconds"),
        (lambda db: db.run(every=float("inf")), r"run \(at .*\): every=inf is not a number of seconds"),
        (lambda db: db.run(until=5), r"run \(at .*\): until=5 is not a function: give one that returns whether to end"),
        (
            lambda db: db.view(lambda t: t.o),
            r"view \(at .*\) takes a name before the definition, as in db.view\('name', ",
        ),
        (lambda db: db.view(5), r"the name of a table or view must be text, not 5"),
    ],
)
def test_wrong_arguments_of_a_session_are_named(db: Session, call: Any, message: str) -> None:
    with pytest.raises(SessionError, match=message):
        call(db)


def test_a_date_has_its_year_in_a_function_of_one_row(db: Session) -> None:
    years = db.ask(lambda t: t.o.select("id", year=rowwise(lambda r: 0 if r.day is None else r.day.year)))
    assert years.records() == [(1, 2026), (2, 0)]
