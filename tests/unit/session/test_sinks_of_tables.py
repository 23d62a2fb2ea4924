"""A table is written to sinks as a view is: the rows as of a commit, then what each commit changes, once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from differential.session import Session
from differential.session.sinks import csv
from timely.errors import SessionError, StoreError

COLUMNS: dict[str, Any] = {"item": str, "price": int}


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


@pytest.mark.parametrize("is_durable", [False, True])
def test_a_sink_has_the_columns_of_a_table_in_their_order(tmp_path: Path, is_durable: bool) -> None:
    """The index of a table with a key has another order."""
    with Session(state=tmp_path / "db" if is_durable else None) as db:
        stock = db.table("stock", COLUMNS, key="price")
        stock.write_to(csv(tmp_path / "early.csv"))
        stock.insert(item="nut", price=3)
        db.commit()
        stock.write_to(csv(tmp_path / "late.csv"))
        stock.upsert(item="cog", price=3)
        db.commit()
        assert db.status().sinks.records() == [
            (str(tmp_path / f"{name}.csv"), "stock", 2, 3, "is up to date") for name in ("early", "late")
        ]
    assert lines(tmp_path / "early.csv") == ["item,price,time,diff", "nut,3,1,1", "cog,3,2,1", "nut,3,2,-1"]
    assert lines(tmp_path / "late.csv") == lines(tmp_path / "early.csv")


def test_a_commit_that_was_not_decided_does_not_reach_the_sink(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table appends the rows of a commit before it is decided, and the next session makes another of its number."""
    for item in "nut", "cog", "bolt":
        with Session(state=tmp_path / "db") as db:
            stock = db.table("stock", COLUMNS)
            stock.write_to(csv(tmp_path / "stock.csv"))
            stock.insert(item=item, price=1)
            if item != "cog":
                db.commit()
                continue
            assert db._catalog.storage is not None

            def fail(*values: object) -> None:
                raise StoreError("no room")

            monkeypatch.setattr(db._catalog.storage._commits, "append", fail)
            with pytest.raises(StoreError, match="no room"):
                db.commit()
    assert lines(tmp_path / "stock.csv") == ["item,price,time,diff", "nut,1,1,1", "bolt,1,2,1"]


def test_a_table_that_gets_a_column_does_not_continue_its_sink(tmp_path: Path) -> None:
    wider, sink = COLUMNS | {"size": int}, csv(tmp_path / "stock.csv")
    with Session(state=tmp_path / "db") as db:
        db.table("stock", COLUMNS).insert(item="nut", price=3)
        db.commit()
    with Session(state=tmp_path / "db") as db:
        db["stock"].write_to(sink)
        with pytest.raises(SessionError, match=r"column 'size' once .*: sink '.*csv' of table 'stock' .* is attached"):
            db.table("stock", wider, added={"size": 5})
    with Session(state=tmp_path / "db") as db:
        stock = db.table("stock", wider, added={"size": 5})
        with pytest.raises(SessionError, match="what another view or session has written"):
            stock.write_to(sink)
        stock.write_to(sink, existing="replace")
    assert lines(tmp_path / "stock.csv") == ["item,price,size,time,diff", "nut,3,5,1,1"]


def test_a_table_with_its_columns_in_another_order_does_not_continue_its_sink(tmp_path: Path) -> None:
    sink, turned = csv(tmp_path / "stock.csv"), dict(reversed(COLUMNS.items()))
    with Session(state=tmp_path / "db") as db:
        db.table("stock", COLUMNS, key="item").write_to(sink)
        db.commit()
    with Session(state=tmp_path / "db") as db:
        db["stock"].write_to(sink)
        with pytest.raises(SessionError, match=r"another order of columns: sink .* is attached; call db.table\(\) fir"):
            db.table("stock", turned, key="item")
    with Session(state=tmp_path / "db") as db:
        stock = db.table("stock", turned, key="item")
        with pytest.raises(SessionError, match="what another view or session has written"):
            stock.write_to(sink)


@pytest.mark.parametrize("is_durable", [False, True])
def test_a_sink_of_a_table_that_was_dropped_ends_and_does_not_continue_with_another(
    tmp_path: Path, is_durable: bool
) -> None:
    sink = csv(tmp_path / "stock.csv")
    with Session(state=tmp_path / "db" if is_durable else None, progress=False) as db:
        stock = db.table("stock", {"item": ["nut"]})
        delivery = stock.write_to(sink)
        db.commit()
        db.drop("stock")
        assert delivery.is_over
        again = db.table("stock", {"item": ["cog"]})
        db.commit()
        with pytest.raises(SessionError, match="what another view or session has written"):
            again.write_to(sink)
        again.write_to(sink, existing="replace")
    assert lines(tmp_path / "stock.csv") == ["item,time,diff", "cog,2,1"]


def test_the_late_changes_and_the_watermark_of_a_table_are_written_to_sinks(tmp_path: Path) -> None:
    for minutes in (64,), (80, 30):
        with Session(state=tmp_path / "db") as db:
            visits = db.table("visits", {"minute": int}).event_time("minute", lateness=5)
            for name in "visits_late", "visits_watermark":
                db[name].write_to(csv(tmp_path / f"{name}.csv", name=name))
            for minute in minutes:
                visits.insert(minute=minute)
                db.commit()
    assert lines(tmp_path / "visits_late.csv") == ["minute,change,time,diff", "30,insert,3,1"]
    assert lines(tmp_path / "visits_watermark.csv") == ["watermark,time,diff", "59,1,1", "59,2,-1", "75,2,1"]


def test_a_table_that_appends_nothing_more_keeps_what_its_sink_has(tmp_path: Path) -> None:
    for run in range(3):
        with Session(state=tmp_path / "db") as db:
            stock, other = db.table("stock", {"item": str}), db.table("other", {"x": int})
            delivery = stock.write_to(csv(tmp_path / "stock.csv"))
            if not run:
                stock.insert(item="nut")
            for _ in range(2):
                other.insert(x=1)
                db.commit()
            assert (delivery.commit, delivery.rows) == (2 * run + 2, int(not run))
    assert lines(tmp_path / "stock.csv") == ["item,time,diff", "nut,1,1"]


def test_a_sink_of_a_table_that_had_no_commit_begins_when_it_is_attached_again(tmp_path: Path) -> None:
    path = tmp_path / "early.csv"
    for session in range(3):
        with Session(state=tmp_path / "db") as db:
            stock = db.table("stock", COLUMNS, key="price")
            if session == 0:
                stock.write_to(csv(path))
            elif session == 1:
                for price in (1, 2):
                    stock.insert(item="nut", price=price)
                    db.commit()
            else:
                stock.write_to(csv(path))
    assert lines(path) == ["item,price,time,diff", "nut,1,1,1", "nut,2,2,1"]
