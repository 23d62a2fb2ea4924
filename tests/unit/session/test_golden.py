"""A session that an earlier version wrote goes on: `tests/data/session-format-N`, written by `golden.py`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import differential as dd
from differential.durable.command import show
from differential.session.sinks import csv as to_csv
from differential.session.sources import csv
from tests.unit.session.golden import ROWS, write

DATA = Path(__file__).parents[2] / "data"
FORMATS = sorted(path.name for path in DATA.glob("session-format-*"))


@pytest.fixture(params=[*FORMATS, "now"])
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a directory of which the session is `db`, which has made four commits."""
    if request.param == "now":
        write(tmp_path / "now")
    else:
        shutil.copytree(DATA / request.param, tmp_path / "now")
    return tmp_path / "now"


def test_there_is_a_golden_session_for_the_present_format() -> None:
    assert FORMATS == ["session-format-2"]


def test_a_session_goes_on_with_tables_views_sources_and_sinks(golden: Path) -> None:
    (golden / "spent.csv.lock").unlink(missing_ok=True)
    with (golden / "orders.csv").open("a") as file:
        file.write("4,bob,1\n")
    with dd.Session(state=golden / "db") as db:
        assert sorted(db) == ["empty", "orders", "stock"]
        stock: Any = db.table("stock", ROWS, key="item")
        item, day, price, tags = (values[0] for values in ROWS.values())
        assert stock.records() == [(item, day, price, tuple(tags))]
        empty: Any = db.table("empty", {"place": str, "pieces": int | None}, key="pieces")
        orders = db.table("orders", {"id": int, "customer": str, "total": int}, key="id")
        orders.read_from(csv(golden / "orders.csv", follow=True, name="orders"))
        spent = db.view("spent", lambda t: t.orders.group_by("customer").sum("total"), durable=True)
        spent.write_to(to_csv(golden / "spent.csv", name="spent"))
        empty.insert(place="Rome", pieces=None)
        assert db.commit() == 5
        assert orders.records() == [(1, "ann", 30), (2, "bob", 5), (3, "ann", 20), (4, "bob", 1)]
        assert (spent.records(), empty.records()) == ([("ann", 50), ("bob", 6)], [("Rome", None)])
    lines = (golden / "spent.csv").read_text().splitlines()
    assert lines[:3] == ["customer,total,time,diff", "ann,30,1,1", "bob,5,1,1"]
    assert sorted(lines[3:]) == ["ann,30,3,-1", "ann,50,3,1", "bob,5,5,-1", "bob,6,5,1"]
    assert show(str(golden / "db"), verify=True) == 0
