"""A program that keeps files of a view and a table in all forms, to be killed: `python delivering.py DIRECTORY`."""

from __future__ import annotations

import sys
from pathlib import Path

from differential import Session
from differential.session.sinks import arrow, csv, json_lines, npy, parquet
from differential.session.sources import json_lines as lines_of

directory = Path(sys.argv[1])
with Session(state=str(directory / "db")) as db:
    numbers = db.table("numbers", {"n": int, "group": int}, key="n")
    numbers.read_from(lines_of(directory / "in", follow=True, name="in"))
    sums = db.view("sums", lambda t: t.numbers.group_by("group").sum("n"), durable=True)
    sums.write_to(csv(directory / "sums.csv"))
    sums.write_to(json_lines(directory / "sums.jsonl"))
    for sink in parquet, arrow, npy:
        sums.write_to(sink(directory / sink.__name__))
    numbers.write_to(parquet(directory / "numbers"))
    print("begins", flush=True)
    db.run(until=(directory / "end").exists)
    db.commit()
