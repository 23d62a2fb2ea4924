"""A program that follows a file and a directory, to be killed: `python feeding.py DIRECTORY [PROCESSES]`."""

from __future__ import annotations

import sys
from pathlib import Path

from differential import Session
from differential.session.sources import csv, json_lines


def main(directory: Path, processes: int) -> None:
    with Session(processes, processes=processes > 1, state=str(directory / "db")) as db:
        feed(db, directory)


def feed(db: Session, directory: Path) -> None:
    numbers = db.table("numbers", {"n": int, "at": str}, key="n")
    numbers.read_from(csv(directory / "log.csv", follow=True, name="log"), on_error=db.rejects())
    numbers.read_from(json_lines(directory / "in", follow=True, name="in"), on_error=db.rejects())
    db.view("total", lambda t: t.numbers.map(lambda n, at: n).named("n"), durable=True)
    print("begins", flush=True)
    db.run(until=(directory / "end").exists)
    db.commit()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1)
