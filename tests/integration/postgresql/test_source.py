"""Tables of a real server as sources: the session has the same rows as SQL over the same tables."""

from __future__ import annotations

import datetime as dt
import random
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from differential import Session
from timely.errors import SessionError
from timely.lowlevel import typed

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
from differential.session.sources.postgresql import postgresql  # noqa: E402
from tests.integration.postgresql.clients import Clients  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
PATIENCE = 30


def committed(db: Session, is_there: Any) -> None:
    """Commit until something is there."""
    end = time.monotonic() + PATIENCE
    while not is_there():
        assert time.monotonic() < end, f"it has not arrived: {db.status()}"
        db.commit()
        time.sleep(0.02)


def test_all_kinds_of_changes_arrive(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as sql, Session() as db:
        sql.execute("CREATE TABLE stock (note text, item text PRIMARY KEY, pieces int)")
        sql.execute("INSERT INTO stock VALUES ('a', 'nut', 3), (NULL, 'cog', 4)")
        stock = db.table("stock", {"item": str, "pieces": int, "note": typed([], "text?")}, key="item")
        stock.read_from(postgresql(dsn, "stock", slot="all_kinds")["stock"])
        db.commit()
        assert stock.records() == [("cog", 4, None), ("nut", 3, "a")]

        def same() -> bool:
            return stock.records() == sql.execute("SELECT item, pieces, note FROM stock ORDER BY 1").fetchall()

        for statement in (
            "UPDATE stock SET pieces = 5 WHERE item = 'nut'",
            "UPDATE stock SET item = 'bolt' WHERE item = 'nut'",
            "INSERT INTO stock VALUES ('x', 'rod', 1); DELETE FROM stock WHERE item = 'cog'",
            "BEGIN; INSERT INTO stock VALUES ('y', 'pin', 1); ROLLBACK; INSERT INTO stock VALUES ('z', 'cog', 0)",
            "TRUNCATE stock",
            "INSERT INTO stock SELECT NULL, 'item ' || n, n FROM generate_series(1, 2000) n",
            "DELETE FROM stock WHERE pieces > 3; TRUNCATE stock; INSERT INTO stock VALUES ('', 'cog', 9)",
        ):
            sql.execute(statement)
            committed(db, same)


def test_each_row_of_a_table_with_full_identity_counts(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as sql, Session() as db:
        sql.execute("CREATE TABLE words (word text)")
        sql.execute("ALTER TABLE words REPLICA IDENTITY FULL")
        sql.execute("INSERT INTO words VALUES ('to'), ('be'), ('to')")
        words = db.table("words", {"word": str})
        words.read_from(postgresql(dsn, "words", slot="full_identity")["words"])
        db.commit()
        sql.execute("UPDATE words SET word = 'or' WHERE ctid = (SELECT min(ctid) FROM words)")
        sql.execute("INSERT INTO words VALUES (repeat(md5('1'), 1000)), ('be')")
        sql.execute("DELETE FROM words WHERE word = 'be'")
        committed(db, lambda: words.records() == sql.execute("SELECT word FROM words ORDER BY 1").fetchall())


VALUES: dict[str, tuple[str, str, list[Any]]] = {
    "small": ("smallint", "int64", [1, -2]),
    "big": ("bigint", "int64?", [None, 2**62]),
    "half": ("real", "float32", [0.5, 1.25]),
    "double": ("double precision", "float64?", [float("inf"), 0.1]),
    "flag": ("boolean", "bool?", [True, None]),
    "text": ("text", "text?", ["a\tb\\n\n'", None]),
    "id": ("uuid", "text", ["c0ffee00-0000-4000-8000-000000000001", "c0ffee00-0000-4000-8000-000000000002"]),
    "price": ("numeric(12, 2)", "decimal(12, 2)", [Decimal("-9.99"), None]),
    "day": ("date", "date", [dt.date(2026, 2, 28), None]),
    "moment": ("timestamp", "timestamp[us]", [dt.datetime(2026, 2, 28, 1, 2, 3, 400), None]),
    "zone": ("timestamptz", "timestamp[us, UTC]", [dt.datetime(2026, 7, 1, tzinfo=dt.UTC), None]),
    "clock": ("time", "time[us]", [dt.time(1, 2, 3, 4), None]),
    "data": ("bytea", "bytes?", [b"\0\xff", None]),
    "list": ("jsonb", "value", [[1, "x"], None]),
}


def test_values_of_all_types_are_the_same(dsn: str) -> None:
    declared = ", ".join(f"{name} {of}" for name, (of, _, _) in VALUES.items())
    with psycopg.connect(dsn, autocommit=True) as sql, Session() as db:
        sql.execute(f"CREATE TABLE kinds (number int PRIMARY KEY, {declared})")
        rows = list(zip(*(values for *_, values in VALUES.values())))
        places = ", ".join(["%s"] * len(VALUES))

        def insert(number: int, row: Any) -> None:
            adapted = [psycopg.types.json.Jsonb(each) if isinstance(each, list) else each for each in row]
            sql.execute(f"INSERT INTO kinds VALUES (%s, {places})", [number, *adapted])

        insert(0, rows[0])
        insert(1, rows[1])
        types = {name: float if of == "float64" else typed([], of) for name, (_, of, _) in VALUES.items()}
        kinds = db.table("kinds", {"number": int, **types}, key="number")
        kinds.read_from(postgresql(dsn, "kinds", slot="kinds")["kinds"])
        db.commit()
        insert(2, rows[0])
        insert(3, rows[1])
        committed(db, lambda: len(kinds) == 4)
        expected = [(n, *(tuple(v) if isinstance(v, list) else v for v in rows[n % 2])) for n in range(4)]
        assert kinds.records() == expected


def test_a_transaction_over_two_tables_is_in_one_commit(dsn: str) -> None:
    with psycopg.connect(dsn) as sql, Session() as db:
        sql.execute("CREATE TABLE one (n int PRIMARY KEY)")
        sql.execute("CREATE TABLE two (n int PRIMARY KEY)")
        sql.commit()
        database = postgresql(dsn, "one", "two", slot="two_tables")
        tables = [db.table(name, {"n": int}, key="n") for name in ("one", "two")]
        difference = db.view("difference", lambda t: t.one.concat(t.two.negate()))
        for table in tables:
            table.read_from(database[table.name])
            db.commit()
        chance = random.Random(1)
        for number in range(100):
            for name in chance.sample(("one", "two"), 2):
                sql.execute(f"INSERT INTO {name} VALUES (%s)", [number])
                if chance.random() < 0.3:
                    db.commit()
            sql.commit()
            if chance.random() < 0.5:
                db.commit()
                assert len(difference) == 0
                assert tables[0].records() == tables[1].records()
        committed(db, lambda: len(tables[0]) == 100)
        assert tables[0].records() == tables[1].records()


def test_mistakes_name_table_and_column(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as sql, Session() as db:
        sql.execute("CREATE TABLE stock (item text PRIMARY KEY, pieces int, big text)")
        database = postgresql(dsn, "stock", slot="mistakes")
        one = db.table("one", {"item": str, "colour": str}, key="item")
        with pytest.raises(SessionError, match=r"table public.stock has no column 'colour': it has item, pieces, big"):
            one.read_from(database["stock"])
        two = db.table("two", {"item": str, "pieces": str, "big": int}, key="item")
        with pytest.raises(SessionError, match=r"column 'big' of table public.stock is of type text.*not fit int64"):
            two.read_from(database["stock"])
        three = db.table("three", {"pieces": int, "item": str}, key="pieces")
        with pytest.raises(SessionError, match="identifies rows by item, so this must be the key of table 'three'"):
            three.read_from(database["stock"])
        with pytest.raises(SessionError, match="there is no table nothing"):
            three.read_from(postgresql(dsn, "nothing", slot="mistakes")["nothing"])
        four = db.table("four", {"item": str, "pieces": int, "big": typed([], "text?")}, key="item")
        four.read_from(database["stock"])
        db.commit()
        sql.execute("INSERT INTO stock VALUES ('nut', 1, NULL)")
        committed(db, lambda: len(four) == 1)
        sql.execute("INSERT INTO stock VALUES ('bolt', 1, NULL)")
        sql.execute("INSERT INTO stock VALUES ('cog', NULL, NULL)")
        with pytest.raises(
            SessionError, match=r"stopped at public.stock.*column 'pieces' \(int64\) cannot be null, in 'cog"
        ):
            committed(db, lambda: False)
        assert [item for item, *_ in four.records()] == ["bolt", "nut"]


def test_a_generated_column_is_refused_because_its_changes_do_not_arrive(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as sql, Session() as db:
        sql.execute("CREATE TABLE stock (item int PRIMARY KEY, twice int GENERATED ALWAYS AS (item * 2) STORED)")
        database = postgresql(dsn, "stock", slot="generated")
        with pytest.raises(SessionError, match=r"column 'twice' of table public.stock is generated, .*: leave it out"):
            db.table("whole", {"item": int, "twice": int | None}, key="item").read_from(database["stock"])
        stock = db.table("stock", {"item": int}, key="item")
        stock.read_from(database["stock"])
        db.commit()
        sql.execute("INSERT INTO stock VALUES (1), (2)")
        committed(db, lambda: stock.records() == [(1,), (2,)])


def test_a_column_that_the_index_of_the_key_includes_does_not_belong_to_the_key(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as sql, Session() as db:
        sql.execute("CREATE TABLE stock (pieces int, item int, PRIMARY KEY (item) INCLUDE (pieces))")
        sql.execute("INSERT INTO stock VALUES (1, 1), (2, 2)")
        stock = db.table("stock", {"item": int, "pieces": int}, key="item")
        stock.read_from(postgresql(dsn, "stock", slot="included")["stock"])
        db.commit()
        sql.execute("UPDATE stock SET pieces = 3, item = 3 WHERE item = 1; DELETE FROM stock WHERE item = 2")
        committed(db, lambda: stock.records() == [(3, 3)])


def test_a_row_that_is_none_is_rejected_with_its_table(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as sql, Session() as db:
        sql.execute("CREATE TABLE stock (item text PRIMARY KEY, pieces int)")
        sql.execute("INSERT INTO stock VALUES ('cog', NULL), ('nut', 1)")
        stock = db.table("stock", {"item": str, "pieces": int}, key="item")
        stock.read_from(postgresql(dsn, "stock", slot="rejects")["stock"], on_error=db.rejects())
        sql.execute("INSERT INTO stock VALUES ('rod', NULL)")
        committed(db, lambda: len(db["rejects"]) == 2)
        assert stock.records() == [("nut", 1)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("ALTER TABLE stock DROP COLUMN pieces", "table public.stock no longer has a column 'pieces'"),
        (
            "ALTER TABLE stock ALTER pieces TYPE bigint",
            "column 'pieces' of table public.stock has a different type than when the source was opened",
        ),
        ("ALTER TABLE stock REPLICA IDENTITY FULL", "table public.stock now has another replica identity"),
        ("UPDATE stock SET pieces = 2 WHERE item = 'large'", "column 'big' .* REPLICA IDENTITY FULL"),
    ],
)
def test_a_change_that_cannot_be_followed_stops_the_source(dsn: str, change: str, message: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as sql, Session() as db:
        sql.execute("CREATE TABLE stock (item text PRIMARY KEY, pieces int, big text)")
        sql.execute("ALTER TABLE stock ALTER big SET STORAGE EXTERNAL")
        sql.execute("INSERT INTO stock VALUES ('large', 1, repeat('x', 100000))")
        stock = db.table("stock", {"item": str, "pieces": int, "big": typed([], "text?")}, key="item")
        stock.read_from(postgresql(dsn, "stock", slot="schema")["stock"])
        db.commit()
        sql.execute("INSERT INTO stock VALUES ('nut', 1)")
        committed(db, lambda: len(stock) == 2)
        sql.execute(change)
        sql.execute("INSERT INTO stock (item) VALUES ('cog')")
        with pytest.raises(SessionError, match=message):
            committed(db, lambda: False)


def partitioned(sql: Any) -> None:
    sql.execute("CREATE TABLE stock (id int PRIMARY KEY, pieces int) PARTITION BY RANGE (id)")
    sql.execute("CREATE TABLE stock_1 PARTITION OF stock FOR VALUES FROM (0) TO (100)")
    sql.execute("CREATE TABLE stock_2 PARTITION OF stock FOR VALUES FROM (100) TO (200)")
    sql.execute("INSERT INTO stock VALUES (1, 1), (101, 2)")


@pytest.mark.parametrize("form", ["made by the source", "TABLE stock", "ALL TABLES"])
def test_a_partitioned_table_is_one_table(dsn: str, tmp_path: Path, form: str) -> None:
    slot = f"partitions_{len(form)}"
    with psycopg.connect(dsn, autocommit=True) as sql:
        partitioned(sql)
        if form != "made by the source":
            sql.execute(f"CREATE PUBLICATION {slot} FOR {form} WITH (publish_via_partition_root = true)")
        for statements in (
            ("INSERT INTO stock VALUES (2, 3), (102, 4)", "UPDATE stock SET id = id + 110 WHERE id = 1"),
            ("DELETE FROM stock WHERE id = 102", "TRUNCATE stock", "INSERT INTO stock VALUES (5, 5)"),
        ):
            with Session(state=str(tmp_path)) as db:
                stock = db.table("stock", {"id": int, "pieces": int}, key="id")
                stock.read_from(postgresql(dsn, "stock", slot=slot)["stock"])
                db.commit()
                for statement in statements:
                    sql.execute(statement)
                    rows = sql.execute("SELECT * FROM stock ORDER BY 1").fetchall()
                    committed(db, lambda stock=stock, rows=rows: stock.records() == rows)


@pytest.mark.parametrize("form", ["TABLE stock", "ALL TABLES"])
def test_a_publication_of_single_partitions_is_refused(dsn: str, form: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as sql, Session() as db:
        partitioned(sql)
        sql.execute(f"CREATE PUBLICATION single FOR {form}")
        stock = db.table("stock", {"id": int, "pieces": int}, key="id")
        stock.read_from(postgresql(dsn, "stock", slot="single")["stock"])
        with pytest.raises(
            SessionError, match=r"'single' .* ALTER PUBLICATION \"single\" SET .publish_via_partition_root"
        ):
            db.commit()


def test_a_partition_beside_its_table_is_refused(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as sql, Session() as db:
        partitioned(sql)
        server = postgresql(dsn, "stock", "stock_1", slot="beside")
        for name in ("stock", "stock_1"):
            db.table(name, {"id": int, "pieces": int}, key="id").read_from(server[name])
        with pytest.raises(SessionError, match=r"public\.stock_1 is a partition .* slot and a publication of its own"):
            db.commit()


def test_a_session_goes_on_where_it_was_and_notices_a_slot_that_was_made_again(dsn: str, tmp_path: Path) -> None:
    with psycopg.connect(dsn, autocommit=True) as sql:
        sql.execute("CREATE TABLE stock (item text PRIMARY KEY, pieces int)")

        def rows() -> list[Any]:
            return sql.execute("SELECT * FROM stock ORDER BY 1").fetchall()

        for number in range(3):
            sql.execute("INSERT INTO stock VALUES (%s, %s)", [f"item {number}", number])
            with Session(state=str(tmp_path)) as db:
                stock = db.table("stock", {"item": str, "pieces": int}, key="item")
                stock.read_from(postgresql(dsn, "stock", slot="again")["stock"])
                committed(db, lambda stock=stock: stock.records() == rows())
                sql.execute("UPDATE stock SET pieces = pieces + 1")
        for _ in range(100):
            if (
                sql.execute("SELECT 1 FROM pg_replication_slots WHERE slot_name = 'again' AND active").fetchone()
                is None
            ):
                break
            time.sleep(0.1)
        sql.execute("SELECT pg_drop_replication_slot('again')")
        with Session(state=str(tmp_path)) as db:
            stock = db.table("stock", {"item": str, "pieces": int}, key="item")
            stock.read_from(postgresql(dsn, "stock", slot="again")["stock"])
            with pytest.raises(SessionError, match="the changes in between are lost"):
                committed(db, lambda: False)


def test_a_table_that_is_added_later_has_the_transactions_of_the_others(dsn: str, tmp_path: Path) -> None:
    with psycopg.connect(dsn, autocommit=True) as sql:
        sql.execute("CREATE TABLE accounts (id int PRIMARY KEY, balance int)")
        sql.execute("CREATE TABLE payments (number int PRIMARY KEY, account int, amount int)")

        def paid() -> list[Any]:
            return sql.execute("SELECT account, sum(amount) FROM payments GROUP BY 1 ORDER BY 1").fetchall()

        clients = Clients(dsn, 7)
        try:
            with Session(state=str(tmp_path)) as db:
                accounts = db.table("accounts", {"id": int, "balance": int}, key="id")
                accounts.read_from(postgresql(dsn, "accounts", slot="added")["accounts"])
                committed(db, lambda: len(accounts) > 5)
            time.sleep(0.3)  # transactions of which the session has neither table
            with Session(state=str(tmp_path)) as db:
                server = postgresql(dsn, "payments", "accounts", slot="added")
                accounts = db.table("accounts", {"id": int, "balance": int}, key="id")
                payments = db.table("payments", {"number": int, "account": int, "amount": int}, key="number")
                payments.read_from(server["payments"])
                accounts.read_from(server["accounts"])
                sums = db.view("sums", lambda t: t.payments.group_by("account").sum("amount"))

                def same() -> bool:
                    assert sums.records() in ([], accounts.records())
                    return len(payments) > 0

                committed(db, same)
                clients.end()
                committed(db, lambda: same() and sums.records() == paid())
        finally:
            clients.end()


def test_the_log_is_released_while_other_tables_change(
    dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("differential.session.sources.postgresql.IDLE_SECONDS", 0.1)
    query = "SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = 'idle'"
    with psycopg.connect(dsn, autocommit=True) as sql, Session(state=str(tmp_path)) as db:
        sql.execute("CREATE TABLE stock (item text PRIMARY KEY)")
        sql.execute("CREATE TABLE other (n int)")
        stock = db.table("stock", {"item": str}, key="item")
        stock.read_from(postgresql(dsn, "stock", slot="idle")["stock"])
        db.commit()
        sql.execute("INSERT INTO other SELECT n FROM generate_series(1, 1000) n")
        (end,) = sql.execute("SELECT pg_current_wal_lsn()").fetchone() or ("",)
        committed(db, lambda: sql.execute(f"SELECT ({query}) >= %s::pg_lsn", [end]).fetchone() == (True,))
        sql.execute("INSERT INTO stock VALUES ('nut')")
        committed(db, lambda: stock.records() == [("nut",)])


def test_a_server_that_does_not_answer_is_an_error(tmp_path: Path) -> None:
    with Session() as db:
        rows = db.table("rows", {"x": int})
        with pytest.raises(SessionError, match="table rows cannot be read: "):
            rows.read_from(postgresql(f"host={tmp_path}", "rows", slot="nobody", patience=0.1)["rows"])
