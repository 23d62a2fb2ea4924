"""Columns are added to a durable table before the program uses it, or not at all."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import differential as dd
from differential.session.sources import csv
from timely.errors import SessionError

OLD = {"item": str, "seen": int}
WIDER = {**OLD, "price": float}
LINE = re.escape(__file__) + r":\d+"

Use = Callable[[dd.Session, Path], object]


def deliveries(path: Path) -> Any:
    path = path / "deliveries.csv"
    path.write_text("item,seen,price\nbolt,9,0.25\n")
    return csv(str(path), name="deliveries")


def delete_late(db: dd.Session, path: Path) -> None:
    db.table("stock_late").delete(item="late", seen=1, change="insert")


def rejects(db: dd.Session, path: Path) -> object:
    return db.table("other", {"x": int}).read_from(deliveries(path), on_error=db.table("stock"))


def closed_source(db: dd.Session, path: Path) -> None:
    db.table("stock").read_from(deliveries(path)).close()


USES: dict[str, tuple[Use, str]] = {
    "a view": (lambda db, path: db.view("all", lambda t: t.stock), f"view 'all' .at {LINE}. reads table 'stock'"),
    "a view of late changes": (
        lambda db, path: db.view("missed", lambda t: t.stock_late),
        f"view 'missed' .at {LINE}. reads table 'stock_late'",
    ),
    "an insert": (
        lambda db, path: db.table("stock").insert(item="cog", seen=12),
        f"insert .at {LINE}. of table 'stock' is not committed",
    ),
    "a deleted late change": (delete_late, f"delete .at {LINE}. of table 'stock_late' is not committed"),
    "a source": (
        lambda db, path: db.table("stock").read_from(deliveries(path)),
        f"source 'deliveries' of table 'stock' .at {LINE}. fills table 'stock'",
    ),
    "event times": (
        lambda db, path: db.table("stock").event_time("seen", lateness=0),
        f"table 'stock' has event times .at {LINE}.",
    ),
    "changes": (lambda db, path: db.table("stock").changes(), f"changes.. .at {LINE}. follows table 'stock'"),
    "a watch": (lambda db, path: db.table("stock").watch(print), f"watch.. .at {LINE}. follows table 'stock'"),
}


@pytest.fixture
def stored(tmp_path: Path) -> str:
    """Return the directory of a session that has a table with event times, and a late change."""
    state = str(tmp_path / "db")
    with dd.Session(state=state) as db:
        stock = db.table("stock", OLD).event_time("seen", lateness=0)
        stock.insert(item="nut", seen=10)
        db.commit()
        stock.insert(item="late", seen=1)
        db.commit()
    return state


@pytest.mark.parametrize("use", USES)
def test_a_table_that_the_program_uses_already_is_given_no_columns_and_nothing_is_lost(
    tmp_path: Path, stored: str, use: str
) -> None:
    made, expected = USES[use]
    with dd.Session(state=stored) as db:
        kept = made(db, tmp_path)
        for _ in range(2):
            with pytest.raises(SessionError, match=expected) as refused:
                db.table("stock", WIDER, added={"price": 0.5})
            assert "db.table('stock', ..., added=...) first" in str(refused.value)
        commit = db.commit()
        db.table("stock").insert(item="gear", seen=11)
        assert db.commit() == commit + 1
        del kept
    with dd.Session(state=stored) as db:
        rows = db.table("stock", OLD).records()
        assert ("gear", 11) in rows
        assert ("cog", 12) in rows or use != "an insert"
    with dd.Session(state=stored) as db:
        table = db.table("stock", WIDER, added={"price": 0.5})
        assert table.records() == [(*row, 0.5) for row in rows]


def test_what_has_ended_does_not_keep_a_table_from_being_given_columns(tmp_path: Path, stored: str) -> None:
    with dd.Session(state=stored) as db:
        closed_source(db, tmp_path)
        db.table("stock").changes().close()
        db.table("stock").watch(print).close()
        db.table("stock").insert(item="cog", seen=12)
        db.rollback()
        assert db.table("stock", WIDER, added={"price": 0.5}).records() == [("nut", 10, 0.5)]


def test_a_table_of_rejects_is_given_no_columns_while_it_is_filled(tmp_path: Path) -> None:
    state = str(tmp_path / "db")
    with dd.Session(state=state) as db:
        db.rejects("bad")
        db.commit()
    wider = {"source": str, "place": str, "line": int, "record": str, "error": str, "seen": int}
    with dd.Session(state=state) as db:
        db.table("other", {"x": int}).read_from(deliveries(tmp_path), on_error=db.table("bad"))
        with pytest.raises(SessionError, match=f"source 'deliveries' of table 'other' .at {LINE}. fills table 'bad'"):
            db.table("bad", wider, added={"seen": 0})


def test_a_value_that_a_column_cannot_have_changes_nothing(stored: str) -> None:
    with dd.Session(state=stored) as db:
        with pytest.raises(SessionError, match=f"added= of table 'stock' .at {LINE}. has no value for column 'price'"):
            db.table("stock", WIDER, added={"price": "dear"})
        assert db.table("stock", WIDER, added={"price": 0.5}).records() == [("nut", 10, 0.5)]
