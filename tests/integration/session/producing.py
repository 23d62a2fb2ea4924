"""A program that writes a view to a topic, to be killed: `python producing.py SERVERS DIRECTORY`."""

from __future__ import annotations

import sys
from pathlib import Path

from differential import Session
from differential.session.sinks.kafka import kafka
from differential.session.sources import json_lines

servers, directory = sys.argv[1], Path(sys.argv[2])
with Session(state=str(directory / "db")) as db:
    numbers = db.table("numbers", {"group": str, "n": int}, key="group")
    numbers.read_from(json_lines(directory / "numbers.jsonl", follow=True, name="numbers"))
    sums = db.view("sums", lambda t: t.numbers.group_by("group").sum("n").named("group", "sum"), durable=True)
    sums.write_to(kafka(servers, "sums", key="group", config={"log_level": 0}), patience=30)
    sums.write_to(kafka(servers, "changes-of-sums", config={"log_level": 0}, name="changes-of-sums"), patience=30)
    print("begins", flush=True)
    db.run(until=(directory / "end").exists)
    db.commit()
