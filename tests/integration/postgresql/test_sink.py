"""A table of a real server as a sink: it has the rows of the view, each commit once."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import numpy as np
import pytest

from differential import Session
from differential.session import Change
from differential.session.sinks import Mark, Outlet
from tests.integration.postgresql.server import Server
from tests.integration.postgresql.test_source import VALUES
from timely.errors import SessionError, StoreError
from timely.lowlevel import typed

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
from differential.session.sinks.postgresql import postgresql  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def test_a_table_follows_a_view(dsn: str, tmp_path: Path) -> None:
    chance = random.Random(1)
    with psycopg.connect(dsn, autocommit=True) as sql:
        for _ in range(3):
            with Session(state=str(tmp_path)) as db:
                orders = db.table("orders", {"customer": int, "total": int}, key="customer")
                spent = db.view("spent", lambda t: t.orders.group_by("customer").sum("total"), durable=True)
                delivery = spent.write_to(postgresql(dsn, "spent", key="customer"))
                for _ in range(10):
                    for _ in range(chance.randrange(20)):
                        customer = chance.randrange(30)
                        if chance.random() < 0.2:
                            orders.delete(customer=customer)
                        else:
                            orders.insert(customer=customer, total=chance.randrange(100))
                    number = db.commit()
                    assert sql.execute("SELECT * FROM spent ORDER BY 1").fetchall() == spent.records()
                marks = sql.execute("SELECT sink, commit FROM timely_commits").fetchall()
                assert marks[0][0] == "spent"
                assert marks[0][1] <= number == delivery.commit


def test_values_of_all_types_are_written(dsn: str) -> None:
    data = {"number": [0, 1]} | {name: typed(values, of) for name, (_, of, values) in VALUES.items()}
    declared = ", ".join(f"{name} {of}" for name, (of, _, _) in VALUES.items())
    with psycopg.connect(dsn, autocommit=True) as sql, Session() as db:
        sql.execute(f"CREATE TABLE there (number bigint PRIMARY KEY, {declared})")
        db.table("rows", data)
        rows = db.view("all", lambda t: t.rows)
        for table in ("there", "made"):
            rows.write_to(postgresql(dsn, table, key="number"))
        db.commit()
        expected = sql.execute("SELECT * FROM there ORDER BY number").fetchall()
        assert [row[1:4] for row in expected] == [(1, None, 0.5), (-2, 2**62, 1.25)]
        made = sql.execute("SELECT * FROM made ORDER BY number").fetchall()
        assert [tuple(map(str, row)) for row in made] == [tuple(map(str, row)) for row in expected]
        found = [tuple(str(each) for each in row) for row in expected]
        given = list(zip([0, 1], *(values for *_, values in VALUES.values())))
        assert found == [tuple(str(each) for each in row) for row in given]


def test_what_a_table_cannot_have_names_table_column_and_key(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as sql, Session() as db:
        sql.execute("CREATE TABLE narrow (x bigint, y smallint, PRIMARY KEY (x, y))")
        sql.execute("CREATE TABLE foreign_rows (x bigint PRIMARY KEY, y bigint)")
        numbers = db.table("numbers", {"x": [1, 1], "y": [2, 70000]})
        view = db.view("all", lambda t: t.numbers)
        db.commit()
        for table, key, message in (
            ("a", "z", "the view has no column 'z' for the key: it has x, y"),
            ("b", "x", "the view has two rows with the key x = 1, but table b has one row for each key"),
            ("narrow", ["x", "y"], "table narrow: .*out of range for type smallint"),
        ):
            with pytest.raises(SessionError, match=message):
                view.write_to(postgresql(dsn, table, key=key))
        numbers.delete(x=1, y=70000)
        db.commit()
        delivery = view.write_to(postgresql(dsn, "foreign_rows", key="x"))
        sql.execute("INSERT INTO foreign_rows VALUES (5, 5)")
        numbers.insert(x=5, y=6)
        with pytest.raises(SessionError, match="table foreign_rows already has a row with the key x = 5"):
            db.commit()
        assert delivery.is_over
        assert sql.execute("SELECT * FROM foreign_rows ORDER BY 1").fetchall() == [(1, 2), (5, 5)]
        with pytest.raises(SessionError, match="or something else"):
            view.write_to(postgresql(dsn, "foreign_rows", key="x", name="another"))
        view.write_to(postgresql(dsn, "foreign_rows", key="x", name="another"), existing="replace")
        assert sql.execute("SELECT * FROM foreign_rows ORDER BY 1").fetchall() == [(1, 2), (5, 6)]


def test_a_table_that_was_dropped_is_made_again_only_with_all_rows(dsn: str, tmp_path: Path) -> None:
    def attach(db: Session, **options: Any) -> Any:
        stock = db.table("stock", {"item": int, "pieces": int}, key="item")
        db.view("all", lambda t: t.stock, durable=True).write_to(postgresql(dsn, "all_stock", key="item"), **options)
        return stock

    def rows() -> list[Any]:
        return sql.execute("SELECT * FROM all_stock ORDER BY 1").fetchall()

    with psycopg.connect(dsn, autocommit=True) as sql:
        for _ in range(2):  # without rows there is no table, and none is missing
            with Session(state=str(tmp_path)) as db:
                attach(db)
                db.commit()
        with Session(state=str(tmp_path)) as db:
            attach(db).insert(item=1, pieces=10)
            db.commit()
            assert rows() == [(1, 10)]
        sql.execute("DROP TABLE all_stock")
        refused = r'there is no table all_stock, and its mark is in timely_commits.*existing="replace"'
        with Session(state=str(tmp_path)) as db, pytest.raises(SessionError, match=refused):
            attach(db)
        with Session(state=str(tmp_path)) as db:
            stock = attach(db, existing="replace")
            assert rows() == [(1, 10)]
            stock.insert(item=2, pieces=20)
            db.commit()
            assert rows() == [(1, 10), (2, 20)]
        with Session(state=str(tmp_path)) as db:
            stock = attach(db)
            sql.execute("DROP TABLE all_stock")
            stock.insert(item=3, pieces=30)
            with pytest.raises(SessionError, match="table all_stock was dropped meanwhile"):
                db.commit()


def test_a_table_that_was_dropped_is_not_missed_by_a_view_that_has_become_empty(dsn: str, tmp_path: Path) -> None:
    with psycopg.connect(dsn, autocommit=True) as sql, Session(state=str(tmp_path)) as db:
        stock = db.table("stock", {"item": int})
        view = db.view("all", lambda t: t.stock, durable=True)
        delivery = view.write_to(postgresql(dsn, "all_stock", key="item"))
        stock.insert(item=1)
        db.commit()
        stock.delete(item=1)
        db.commit()
        delivery.close()
        sql.execute("DROP TABLE all_stock")
        view.write_to(postgresql(dsn, "all_stock", key="item"), existing="replace")
        stock.insert(item=2)
        db.commit()
        assert sql.execute("SELECT * FROM all_stock").fetchall() == [(2,)]


def test_two_writers_do_not_mix(dsn: str) -> None:
    sink = postgresql(dsn, "rows", key="x")
    one, other = sink.open(Outlet("all", ("x",))), sink.open(Outlet("all", ("x",)))
    try:
        assert one.mark() is other.mark() is None
        one.write([Change(1, ("x",), (np.array([1]),), np.array([1]))], Mark("a", 1))
        with pytest.raises(SessionError, match="was written to by another session"):
            other.write([Change(1, ("x",), (np.array([1]),), np.array([1]))], Mark("a", 1))
        assert other.mark() == Mark("a", 1)
    finally:
        one.close()
        other.close()


def after_waiting_for(holder: Any, sql: Any, write: Callable[[], object]) -> Any:
    """Return what `write` returns or raises in a thread. The transaction of `holder` ends once it is waited for."""
    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(write)
        end = monotonic() + 20
        while not sql.execute("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'").fetchall():
            assert monotonic() < end, "nothing waits for the transaction that is open"
            assert not result.done(), f"it has not waited for the transaction that is open: {result}"
            sleep(0.01)
        holder.commit()
        return result.exception(20) or result.result(20)


def test_two_writers_that_begin_at_once_do_not_mix(dsn: str) -> None:
    other = postgresql(dsn, "rows", key="x").open(Outlet("all", ("x",)))
    with closing(other), psycopg.connect(dsn) as one, psycopg.connect(dsn, autocommit=True) as sql:
        assert other.mark() is None
        one.execute("CREATE TABLE rows (x bigint PRIMARY KEY)")
        one.commit()
        one.execute("INSERT INTO timely_commits VALUES ('rows', 'a', 1)")
        one.execute("INSERT INTO rows VALUES (1)")
        change = Change(1, ("x",), (np.array([2]),), np.array([1]))
        error = after_waiting_for(one, sql, lambda: other.write([change], Mark("b", 1)))
        assert str(error) == "table rows was written to by another session meanwhile"
        assert sql.execute("SELECT * FROM rows").fetchall() == [(1,)]
        assert other.mark() == Mark("a", 1)


def test_two_sinks_may_make_the_table_of_marks_at_once(dsn: str) -> None:
    writer = postgresql(dsn, "rows", key="x").open(Outlet("all", ("x",)))
    with closing(writer), psycopg.connect(dsn) as holder, psycopg.connect(dsn, autocommit=True) as sql:
        holder.execute("CREATE TABLE timely_commits (sink text PRIMARY KEY, stream text, commit bigint)")
        assert after_waiting_for(holder, sql, writer.mark) is None


def test_names_of_columns_may_have_any_character(dsn: str) -> None:
    names = ("%s", "50%", "%(x)s", "$1", 'a"b', "{}", "%%")
    with psycopg.connect(dsn) as sql, Session() as db:
        table = db.table("rows", {"x": int} | dict.fromkeys(names, int), key="x")
        table.write_to(postgresql(dsn, "rows", key=["x", "%s"]))
        for number in 1, 2:
            table.upsert([(1, *range(number, number + len(names)))])
            db.commit()
            assert sql.execute("SELECT * FROM rows").fetchall() == table.records()
            sql.rollback()


def test_a_null_in_the_key_is_refused(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as sql, Session() as db:
        sql.execute("CREATE TABLE rows (x bigint UNIQUE)")
        table = db.table("rows", {"x": int | None})
        table.write_to(postgresql(dsn, "rows", key="x"))
        table.insert([(None,), (1,)])
        with pytest.raises(SessionError, match="column 'x' has a null, which cannot be in a key: filter such rows"):
            db.commit()
        assert sql.execute("SELECT * FROM rows").fetchall() == []


def test_a_server_that_is_away_is_waited_for(server: Server, dsn: str) -> None:
    with Session() as db:
        numbers = db.table("numbers", {"x": int})
        delivery = db.view("all", lambda t: t.numbers).write_to(postgresql(dsn, "rows", key="x"), patience=0.2)
        server.kill()
        try:
            numbers.insert(x=1)
            with pytest.raises(SessionError, match=r"sink 'rows' .* has not taken the changes up to commit 1"):
                db.commit()
            assert isinstance(delivery.error, StoreError)
        finally:
            server.start()
        numbers.insert(x=2)
        db.commit()
        with psycopg.connect(dsn) as sql:
            assert sql.execute("SELECT x FROM rows ORDER BY 1").fetchall() == [(1,), (2,)]
