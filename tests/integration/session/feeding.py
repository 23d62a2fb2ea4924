"""A program that follows a file and a directory, to be killed: `python feeding.py DIRECTORY`."""

from __future__ import annotations

import sys
from pathlib import Path

from differential import Session
from differential.session.sources import csv, json_lines

directory = Path(sys.argv[1])
with Session(state=str(directory / "db")) as db:
    numbers = db.table("numbers", {"n": int, "at": str}, key="n")
    numbers.read_from(csv(directory / "log.csv", follow=True, name="log"), on_error=db.rejects())
    numbers.read_from(json_lines(directory / "in", follow=True, name="in"), on_error=db.rejects())
    db.view("total", lambda t: t.numbers.map(lambda n, at: n).named("n"), durable=True)
    print("begins", flush=True)
    db.run(until=(directory / "end").exists)
    db.commit()
