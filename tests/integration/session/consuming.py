"""A program that reads a topic, to be killed: `python consuming.py SERVERS DIRECTORY`."""

from __future__ import annotations

import sys
from pathlib import Path

from differential import Session
from differential.session.sources.kafka import kafka

servers, directory = sys.argv[1], Path(sys.argv[2])
with Session(state=str(directory / "db")) as db:
    numbers = db.table("numbers", {"n": int, "at": int}, key="n")
    numbers.read_from(kafka(servers, "numbers", key="n", config={"log_level": 0}), on_error=db.rejects())
    db.view("total", lambda t: t.numbers.map(lambda n, at: n).named("n"), durable=True)
    print("begins", flush=True)
    db.run(until=(directory / "end").exists)
    db.commit()
