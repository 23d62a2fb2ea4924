"""A session with `state=` goes on where an earlier one ended: every commit is there, whole, and nothing else."""

from __future__ import annotations

import datetime as dt
import re
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

import differential as dd
from differential.durable import Directory, LocalStore, Shard
from differential.durable.writer import Writer
from differential.session.sinks import json_lines
from differential.session.storage import COMMITS
from timely.errors import ConfigError, FencedError, SessionError, StateError, StoreError, UncommittedWarning

ROWS = {
    "id": [1, 2, 3],
    "name": ["ann", None, "ünï"],
    "day": [dt.date(2026, 3, 1), None, dt.date(1969, 12, 31)],
    "total": [Decimal("9.99"), None, Decimal("-0.01")],
    "seen": [dt.datetime(2026, 3, 1, 12, 0, 0, 5), None, dt.datetime(1969, 1, 1)],
    "at": [dt.time(1, 2, 3), None, dt.time(0)],
    "took": [dt.timedelta(seconds=5), None, dt.timedelta(days=-1)],
    "weight": [0.5, None, 1e300],
    "is_new": [True, None, False],
    "count": [7, None, -7],
    "raw": [b"\0x", None, b""],
    "tags": [["a", "b"], None, []],
}


@contextmanager
def session(path: Path, **options: Any) -> Iterator[dd.Session]:
    db = dd.Session(state=str(path / "db"), **options)
    try:
        yield db
    finally:
        db.close()


def shard(path: Path, name: str) -> Shard:
    return Shard(name, Directory(str(path / "db")).store(name))


def test_a_session_goes_on_with_its_tables_and_commits(tmp_path: Path) -> None:
    def stock(db: dd.Session) -> Any:
        return db.table("stock", {"pieces": [3, 5], "item": ["nut", "cog"]}, key="item")

    with session(tmp_path) as db:
        stock(db)
        assert db.commit() == 1
        stock_table = db["stock"]
        stock_table.upsert(item="nut", pieces=9)  # type: ignore[union-attr]
        assert db.commit() == 2
        stock_table.insert(item="bolt", pieces=1)  # type: ignore[union-attr]
        db.rollback()
    with session(tmp_path, workers=2) as db:
        again = stock(db)
        assert again.records() == [(5, "cog"), (9, "nut")]
        assert (again.columns, len(again)) == (("pieces", "item"), 2)
        counts = db.view("counts", lambda t: t.stock.map(lambda item, pieces: pieces).named("pieces"))
        again.delete(item="cog")
        assert (db.commit(), counts.records()) == (3, [(9,)])
    with session(tmp_path) as db:
        assert db["stock"].records() == [(9, "nut")]
        assert db.commit() == 4


def test_columns_of_all_types_come_back_as_they_were(tmp_path: Path) -> None:
    with session(tmp_path) as db:
        table = db.table("rows", ROWS)
        db.commit()
        records, frame = table.records(), table.to_arrow()
    assert [len(records), records[1]] == [3, (2, *[None] * 11)]
    with session(tmp_path) as db:
        again = db["rows"]
        assert again.records() == records
        assert again.to_arrow().equals(frame)
        again.delete(id=3)  # type: ignore[union-attr]
        again.insert({name: values[:2] for name, values in ROWS.items()})  # type: ignore[union-attr]
        db.commit()
        assert again.records() == [records[0], records[0], records[1], records[1]]


def test_typed_tables_are_opened_by_duckdb(tmp_path: Path) -> None:
    with session(tmp_path) as db:
        db.table("rows", ROWS)
        db.commit()
    paths = shard(tmp_path, "rows").paths()
    found = duckdb.sql(f'SELECT id, name, day, total, seen, "at", "count" FROM read_parquet({paths}) ORDER BY id')
    names = ("id", "name", "day", "total", "seen", "at", "count")
    assert found.fetchall() == list(zip(*(ROWS[name] for name in names)))
    assert [str(kind) for kind in found.types[2:4]] == ["DATE", "DECIMAL(18,2)"]


