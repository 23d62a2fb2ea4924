"""Write the golden session: `python -m tests.unit.session.golden DIR`, for each new format into a new directory."""

from __future__ import annotations

import datetime as dt
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import differential as dd
from differential.session.sinks import csv as to_csv
from differential.session.sources import csv

LINES = ["1,ann,30", "2,bob,5", "3,ann,20"]
ROWS: dict[str, list[Any]] = {
    "item": ["nut", "cog"],
    "day": [dt.date(2026, 3, 1), None],
    "price": [Decimal("9.99"), None],
    "tags": [["small", None], []],
}


def write(directory: Path) -> None:
    """Write a session with tables of all sorts, durable views, and what is noted of sources and sinks.

    Beside it are a file that a table follows, and one that a view is written to.
    """
    log = directory / "orders.csv"
    directory.mkdir(parents=True)
    log.write_text("\n".join(["id,customer,total", *LINES[:2], ""]))
    for part in range(2):
        with dd.Session(state=directory / "db", keep=None) as db:
            stock = db.table("stock", ROWS, key="item")
            db.table("empty", {"place": str, "pieces": int | None}, key="pieces")
            orders = db.table("orders", {"id": int, "customer": str, "total": int}, key="id")
            orders.read_from(csv(log, follow=True, name="orders"))
            spent = db.view("spent", lambda t: t.orders.group_by("customer").sum("total"), durable=True)
            spent.write_to(to_csv(directory / "spent.csv", name="spent"))
            db.table("dropped", {"x": [1]})
            db.commit()
            stock.delete(item="cog")
            db.commit()
            db.drop("dropped")
            if not part:
                with log.open("a") as file:
                    file.write(f"{LINES[2]}\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
