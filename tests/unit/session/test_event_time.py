"""Event times of tables: types, sources, tables that wait for each other, sessions that are opened again."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from differential import Session
from differential.errors import DataError, SessionError
from differential.session import sessions, sliding, tumbling
from differential.session.clock import Clocks
from differential.session.item import Item, Share
from differential.session.site import Site
from differential.session.sources import csv, json_lines, tables
from timely.lowlevel import typed

HOUR = dt.timedelta(hours=1)
NOON = dt.datetime(2026, 3, 1, 12)


def test_windows_of_timestamps_and_dates_have_their_types() -> None:
    with Session() as db:
        visits = db.table("visits", {"at": dt.datetime, "day": dt.date}).event_time("at", lateness=HOUR)
        hourly = db.view("hourly", lambda t: t.visits.window(tumbling(HOUR)).count())
        weekly = db.view("weekly", lambda t: t.visits.window(tumbling(dt.timedelta(7)), at="day").count())
        shifted = db.view("shifted", lambda t: t.visits.window(tumbling(HOUR, offset=HOUR / 2)).count())
        visits.insert(at=[NOON, NOON + HOUR * 0.75, NOON - HOUR * 0.25], day=[dt.date(2026, 3, 1)] * 3)
        db.commit()
        assert hourly.records() == [(NOON - HOUR, NOON, 1), (NOON, NOON + HOUR, 2)]
        assert weekly.records() == [(dt.date(2026, 2, 26), dt.date(2026, 3, 5), 3)]
        half = NOON - HOUR / 2
        assert shifted.records() == [(half, half + HOUR, 2), (half + HOUR, half + 2 * HOUR, 1)]
        assert visits.watermark == NOON - HOUR * 0.25


def test_an_event_time_that_is_null_is_refused_at_its_line() -> None:
    with Session() as db:
        visits = db.table("visits", {"at": dt.datetime}).event_time("at", lateness=HOUR)
        with pytest.raises(DataError, match="column 'at' of table 'visits': an event time is null"):
            visits.insert(at=None)


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_a_record_whose_event_time_is_null_is_no_row(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"visits.{form}"
    if form == "parquet":
        pq.write_table(pa.table({"page": [1, 2, 3], "at": [NOON, None, NOON]}), path)
    elif form == "csv":
        path.write_text(f"page,at\n1,{NOON}\n2,\n3,{NOON}\n")
    else:
        path.write_text(f'{{"page": 1, "at": "{NOON}"}}\n{{"page": 2}}\n{{"page": 3, "at": "{NOON}"}}\n')
    made: Any = {"csv": csv, "json": json_lines, "parquet": tables}[form]
    with Session() as db:
        for name, on_error in ("a", "skip"), ("b", db.rejects()), ("c", "stop"):
            visits = db.table(name, {"page": int, "at": dt.datetime}).event_time("at", lateness=HOUR)
            visits.read_from(made(path), on_error=on_error)  # type: ignore[arg-type]
        with pytest.raises(SessionError, match=r"(?s)table 'c' .* has stopped at .*column 'at' .* cannot be (null|'')"):
            db.commit()
        assert [db[name].to_arrow()["page"].to_pylist() for name in "abc"] == [[1, 3], [1, 3], [1]]
        assert len(db["rejects"]) == 1


def feed(db: Session, directory: Path, name: str, times: list[int]) -> Any:
    path = directory / name
    path.write_text("".join(["at\n", *(f"{time}\n" for time in times)]))
    return db["visits"].read_from(csv(path, follow=True, name=name))  # type: ignore[union-attr]


def test_a_watermark_is_the_least_of_those_of_the_sources_that_deliver(tmp_path: Path) -> None:
    with Session() as db:
        visits = db.table("visits", {"at": int}).event_time("at", lateness=5)
        fast = feed(db, tmp_path, "fast", [100])
        slow = feed(db, tmp_path, "slow", [])
        db.commit()
        assert visits.watermark is None  # nothing is known of the slow one
        with (tmp_path / "slow").open("a") as file:
            file.write("20\n")
        db.commit()
        assert visits.watermark == 15
        visits.insert(at=500)
        db.commit()
        assert visits.watermark == 15  # the program has no part in it while sources deliver
        slow.close()
        db.commit()
        assert visits.watermark == 95
        fast.close()


def test_a_source_that_has_stopped_holds_the_watermark_back_until_it_is_closed(tmp_path: Path) -> None:
    with Session() as db:
        visits = db.table("visits", {"at": int}).event_time("at", lateness=5)
        feed(db, tmp_path, "good", [100])
        bad = feed(db, tmp_path, "bad", [20])
        db.commit()
        with (tmp_path / "bad").open("a") as file:
            file.write("oops\n")
        with pytest.raises(SessionError, match="has stopped at"):
            db.commit()
        with (tmp_path / "good").open("a") as file:
            file.write("900\n")
        db.commit()
        assert visits.watermark == 15
        bad.close()
        db.commit()
        assert visits.watermark == 895


def test_a_watermark_cannot_be_moved_to_nothing() -> None:
    with Session() as db:
        visits = db.table("visits", {"at": int}).event_time("at")
        with pytest.raises(DataError, match=r"^the watermark of table 'visits' cannot be null$"):
            visits.advance_watermark(None)
        visits.insert(at=1)
        assert db.commit() == 1


def test_sources_that_end_in_a_commit_hold_nothing_back_after_it(tmp_path: Path) -> None:
    with Session() as db:
        visits = db.table("visits", {"at": int}).event_time("at", lateness=5)
        for name, last in ("old", 20), ("new", 100):
            (tmp_path / name).write_text(f"at\n{last}\n")
            visits.read_from(csv(tmp_path / name))
        db.run()
        assert visits.watermark == 95


@pytest.mark.parametrize("day", [dt.date(2026, 3, 1), dt.date(9999, 12, 31)])
def test_the_least_watermark_is_that_of_dates_beside_timestamps(day: dt.date) -> None:
    def zeros(column: Any) -> Any:
        return np.zeros(len(column), np.int64)

    with Session() as db:
        days = db.table("days", {"at": dt.date}).event_time("at", lateness=dt.timedelta(0))
        times = db.table("times", {"at": typed([], "timestamp[ns]")}).event_time("at", lateness=dt.timedelta(0))
        numbers = db.table("numbers", {"at": int}).event_time("at", lateness=0)
        both = db.view("both", lambda t: t.days.map(zeros).concat(t.times.map(zeros)))
        mixed = db.view("mixed", lambda t: t.days.map(zeros).concat(t.numbers.map(zeros)))
        days.insert(at=day)
        db.commit()
        assert both.watermark is None
        times.insert(at=[np.datetime64("2026-03-01T00:00:00.000000001")])
        numbers.insert(at=1)
        db.commit()
        assert both.watermark == (day if day.year == 2026 else np.datetime64("2026-03-01T00:00:00.000000001"))
        with pytest.raises(
            SessionError, match=r"view 'mixed' has no watermark: .* table 'days' and table 'numbers' cannot be"
        ):
            _ = mixed.watermark


def test_a_window_is_final_though_a_watermark_is_beyond_what_its_times_can_represent() -> None:
    def near(at: Any) -> Any:
        return at < np.datetime64("9999-01-01")

    with Session() as db:
        days = db.table("days", {"at": dt.date}).event_time("at", lateness=dt.timedelta(0))
        times = db.table("times", {"at": typed([], "timestamp[ns]")}).event_time("at", lateness=dt.timedelta(0))

        def hours(t: Any) -> Any:
            moments = t.times.concat(t.days.filter(near).map(lambda at: at.astype("M8[ns]")).named("at"))
            return t.final(moments.window(tumbling(dt.timedelta(hours=1))).count())

        final = db.view("final", hours)
        days.insert(at=[dt.date(2026, 3, 1), dt.date(9999, 12, 31)])
        times.insert(at=[dt.datetime(2026, 3, 1, 0, 30), dt.datetime(2026, 3, 1, 1, 30)])
        db.commit()
        assert [row[-1] for row in final.records()] == [2]


def test_a_source_and_a_table_that_are_idle_hold_nothing_back(tmp_path: Path) -> None:
    with Session() as db:
        clock = [0.0]
        db._catalog.clocks = Clocks(lambda: clock[0])
        minute = dt.timedelta(minutes=1)
        visits = db.table("visits", {"at": int}).event_time("at", lateness=5, idle=minute)
        orders = db.table("orders", {"at": int}).event_time("at", lateness=0)
        both = db.view("both", lambda t: t.final(t.visits.concat(t.orders).window(tumbling(10)).count()))
        fast, slow = feed(db, tmp_path, "fast", [100]), feed(db, tmp_path, "slow", [])
        orders.insert(at=[1, 40])
        db.commit()
        assert (visits.watermark, orders.watermark, both.watermark, both.records()) == (None, 40, None, [])
        clock[0] = 61.0
        with (tmp_path / "fast").open("a") as file:
            file.write("130\n")
        db.commit()
        assert (visits.watermark, both.watermark) == (125, 40)
        assert both.records() == [(0, 10, 1)]
        clock[0] = 200.0
        orders.insert(at=300)
        db.commit()
        assert (visits.watermark, both.watermark) == (300, 300)
        fast.close()
        slow.close()


@pytest.mark.parametrize("year", [1, 1600, 1700, 2200, 2300, 2600, 9999])
def test_the_watermark_of_an_idle_table_is_never_beyond_the_one_that_it_follows(year: int) -> None:
    with Session() as db:
        clock = [0.0]
        db._catalog.clocks = Clocks(lambda: clock[0])
        days = db.table("days", {"at": dt.date}).event_time("at", lateness=dt.timedelta(0))
        moments = db.table("moments", {"at": typed([], "timestamp[ns]")})
        moments.event_time("at", lateness=dt.timedelta(0), idle=HOUR)
        clock[0] = 7200.0
        days.insert(at=dt.date(year, 1, 1))
        db.commit()
        least, most = np.datetime64(1 - (1 << 63), "ns"), np.datetime64((1 << 63) - 1, "ns")
        expected = least if year < 1678 else most if year > 2261 else np.datetime64(f"{year}-01-01", "ns")
        assert moments.watermark == expected


def test_a_session_that_is_opened_again_has_the_watermark_and_the_late_changes(tmp_path: Path) -> None:
    for number, expected in enumerate([[], [(1, "insert")], [(1, "insert"), (1, "insert")]]):
        with Session(state=str(tmp_path)) as db:
            visits = db.table("visits", {"at": int}).event_time("at", lateness=5)
            assert visits.watermark == (45 if number else None)
            visits.insert(at=[1, 50])
            db.commit()
            assert visits.late.records() == expected


def test_tables_of_event_time_belong_to_their_table() -> None:
    with Session() as db:
        visits = db.table("visits", {"at": int}).event_time("at", lateness=5)
        with pytest.raises(SessionError, match="table 'visits_late' belongs to table 'visits'"):
            db.drop("visits_late")
        late = db.view("missed", lambda t: t.visits_late.count())
        with pytest.raises(SessionError, match="cannot be dropped while it is read: first drop view 'missed'"):
            db.drop("visits")
        db.drop(late)
        db.drop(visits)
        assert len(db.status().items) == 0


@pytest.mark.parametrize("is_late", [False, True])
def test_a_column_that_is_added_to_a_durable_table_is_one_of_its_late_changes(tmp_path: Path, is_late: bool) -> None:
    with Session(state=str(tmp_path)) as db:
        visits = db.table("visits", {"page": str, "at": int}).event_time("at", lateness=0)
        for page, at in ("a", 9), ("b", 3 if is_late else 10):
            visits.insert(page=page, at=at)
            db.commit()
    late = [("b", 3, "insert", 1)] if is_late else []
    for page in ("c", "d"):
        with Session(state=str(tmp_path)) as db:
            visits = db.table("visits", {"page": str, "at": int, "stars": int}, added={"stars": 1})
            visits.event_time("at", lateness=0).insert(page=page, at=4, stars=5)
            db.commit()
            late.append((page, 4, "insert", 5))
            columns = visits.late.columns
            order = [columns.index(name) for name in ("page", "at", "change", "stars")]
            assert [tuple(row[place] for place in order) for row in visits.late.records()] == late


def test_a_durable_table_is_dropped_with_what_its_event_times_made_though_these_were_not_stated_again(
    tmp_path: Path,
) -> None:
    for _ in range(2):
        with Session(state=str(tmp_path)) as db:
            visits = db.table("visits", {"at": int}).event_time("at", lateness=0)
            assert visits.watermark is None
            visits.insert(at=9)
            db.commit()
        with Session(state=str(tmp_path)) as db:
            db.drop("visits")
            assert list(db) == []


def test_another_column_of_event_times_needs_another_watermark(tmp_path: Path) -> None:
    for column, is_dropped in ("at", False), ("paid", True), ("paid", False):
        with Session(state=str(tmp_path)) as db:
            visits = db.table("visits", {"at": int, "paid": int})
            if is_dropped:
                with pytest.raises(SessionError, match=r"event times in column 'at'.*db\.drop\('visits_watermark'\)"):
                    visits.event_time(column, lateness=0)
                db.drop("visits_watermark")
            visits.event_time(column, lateness=0).insert(at=100, paid=7)
            db.commit()
            assert visits.watermark == (100 if column == "at" else 7)


def test_late_changes_may_be_deleted_and_watermarks_may_not() -> None:
    with Session() as db:
        visits = db.table("visits", {"at": int}).event_time("at")
        visits.advance_watermark(10)
        db.commit()
        visits.insert(at=3)
        db.commit()
        visits.insert(at=4)
        visits.late.delete(at=3, change="insert")
        db.commit()
        assert visits.late.records() == [(4, "insert")]
        db["visits_watermark"].delete(watermark=10)  # type: ignore[union-attr]
        with pytest.raises(SessionError, match="a watermark cannot be taken back"):
            db.commit()
        with pytest.raises(DataError, match="holds integers, not text"):
            visits.advance_watermark("noon")


@pytest.mark.parametrize("null", [None, pd.NaT, np.datetime64("NaT", "us"), [NOON, None]])
def test_a_watermark_that_is_null_is_refused_at_its_line(null: Any) -> None:
    with Session() as db:
        visits = db.table("visits", {"at": dt.datetime}).event_time("at")
        for move in (visits.advance_watermark, lambda time: db.table("visits_watermark").insert(watermark=time)):
            with pytest.raises(DataError, match="the watermark of table 'visits' cannot be null"):
                move(null)
        visits.advance_watermark(NOON)
        assert (db.commit(), visits.watermark) == (1, NOON)


def test_statements_without_rows_are_none_for_a_table_with_event_times_as_for_any_other() -> None:
    with Session() as db:
        visits = db.table("visits", {"at": int, "page": str}, key="at").event_time("at", lateness=5)
        for state in visits.insert, visits.upsert, visits.delete:
            state([])
            state({"at": [], "page": []})
        visits.advance_watermark([])
        assert (db.status().uncommitted, db.commit(), visits.watermark) == (0, 1, None)


@pytest.mark.parametrize("before", [[3, 5], []])
def test_rows_expire_before_one_time(before: list[int]) -> None:
    with Session() as db:
        visits = db.table("visits", {"at": int}).event_time("at", lateness=0)
        visits.insert(at=[3, 4, 9])
        db.commit()
        with pytest.raises(SessionError, match=r"expire \(at .*\) takes one time, not \["):
            visits.expire(before)
        assert (db.commit(), len(visits)) == (2, 3)


def test_a_source_of_watermarks_stops_at_one_that_is_null_and_may_have_none(tmp_path: Path) -> None:
    with Session() as db:
        visits = db.table("visits", {"at": dt.datetime}).event_time("at")
        (tmp_path / "marks").write_text('oops\n{"watermark": null}\n')
        db.table("visits_watermark").read_from(json_lines(tmp_path / "marks"), on_error="skip")
        with pytest.raises(SessionError, match="has stopped: the watermark of table 'visits' cannot be null"):
            db.commit()
        assert visits.watermark is None


def test_a_rollback_forgets_where_the_program_has_moved_a_watermark() -> None:
    with Session() as db:
        visits = db.table("visits", {"at": int}).event_time("at")
        visits.advance_watermark(10)
        db.rollback()
        db.commit()
        assert visits.watermark is None


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (lambda t: t.event_time("when"), "has no column 'when': the columns are at, name"),
        (lambda t: t.event_time("name"), "event times are integers, dates or timestamps, not text"),
        (lambda t: t.event_time("at", lateness=5.0), "5.0 is not a duration for event times of int64"),
        (lambda t: t.event_time("at", lateness=-1), "lateness must not be negative, and is -1"),
        (lambda t: t.event_time("at", idle=3), "idle is a positive timedelta"),
        (lambda t: t.event_time("at").event_time("at"), "already has event times, in column 'at'"),
        (lambda t: t.late, "has no event times: event_time"),
    ],
)
def test_what_is_no_event_time_is_refused(state: Any, message: str) -> None:
    with Session() as db, pytest.raises(SessionError, match=message):
        state(db.table("visits", {"at": int, "name": str}))


@pytest.mark.parametrize("name", ["visits_late", "visits_watermark"])
def test_event_times_whose_tables_have_a_name_that_is_taken_leave_nothing_behind(name: str) -> None:
    with Session() as db:
        visits = db.table("visits", {"at": int})
        db.view(name, lambda t: t.visits)
        with pytest.raises(SessionError, match=f"need a table '{name}', and there is already a view '{name}'"):
            visits.event_time("at")
        assert list(db) == ["visits", name]
        db.drop(name)
        assert list(visits.event_time("at").late.columns) == ["at", "change"]


@pytest.mark.parametrize("columns", [("at", "page"), ("page", "when")])
def test_a_view_that_names_its_columns_otherwise_has_the_event_times_of_its_definition(columns: Any) -> None:
    with Session() as db:
        visits = db.table("visits", {"page": int, "at": int}).event_time("at", lateness=0)
        visits.insert([(100, 3), (200, 4)])
        db.commit()
        db.view("renamed", lambda t: t.visits.select("page", "at"), columns=columns)
        assert db.ask(lambda t: t.renamed.window(tumbling(10)).count()).records() == [(0, 10, 2)]


def test_a_table_that_is_named_twice_has_one_watermark() -> None:
    with Session() as db:
        visits = db.table("visits", {"at": int}).event_time("at", lateness=5)
        visits.insert(at=[3, 25])
        db.commit()
        assert db.ask(lambda t: t.watermark("visits", "visits")).records() == [("visits", 20)]
        final = db.ask(lambda t: t.final(t.visits.window(tumbling(10)).count(), "visits", "visits"))
        assert final.records() == [(0, 10, 1)]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda t: t.visits.window(tumbling(5)), "no column of event times is known here"),
        (lambda t: t.visits.window(5, at="at"), "5 is not a kind of window"),
        (lambda t: t.visits.window(sessions(5), at="when"), "there is no column 'when'"),
        (lambda t: t.visits.window(tumbling(HOUR), at="at").count(), "is not a duration for event times of int64"),
        (lambda t: t.final(t.visits.window(tumbling(5), at="at").count()), "has no event times"),
        (lambda t: t.final(t.visits), "there is no column 'window_end'"),
        (lambda t: sliding(5, 0), "the step is a positive timedelta or whole number, not 0"),
    ],
)
def test_a_window_that_cannot_be_is_refused(make: Any, message: str) -> None:
    with Session() as db:
        visits = db.table("visits", {"at": int, "name": str})
        visits.insert(at=1, name="a")
        db.commit()
        with pytest.raises(SessionError, match=message):
            db.ask(make)


@pytest.mark.parametrize(
    ("kind", "at", "message"),
    [
        (tumbling(60), "at", "60 is not a duration for event times of datetime64.us.: give a timedelta"),
        (sliding(HOUR, HOUR / 2, offset=60), "at", "60 is not a duration for event times of datetime64.us."),
        (sessions(60), "at", "60 is not a duration for event times of datetime64.us.: give a timedelta"),
        (sessions(HOUR), "number", "is not a duration for event times of int64: give a whole number"),
        (tumbling(HOUR), "day", "1:00:00 is not a whole number of units of a column of datetime64.D."),
        (tumbling(60), "name", "event times are integers, dates or timestamps, not text"),
        (sessions(60), "price", "event times are integers, dates or timestamps, not float64"),
    ],
)
def test_a_window_that_no_time_can_have_is_refused_before_there_are_rows(kind: Any, at: str, message: str) -> None:
    with Session() as db:
        columns = {"name": str, "at": dt.datetime, "number": int, "day": dt.date, "price": float}
        visits = db.table("visits", columns, key="name")
        with pytest.raises(SessionError, match=rf"view 'v' failed: window \(at .*\): column '{at}': .*{message}"):
            db.view("v", lambda t: t.visits.window(kind, at=at).group_by("name").count())
        visits.insert([("a", dt.datetime(2026, 3, 1), 1, dt.date(2026, 3, 1), 0.5)])
        assert db.commit() == 1


def test_a_record_at_the_end_of_a_session_begins_another_one() -> None:
    with Session() as db:
        db.table("visits", {"at": [0, 7, 15]}).event_time("at")
        db.commit()
        assert db.ask(lambda t: t.visits.window(sessions(8)).count()).records() == [(0, 15, 2), (15, 23, 1)]
        db["visits"].insert(at=14)  # type: ignore[union-attr]
        db.commit()
        assert db.ask(lambda t: t.visits.window(sessions(8)).count()).records() == [(0, 23, 4)]


@pytest.mark.parametrize("far", [2**63 - 1, -(2**63), 2**63 - 60])
@pytest.mark.parametrize("kind", [tumbling(60), sliding(60, 7), tumbling(60, offset=5), sessions(60)])
def test_a_window_whose_bounds_do_not_fit_is_refused(kind: Any, far: int) -> None:
    with Session() as db:
        visits = db.table("visits", {"at": [0, far]})
        db.commit()
        with pytest.raises(SessionError, match=rf"event time is {far} units .*do not fit into 64 bits: filter such"):
            db.ask(lambda t: t.visits.window(kind, at="at").count())
        visits.delete(at=far)
        db.commit()
        assert db.ask(lambda t: t.visits.window(kind, at="at").count()).records()


def test_unsigned_event_times_are_refused() -> None:
    with Session() as db:
        db.table("visits", {"at": typed([2**63 + 5, 3], "uint64")})
        db.commit()
        with pytest.raises(SessionError, match="event times are integers, dates or timestamps, not uint64"):
            db.ask(lambda t: t.visits.window(tumbling(5), at="at").count())


@pytest.mark.parametrize("workers", [1, 2])
def test_rows_expire_beside_other_changes_and_are_not_late(workers: int) -> None:
    with Session(workers) as db:
        visits = db.table("visits", {"name": str, "at": int}, key="name").event_time("at", lateness=5)
        counts = db.view("counts", lambda t: t.visits.window(tumbling(10)).count())
        visits.insert([("a", 1), ("b", 2), ("b", 2), ("c", 15), ("d", 40)])
        db.commit()
        visits.expire(10)
        visits.upsert(name="d", at=41)
        visits.insert(name="a", at=42)
        with pytest.raises(SessionError, match=r"this transaction already makes rows of .* expire"):
            visits.expire(10)
        db.commit()
        assert visits.records() == [("a", 42), ("c", 15), ("d", 41)]
        assert counts.records() == [(10, 20, 1), (40, 50, 2)]
        assert len(visits.late) == 0
        visits.expire(20)
        visits.upsert(name="c", at=43)
        db.commit()  # the row of c expires first, so that the other one replaces nothing before the watermark
        assert visits.records() == [("a", 42), ("c", 43), ("d", 41)]
        visits.upsert(name="a", at=44)
        visits.expire(38)
        db.commit()  # in any order
        assert visits.records() == [("a", 44), ("c", 43), ("d", 41)]
        assert len(visits.late) == 0
        with pytest.raises(SessionError, match="once the watermark has passed them, but it is 39, before 40"):
            visits.expire(40)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 2), st.integers(0, 4)), max_size=25), st.integers(1, 2))
@settings(max_examples=10, deadline=None)
def test_expiring_removes_the_rows_before_the_limit_and_reads_no_others(
    steps: list[tuple[int, int, int]], workers: int
) -> None:
    day = dt.date(2026, 3, 1)
    there: Counter[tuple[str, dt.date]] = Counter()
    read: list[int] = []
    read_before = Site.read_before

    def counted(site: Site, index: Item, limit: int) -> Share:
        share = read_before(site, index, limit)
        read.append(int(share.counts.sum()))
        return share

    with Session(workers) as db, pytest.MonkeyPatch.context() as patch:
        patch.setattr(Site, "read_before", counted)
        visits = db.table("visits", {"name": str, "at": dt.date}, key="name").event_time("at")
        patch.setattr(Site, "read", None)
        for at, copies, kind in steps:
            moment = day + dt.timedelta(days=at)
            if kind == 4 and visits.watermark is not None:
                read.clear()
                old = {row for row in there if row[1] < visits.watermark}
                visits.expire(visits.watermark)
                assert sum(read) == sum(there.pop(row) for row in old)
            elif kind == 3:
                visits.advance_watermark(moment)
            elif visits.watermark is None or moment >= visits.watermark:
                visits.insert(name=["ann", "bob", "ann"][: copies + 1], at=[moment] * (copies + 1))
                there.update([("ann", moment), ("bob", moment), ("ann", moment)][: copies + 1])
            db.commit()
            assert len(visits) == there.total()
        patch.undo()
        assert Counter(visits.records()) == there
        assert len(visits.late) == 0


def test_the_index_by_event_time_is_counted_and_goes_with_its_table() -> None:
    with Session() as db:
        visits = db.table("visits", {"at": np.arange(1000)}).event_time("at", lateness=0)
        db.commit()
        before = db.status()
        visits.expire(0)
        after = db.status()
        assert after.nbytes >= before.nbytes + 8000
        assert len(after.items) == len(before.items)
        visits.expire(10)
        visits.insert(at=[5, 2000])  # 5 is late
        db.commit()
        visits.delete(at=999)  # so is this
        visits.expire(20)
        db.commit()
        assert (len(visits), len(visits.late)) == (981, 2)
        db.drop("visits")
        assert len(db._catalog.engine._sites[0]._items) == 0


def test_windows_keep_the_column_of_event_times_where_it_is() -> None:
    with Session() as db:
        db.table("visits", {"at": int, "name": str}).event_time("at")
        db.view("some", lambda t: t.visits.filter(lambda r: r.at > 3).select("name", "at").keyed_by("at"))
        db.view("counts", lambda t: t.some.window(tumbling(10)).group_by("name").count())
        db["visits"].insert(at=[1, 5, 7], name=["a"] * 3)  # type: ignore[union-attr]
        db.commit()
        assert db["counts"].records() == [("a", 0, 10, 2)]
        with pytest.raises(SessionError, match="no column of event times"):
            db.ask(lambda t: t.visits.select("name").window(tumbling(10)).count())


@pytest.mark.slow
def test_windows_in_several_processes() -> None:
    with Session(2, processes=True) as db:
        visits = db.table("visits", {"name": str, "at": int}).event_time("at", lateness=5)
        counts = db.view("counts", lambda t: t.visits.window(sessions(10)).group_by("name").count())
        final = db.view("closed", lambda t: t.final(t.counts))
        visits.insert(name=["a", "b", "a", "c"], at=[1, 3, 8, 100])
        db.commit()
        assert counts.records() == [("a", 1, 18, 2), ("b", 3, 13, 1), ("c", 100, 110, 1)]
        assert final.records() == [("a", 1, 18, 2), ("b", 3, 13, 1)]
        visits.insert(name="a", at=20)
        db.commit()
        assert visits.late.records() == [("a", 20, "insert")]
        visits.expire(50)
        db.commit()
        assert (visits.records(), counts.records()) == ([("c", 100)], [("c", 100, 110, 1)])


def test_a_watermark_inside_of_a_loop_is_refused() -> None:
    def program(t: Any) -> Any:
        return t.visits.iterate(lambda inner: inner.passed(t.watermark().enter(inner.scope), 1))

    with Session() as db:
        db.table("visits", {"at": int}).event_time("at")
        with pytest.raises(SessionError, match="cannot be in a loop"):
            db.ask(program)


def test_a_watermark_before_the_least_integer_is_the_least_one() -> None:
    with Session() as db:
        visits = db.table("visits", {"name": str, "at": int}).event_time("at", lateness=5)
        visits.insert(name="a", at=2 - (1 << 63))
        db.commit()
        assert visits.watermark == 1 - (1 << 63)
        visits.insert(name="b", at=1)
        db.commit()
        assert (visits.watermark, len(visits)) == (-4, 2)


def test_durations_of_pandas_keep_their_nanoseconds() -> None:
    at = np.array([100, 1400, 2900]).view("M8[ns]")
    with Session() as db:
        visits = db.table("visits", {"at": at})
        late = db.table("late", {"at": at}).event_time("at", lateness=pd.Timedelta("900ns"))
        db.commit()
        for size in (pd.Timedelta("1500ns"), np.timedelta64(1500, "ns")):
            counts = db.ask(lambda t, size=size: t.visits.window(tumbling(size), at="at").count()).records()
            assert [count for _, _, count in counts] == [2, 1]
        gap = pd.Timedelta("1400ns")
        assert len(db.ask(lambda t: t.visits.window(sessions(gap), at="at").count()).records()) == 2
        assert late.watermark == np.datetime64(2000, "ns")
        assert len(visits) == 3


def test_other_names_keep_the_column_of_event_times() -> None:
    with Session() as db:
        rows = db.table("o", {"k": int, "at": int, "paid": int}, key="k").event_time("at", lateness=0)
        view = db.view("v", lambda t: t.final(t.o.named("k", "paid", "at").window(tumbling(10)).count()))
        rows.insert(k=[1, 2], at=[5, 200], paid=[105, 300])
        db.commit()
        rows.insert(k=3, at=201, paid=101)
        db.commit()
        assert view.records() == [(0, 10, 1)]