def test_empty_tables_keep_the_types_of_their_columns(tmp_path: Path) -> None:
    with session(tmp_path) as db:
        db.table("stock", {"item": str, "price": float, "pieces": int}, key="item")
        db.commit()
    with session(tmp_path) as db:
        table: Any = db.table("stock", {"item": str, "price": float, "pieces": int}, key="item")
        table.insert(item="nut", price=1, pieces=2)
        table.upsert(item="nut", price=1, pieces=3)
        db.commit()
        assert table.records() == [("nut", 1.0, 3)]


def test_what_was_not_committed_is_not_there_and_closing_warns_of_it(tmp_path: Path) -> None:
    db = dd.Session(state=str(tmp_path / "db"))
    db.table("numbers", {"x": [1]})
    with pytest.warns(
        UncommittedWarning, match=r"1 statement\(s\) on table 'numbers' are lost, .* rollback\(\)"
    ) as caught:
        db.close()
    assert caught[0].filename == __file__
    with session(tmp_path) as db:
        table: Any = db.table("numbers", {"x": [2]})
        db.commit()
        table.insert(x=3)
        db.rollback()
    with session(tmp_path) as db:
        assert db["numbers"].records() == [(2,)]


def test_first_rows_without_a_commit_are_lost_without_a_warning_where_nothing_is_durable() -> None:
    db = dd.Session()
    numbers = db.table("numbers", {"x": [1]})
    db.close()
    db = dd.Session()
    numbers = db.table("numbers", {"x": [1]})
    db.commit()
    numbers.insert(x=2)
    with pytest.warns(UncommittedWarning, match="1 statement"):
        db.close()


