"""Where the rows of a session's tables come from: see `differential.session.sources.source`.

>>> import tempfile
>>> from pathlib import Path
>>> from differential.session import Session
>>> with tempfile.TemporaryDirectory() as directory, Session() as db:
...     for day, line in enumerate(['{"item": "nut"}', '{"item": 3}']):
...         number = Path(directory, f"{day}.jsonl").write_text(line)
...     stock = db.table("stock", {"item": str})
...     feed = stock.read_from(json_lines(directory), on_error=db.rejects("bad"))
...     number = db.run()
...     stock.records(), db["bad"].to_arrow()["error"].to_pylist()
([('nut',)], ["column 'item' (text) cannot be 3"])
"""

from differential.session.sources.arrow_socket import arrow_socket
from differential.session.sources.feed import Feed
from differential.session.sources.files import csv, json_lines, standard_input, tables
from differential.session.sources.remote import server_sent_events, websocket
from differential.session.sources.source import Reader, Rejected, Source, SourceBatch, Target

__all__ = [
    "Feed",
    "Reader",
    "Rejected",
    "Source",
    "SourceBatch",
    "Target",
    "arrow_socket",
    "csv",
    "json_lines",
    "server_sent_events",
    "standard_input",
    "tables",
    "websocket",
]
