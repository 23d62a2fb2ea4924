"""A durable session that is served, to be killed: `python serving.py DIRECTORY`. It prints its address."""

from __future__ import annotations

import sys
from pathlib import Path
from threading import Event

from differential import Session

if __name__ == "__main__":
    with Session(state=str(Path(sys.argv[1]) / "db")) as db:
        db.table("orders", {"id": int, "total": int}, key="id")
        print(db.serve(token="a token of the test").url, flush=True)
        Event().wait()