def test_an_error_that_ends_a_session_is_not_followed_by_a_warning(tmp_path: Path) -> None:
    db = dd.Session(state=str(tmp_path / "db"))
    with pytest.raises(ZeroDivisionError), db:
        db.table("numbers", {"x": [1 // 0]})
    db = dd.Session(state=str(tmp_path / "db"))
    db.table("numbers", {"x": [1]})
    with pytest.raises(ZeroDivisionError), db:
        _ = 1 // 0


class Full(Exception):
    pass


def failing(monkeypatch: pytest.MonkeyPatch, number: int, operation: str) -> list[str]:
    """Let the store crash at its operation of this number; return the names of those before."""
    seen: list[str] = []
    for name in ("put_new", "compare_and_set"):
        whole: Callable[..., Any] = getattr(LocalStore, name)

        def attempt(self: LocalStore, *arguments: Any, name: str = name, whole: Any = whole) -> Any:
            if len(seen) == number and operation == "before":
                raise Full
            seen.append(f"{name} {self.directory.rpartition('/')[2]}")
            result = whole(self, *arguments)
            if len(seen) == number + 1 and operation == "after":
                raise Full
            return result

        monkeypatch.setattr(LocalStore, name, attempt)
    return seen


@pytest.mark.parametrize("operation", ["before", "after"])
def test_a_commit_over_two_tables_is_there_for_both_or_for_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    """The session crashes before or after each operation on the store that a commit consists of."""

    def transfer(db: dd.Session) -> None:
        with db.transaction():
            db["one"].upsert(id=0, sum=90)  # type: ignore[union-attr]
            db["two"].upsert(id=0, sum=10)  # type: ignore[union-attr]

    outcomes = []
    for number in range(20):
        path = tmp_path / str(number)
        with session(path) as db:
            db.table("one", {"id": [0], "sum": [100]}, key="id")
            db.table("two", {"id": [0], "sum": [0]}, key="id")
            db.commit()
            with monkeypatch.context() as patched:
                failing(patched, number, operation)
                try:
                    transfer(db)
                except Full:
                    with pytest.raises(SessionError, match="can no longer make anything durable"):
                        db.commit()
                else:
                    break
        with session(path) as db:
            sums = db["one"].records()[0][1], db["two"].records()[0][1]
            assert sums in ((100, 0), (90, 10))
            assert db.commit() == (2 if sums == (100, 0) else 3)
            transfer(db)
        with session(path) as db:
            assert (db["one"].records(), db["two"].records()) == ([(0, 90)], [(0, 10)])
        outcomes.append(sums)
    # Two tables, each with a part and a manifest, then the decision, which the last outcome is of.
    assert outcomes == [(100, 0)] * 4 + [(90, 10) if operation == "after" else (100, 0)]


def test_a_table_of_a_commit_that_was_not_decided_is_as_if_it_had_never_been(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        path = tmp_path / str(number)
        with session(path) as db:
            db.table("one", {"x": [1]})
            db.commit()
            with monkeypatch.context() as patched:
                failing(patched, number, "before")
                db.table("two", {"x": [2]})
                try:
                    db.commit()
                except Full:
                    pass
                else:
                    break
        with session(path) as db:
            db.table("two", {"name": ["of another kind"]})
            db.commit()
        with session(path) as db:
            assert (db["one"].records(), db["two"].records()) == ([(1,)], [("of another kind",)])
    assert number == 4, "the claim, a part, its manifest, and the decision"


def test_a_full_disk_is_an_error_and_nothing_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with session(tmp_path) as db:
        table: Any = db.table("numbers", {"x": [1]})
        db.commit()
        table.insert(x=2)
        with monkeypatch.context() as patched:
            patched.setattr(LocalStore, "put_new", lambda *_: (_ for _ in ()).throw(StoreError("it is full")))
            patched.setattr("differential.durable.writer._FIRST_PAUSE", 0.0)
            with pytest.raises(StoreError, match="it is full"):
                db.commit()
        assert table.records() == [(1,)]
        with pytest.raises(
            SessionError, match=r"can no longer make anything durable \(it is full .*\): close it, and open it again"
        ):
            db.commit()
    with session(tmp_path) as db:
        assert (db["numbers"].records(), db.commit()) == ([(1,)], 2)


@pytest.mark.parametrize(
    ("full", "error", "outcome", "commits"),
    [
        ("numbers", StoreError, "it is full (commit 2 is not made)", 1),
        ("_session", StoreError, "it is full (opening the session again shows whether commit 2 is made)", 1),
        ("copy", SessionError, "opened again: it is full (commit 2 is complete)", 2),
    ],
)
def test_the_error_of_a_full_disk_states_what_becomes_of_the_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: str, error: type[Exception], outcome: str, commits: int
) -> None:
    def fail(self: LocalStore, *arguments: Any, whole: Any = LocalStore.compare_and_set) -> Any:
        if self.directory.endswith(full):
            raise StoreError("it is full")
        return whole(self, *arguments)

    rows = [(1,), (2,)][:commits]
    with session(tmp_path) as db:
        table: Any = db.table("numbers", {"x": [1]})
        copy = db.view("copy", lambda t: t.numbers, durable=True)
        copy.write_to(json_lines(tmp_path / "out.jsonl"))
        db.commit()
        table.insert(x=2)
        seen: list[int] = []
        copy.watch(lambda change: seen.append(change.time))
        with monkeypatch.context() as patched:
            patched.setattr(LocalStore, "compare_and_set", fail)
            patched.setattr("differential.durable.writer._FIRST_PAUSE", 0.0)
            with pytest.raises(error, match=re.escape(outcome) + "$"):
                db.commit()
        assert (table.records(), copy.records(), seen) == (rows, rows, [2][: commits - 1])
        with pytest.raises(SessionError, match="can no longer make anything durable"):
            db.commit()
    assert shard(tmp_path, "copy").read() == {(1,): 1}
    with session(tmp_path) as db:
        copy = db.view("copy", lambda t: t.numbers, durable=True)
        copy.write_to(json_lines(tmp_path / "out.jsonl"))
        assert (db["numbers"].records(), db.commit()) == (rows, commits + 1)
    assert shard(tmp_path, "copy").read() == dict.fromkeys(rows, 1)
    assert (tmp_path / "out.jsonl").read_text().count("\n") == commits, "the sink has each row once"


def test_a_failed_merge_of_parts_leaves_the_commit_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with session(tmp_path) as db:
        db.table("numbers", {"x": [1]})
        with monkeypatch.context() as patched:
            patched.setattr(Writer, "compact", lambda _: (_ for _ in ()).throw(StoreError("it is full")))
            with pytest.raises(SessionError, match=r"it is full \(commit 1 is complete\)"):
                db.commit()
        assert db["numbers"].records() == [(1,)]
    with session(tmp_path) as db:
        assert (db["numbers"].records(), db.commit()) == ([(1,)], 2)


def test_a_second_session_ends_the_first(tmp_path: Path) -> None:
    with session(tmp_path) as first:
        table: Any = first.table("numbers", {"x": [1]})
        first.commit()
        with session(tmp_path) as second:
            table.insert(x=2)
            with pytest.raises(FencedError, match="was claimed by process"):
                first.commit()
            assert second["numbers"].records() == [(1,)]
            assert second.commit() == 2


def test_durable_views_are_appended_to_by_each_commit(tmp_path: Path) -> None:
    def run(rows: list[int], durable: bool = True, times: int = 1) -> int:
        with session(tmp_path, keep=None) as db:
            table: Any = db.table("numbers", {"x": int})
            define: Any = lambda t: t.numbers.map(lambda x: times * x).count().named("x", "count")  # noqa: E731
            db.view("counts", define, durable=durable)
            for x in rows:
                table.insert(x=x)
                db.commit()
            return db.commit()

    assert run([7, 8, 7]) == 4
    counts = shard(tmp_path, "counts")
    assert [counts.read(time) for time in range(5)] == [
        {},
        {(7, 1): 1},
        {(7, 1): 1, (8, 1): 1},
        {(7, 2): 1, (8, 1): 1},
        {(7, 2): 1, (8, 1): 1},
    ]
    assert run([7], durable=False) == 6
    assert counts.manifest().upper == 5, "nobody keeps it"
    assert run([]) == 7
    assert counts.read(4) == {(7, 2): 1, (8, 1): 1}
    assert counts.read(6) == {(7, 3): 1, (8, 1): 1}
    assert run([], times=10) == 8
    assert counts.read(7) == {(7, 3): 1, (8, 1): 1}, "a changed definition corrects the view at the next commit"
    assert run([8], times=10) == 10
    assert counts.read() == {(70, 3): 1, (80, 2): 1}
    assert counts.manifest().fields == (("x", "int64"), ("count", "int64"))


def test_a_durable_view_that_a_crash_left_behind_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from differential.session.storage import SessionStorage

    with session(tmp_path) as db:
        table: Any = db.table("numbers", {"x": [1]})
        db.view("copy", lambda t: t.numbers, durable=True)
        db.commit()
        table.insert(x=2)
        with monkeypatch.context() as patched:
            patched.setattr(SessionStorage, "publish", lambda *_: (_ for _ in ()).throw(Full))
            with pytest.raises(Full):
                db.commit()
    assert shard(tmp_path, "copy").read() == {(1,): 1}
    with session(tmp_path) as db:
        db.view("copy", lambda t: t.numbers, durable=True)
        assert shard(tmp_path, "copy").read(2) == {(1,): 1, (2,): 1}


def test_a_view_with_other_columns_begins_anew(tmp_path: Path) -> None:
    for width in (1, 2):
        with session(tmp_path) as db:
            db.table("numbers", {"x": [1, 2]})
            names = ("a", "b")[:width]
            db.view("copy", lambda t, w=width: t.numbers.map(lambda x: (x,) * w), columns=names, durable=True)
            db.commit()
    assert shard(tmp_path, "copy").read() == {(1, 1): 1, (2, 2): 1}


@pytest.mark.parametrize("later", [False, True], ids=["at once", "in another session"])
def test_a_view_without_rows_begins_anew_once_its_columns_are_seen_to_be_others(tmp_path: Path, later: bool) -> None:
    def definition(name: str) -> Callable[[Any], Any]:
        return lambda t: t[name].select("x")

    for names in [("days", "flags")] if not later else [("days",), ("flags",)]:
        with session(tmp_path) as db:
            db.table("days", {"x": [dt.date(2026, 3, 1)]})
            flags = db.table("flags", {"x": bool})
            db.commit()
            for name in names:
                db.view("v", definition(name), durable=True)
            if "flags" in names:
                flags.insert(x=[True, False, True])
                db.commit()
                flags.delete(x=False)
                db.commit()
                assert db["v"].records() == [(True,), (True,)]
    assert shard(tmp_path, "v").read() == {(True,): 2}


def test_a_view_that_is_replaced_again_before_a_commit_keeps_no_difference_of_the_one_between(tmp_path: Path) -> None:
    with session(tmp_path) as db:
        db.table("numbers", {"x": [1, 2]})
        db.commit()
        for least in (0, 2, 0):
            db.view("v", lambda t, least=least: t.numbers.filter(lambda x: x >= least), durable=True)
        db.commit()
        assert db["v"].records() == [(1,), (2,)]
    assert shard(tmp_path, "v").read() == {(1,): 1, (2,): 1}


def test_a_session_that_was_replaced_cannot_make_a_view_durable(tmp_path: Path) -> None:
    def numbers(db: dd.Session) -> None:
        db.view("all", lambda t: t.numbers.select("x"), durable=True)

    with session(tmp_path) as db:
        db.table("numbers", {"x": [1]})
        numbers(db)
        db.commit()
    with session(tmp_path) as db:
        db["numbers"].insert(x=2)  # type: ignore[union-attr]
        db.commit()  # which the durable view lacks
    with session(tmp_path) as former, session(tmp_path) as later:
        numbers(later)
        later["numbers"].insert(x=3)  # type: ignore[union-attr]
        later.commit()
        with pytest.raises(FencedError, match="one program at a time"):
            numbers(former)
    assert shard(tmp_path, "all").read() == {(1,): 1, (2,): 1, (3,): 1}


def test_columns_are_added_with_a_value(tmp_path: Path) -> None:
    with session(tmp_path) as db:
        db.table("stock", {"pieces": [3, 5], "item": ["nut", "cog"]}, key="item")
        db.commit()
    wider = {"item": str, "pieces": int, "price": float, "place": str}
    with session(tmp_path) as db:
        with pytest.raises(SessionError, match=r"is durable without 'price', 'place': added=\{'price': value\}"):
            db.table("stock", wider, key="item")
        with pytest.raises(SessionError, match="is durable with the columns item, pieces and the key item, not"):
            db.table("stock", {"item": str}, key="item")
        table: Any = db.table("stock", wider, key="item", added={"price": 0.5, "place": "Rome"})
        assert table.records() == [("cog", 5, 0.5, "Rome"), ("nut", 3, 0.5, "Rome")]
        table.insert(item="bolt", pieces=1, price=2, place="Oslo")
        db.commit()
    with session(tmp_path) as db:
        table = db.table("stock", wider, key="item", added={"price": 0.5, "place": "Rome"})
        assert table.records() == [("bolt", 1, 2.0, "Oslo"), ("cog", 5, 0.5, "Rome"), ("nut", 3, 0.5, "Rome")]


def test_a_table_has_its_columns_in_the_order_in_which_the_program_names_them_now(tmp_path: Path) -> None:
    """Rows without names are read in this order, too."""
    with session(tmp_path) as db:
        db.table("follows", {"src": ["ann"], "dst": ["bob"]})
        db.commit()
    for places in (2, 1):
        with session(tmp_path) as db:
            follows = db.table("follows", {"dst": str, "src": str}, key="src")
            follows.insert([(f"to {places}", f"from {places}")])
            db.commit()
            assert follows.columns == ("dst", "src")
            assert db.ask(lambda t: t.follows.select("src", "dst")).records()[1:] == [
                (f"from {each}", f"to {each}") for each in range(places, 3)
            ]
    with session(tmp_path) as db:
        assert db["follows"].records() == [("bob", "ann"), ("to 1", "from 1"), ("to 2", "from 2")]


def test_a_table_is_named_while_another_thread_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with session(tmp_path) as db:
        db.table("follows", {"src": ["ann"], "dst": ["bob"]})
        db.commit()
    with session(tmp_path) as db, ThreadPoolExecutor(1) as pool:
        read, is_read, is_named = LocalStore.get_manifest, threading.Event(), threading.Event()
        main = threading.current_thread()

        def slow(store: LocalStore) -> bytes | None:
            """Return what is on the disk, which the caller compares with what it knows, after a while."""
            data = read(store)
            if threading.current_thread() is not main and "follows" in repr(store):
                is_read.set()
                is_named.wait(0.3)
            return data

        db.table("other", {"x": [1]})
        monkeypatch.setattr(LocalStore, "get_manifest", slow)
        commit = pool.submit(db.commit)
        assert is_read.wait(20), "the commit does not compare the table with the disk"
        db.table("follows", {"dst": str, "src": str}, key="src")  # in another order, which is noted
        is_named.set()
        assert commit.result(20) == 2


def test_a_later_session_names_the_first_column_as_the_key(tmp_path: Path) -> None:
    columns = {"item": str, "pieces": int}
    with session(tmp_path) as db:
        db.table("stock", columns)
        db.commit()
    with session(tmp_path) as db:
        db.table("stock", columns, key="item").upsert(item="nut", pieces=3)
        db.commit()
    with session(tmp_path) as db:
        db.table("stock").upsert(item="nut", pieces=4)  # the key stays named
        db.commit()
        assert db["stock"].records() == [("nut", 4)]


def test_columns_are_added_to_a_table_that_has_had_no_rows(tmp_path: Path) -> None:
    with session(tmp_path) as db:
        db.table("stock", {"item": str})
        db.commit()
    for price in (1.5, 2.5):
        with session(tmp_path) as db:
            stock = db.table("stock", {"item": str, "price": float}, added={"price": 0.0})
            stock.insert(item="nut", price=price)
            db.commit()
    with session(tmp_path) as db:
        assert db["stock"].records() == [("nut", 1.5), ("nut", 2.5)]


def test_a_table_that_was_dropped_is_a_new_one(tmp_path: Path) -> None:
    with session(tmp_path) as db:
        db.table("numbers", {"x": [1]})
        db.commit()
        db.drop("numbers")
        db.table("numbers", {"name": ["a"], "y": [0.5]})
        db.commit()
    with session(tmp_path) as db:
        assert db["numbers"].records() == [("a", 0.5)]
        db.drop("numbers")
    with session(tmp_path) as db:
        with pytest.raises(KeyError, match="no table or view"):
            db["numbers"]
        db.table("other", {"x": [1]})
        db.view("numbers", lambda t: t.other, durable=True)
        assert db.commit() == 3
        assert shard(tmp_path, "numbers").read() == {(1,): 1}


def test_a_directory_of_another_program_is_refused(tmp_path: Path) -> None:
    assert Directory(str(tmp_path / "db")).store("words").compare_and_set(None, b"{}")
    with pytest.raises(ConfigError, match="has the durable collections of another program"):
        dd.Session(state=str(tmp_path / "db"))
    assert Directory(str(tmp_path / "db")).names() == ["words"]


def test_damage_is_an_error_when_the_session_is_opened(tmp_path: Path) -> None:
    with session(tmp_path) as db:
        db.table("numbers", {"x": [1]})
        db.commit()
    path = Path(shard(tmp_path, "numbers").paths()[0])
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(StateError, match=f"{path.name} is damaged"):
        dd.Session(state=str(tmp_path / "db"))


def test_what_is_not_durable_says_so(tmp_path: Path) -> None:
    with dd.Session() as db:
        db.table("numbers", {"x": [1]})
        with pytest.raises(SessionError, match=r"view 'copy' cannot be durable .* Session\(state=...\)"):
            db.view("copy", lambda t: t.numbers, durable=True)
    with session(tmp_path) as db:
        with pytest.raises(SessionError, match="'a b' cannot name a durable collection"):
            db.table("a b", {"x": [1]})
        with pytest.raises(SessionError, match=f"'{COMMITS}' cannot name a durable collection"):
            db.table(COMMITS, {"x": [1]})
        with pytest.raises(KeyError):
            db["a b"]


def test_what_is_kept_can_be_read_as_of_earlier_commits(tmp_path: Path) -> None:
    with session(tmp_path, keep=2) as db:
        table: Any = db.table("numbers", {"x": [0]})
        for x in range(1, 12):
            db.commit()
            table.insert(x=x)
        db.rollback()
    numbers = shard(tmp_path, "numbers")
    for time in (9, 10, 11):
        assert numbers.read(time) == {(x,): 1 for x in range(time)}


@pytest.mark.parametrize("name", ["time", "diff"])
def test_a_column_with_the_name_of_one_that_is_added_is_refused_before_anything_is_made(
    tmp_path: Path, name: str
) -> None:
    with session(tmp_path) as db:
        with pytest.raises(
            SessionError, match=rf"table 'visits' .*has a column {name!r}, a name that is reserved in durable"
        ):
            db.table("visits", {"page": str, name: int})
        db.table("visits", {"page": ["home"]})
        db.view("pages", lambda t: t.visits, durable=True)
        db.commit()
        with pytest.raises(
            SessionError, match=rf"view 'pages' .*has a column {name!r}, a name that is reserved in durable"
        ):
            db.view("pages", lambda t: t.visits.select(**{name: "page"}), durable=True)
        with pytest.raises(KeyError):
            db["pages"]
        db.table("visits").insert(page="help")
        assert db.commit() == 2
    with session(tmp_path) as db:
        with pytest.raises(SessionError, match=f"table 'visits' has a column {name!r}"):
            db.table("visits", {"page": str, name: int}, added={name: 0})
        assert db.table("visits").records() == [("help",), ("home",)]
    assert shard(tmp_path, "pages").read() == {("home",): 1}


def test_a_table_takes_the_name_of_a_view_of_an_earlier_session(tmp_path: Path) -> None:
    with session(tmp_path) as db:
        db.table("visits", {"page": ["home"]})
        db.view("pages", lambda t: t.visits, durable=True)
        db.commit()
    with session(tmp_path) as db:
        db.table("pages", {"number": [1, 2]}, key="number")
        db.commit()
        db.table("pages").upsert(number=3)
        db.commit()
    assert shard(tmp_path, "pages").read() == {(1,): 1, (2,): 1, (3,): 1}
    with session(tmp_path) as db:
        assert (list(db), db.table("pages").records()) == (["pages", "visits"], [(1,), (2,), (3,)])
        db.table("none", {"x": int})
        db.view("all", lambda t: t.pages, durable=True)
        db.commit()
    with session(tmp_path) as db:
        db.table("all", {"x": int})
        db.commit()
    with session(tmp_path) as db:
        assert set(db) == {"all", "none", "pages", "visits"}


def test_the_place_of_a_session_is_a_directory_by_any_kind_of_path(tmp_path: Path) -> None:
    with dd.Session(state=tmp_path / "db") as db:
        db.table("visits", {"page": ["home"]})
        db.commit()
    with session(tmp_path) as db:
        assert db.table("visits").records() == [("home",)]
    for place, message in (
        ("", "has no name"),
        (tmp_path / "db" / "visits", "is one durable collection: name the directory that has it"),
        (3, "is a directory, or Objects[(]...[)], not 3"),
        ("s3://bucket/db", r"s3://bucket/db is not a directory: give a path, or for a bucket Objects\("),
        (Path("file:///tmp/db"), "file:/tmp/db is not a directory"),
    ):
        with pytest.raises(ConfigError, match=message):
            dd.Session(state=place)  # type: ignore[arg-type]


@pytest.mark.parametrize("below", ["", "shop"])
def test_a_symbolic_link_to_nothing_is_no_place_of_a_session(tmp_path: Path, below: str) -> None:
    link = tmp_path / "disk"
    link.symlink_to(tmp_path / "nowhere")
    message = f"{link} is a symbolic link to {tmp_path / 'nowhere'}, which does not exist: make that directory"
    with pytest.raises(ConfigError, match=message):
        dd.Session(state=link / below)
    (tmp_path / "nowhere").mkdir()
    dd.Session(state=link / below).close()


def test_an_interrupt_without_a_text_that_has_ended_the_storage_is_named_by_its_class(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> bool:
        raise KeyboardInterrupt

    with session(tmp_path) as db:
        visits = db.table("visits", {"page": ["home"]})
        with monkeypatch.context() as patched:
            patched.setattr(LocalStore, "compare_and_set", interrupted)
            with pytest.raises(KeyboardInterrupt):
                db.commit()
        visits.insert(page="help")
        with pytest.raises(SessionError, match=r"can no longer make anything durable \(KeyboardInterrupt\): close it"):
            db.commit()
        db.rollback()


def test_a_value_of_a_column_that_is_not_added_is_refused(tmp_path: Path) -> None:
    with session(tmp_path) as db:
        db.table("visits", {"page": ["home"]})
        db.commit()
    with session(tmp_path) as db:
        with pytest.raises(SessionError, match="added= has values of 'cnt', but table 'visits' has no such column"):
            db.table("visits", {"page": str, "count": int}, added={"count": 0, "cnt": 0})
        assert db.table("visits", {"page": str, "count": int}, added={"count": 0}).records() == [("home", 0)]


@pytest.mark.parametrize("writes", [1, 2, 3])
def test_an_interrupt_waits_until_a_commit_is_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    put, left = LocalStore.compare_and_set, [0]

    def interrupted(store: LocalStore, expected: bytes | None, data: bytes) -> bool:
        left[0] -= 1
        if left[0] == 0:
            signal.raise_signal(signal.SIGINT)
        return put(store, expected, data)

    monkeypatch.setattr(LocalStore, "compare_and_set", interrupted)
    with session(tmp_path) as db:
        visits = db.table("visits", {"page": ["home"]})
        pages = db.view("pages", lambda t: t.visits, durable=True)
        db.commit()
        visits.insert(page="help")
        left[0] = writes
        with pytest.raises(KeyboardInterrupt):
            db.commit()
        visits.insert(page="news")
        assert db.commit() == 3
        assert pages.records() == visits.records() == [("help",), ("home",), ("news",)]
    with session(tmp_path) as db:
        assert db.table("visits").records() == [("help",), ("home",), ("news",)]
    assert shard(tmp_path, "pages").read() == {("help",): 1, ("home",): 1, ("news",): 1}


def test_a_type_that_is_not_the_durable_one_is_refused(tmp_path: Path) -> None:
    with session(tmp_path) as db:
        db.table("t", {"k": int, "v": str, "w": float})
        db.commit()
    for stated, name in ((str | None, "text?"), (float, "float64"), (int, "int64")):
        with session(tmp_path) as db:
            text = f"column 'v' of table 't' is durable with the type text, not {name}: "
            with pytest.raises(SessionError, match=re.escape(text)):
                db.table("t", {"k": int, "v": stated, "w": float})
            assert db.table("t", {"k": int, "v": str, "w": float}).records() == []
            db.commit()
