"""Where the changes of a session's views go: see `differential.session.sinks.sink`.

>>> import tempfile
>>> from pathlib import Path
>>> from differential.session import Session
>>> with tempfile.TemporaryDirectory() as directory, Session() as db:
...     orders = db.table("orders", {"customer": ["ann", "bob"], "total": [30, 5]})
...     spent = db.view("spent", lambda t: t.orders.group_by("customer").sum("total"))
...     delivery = spent.write_to(json_lines(f"{directory}/spent.jsonl"))
...     number = db.commit()
...     print(Path(directory, "spent.jsonl").read_text(), end="")
{"customer": "ann", "total": 30, "time": 1, "diff": 1}
{"customer": "bob", "total": 5, "time": 1, "diff": 1}
"""

from differential.session.sinks.delivery import Delivery
from differential.session.sinks.directory import arrow, npy, parquet
from differential.session.sinks.files import csv, json_lines
from differential.session.sinks.sink import Mark, Outlet, Sink, SinkWriter

__all__ = ["Delivery", "Mark", "Outlet", "Sink", "SinkWriter", "arrow", "csv", "json_lines", "npy", "parquet"]
