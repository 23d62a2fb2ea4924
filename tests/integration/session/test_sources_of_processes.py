"""Files read by a session of several processes are read as by one with a worker, commit by commit."""

from __future__ import annotations

import json
import os
import signal
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from differential import Session
from differential.session.sources import csv, json_lines
from tests.integration.session.test_processes import members, wait_until
from timely.errors import SessionError

LINES = st.lists(st.tuples(st.integers(-3, 9) | st.just("bad"), st.integers(0, 3)), max_size=8)
STEPS = st.lists(st.tuples(LINES, LINES), min_size=1, max_size=4)
numbers = count()


@pytest.fixture(scope="module")
def sessions() -> Iterator[tuple[Session, Session]]:
    with Session() as one, Session(workers=2, processes=True) as several:
        yield one, several


def begun(db: Session, name: str, directory: Path, upsert: bool) -> list[Any]:
    """Return a table that reads files, what it rejects, and a view of it."""
    table = db.table(name, {"key": int, "value": int}, key="key")
    rejects = db.rejects(f"{name} rejects")
    table.read_from(csv(directory / "log.csv", follow=True), on_error=rejects, upsert=upsert)
    table.read_from(json_lines(directory / "in", follow=True), on_error=rejects, upsert=upsert)
    sums = db.view(f"{name} sums", lambda t: getattr(t, name).group_by("value").sum("key"))
    return [table, rejects, sums]


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, upsert=st.booleans())
def test_each_commit_has_the_same_rows(sessions: tuple[Session, Session], steps: list[Any], upsert: bool) -> None:
    name = f"t{next(numbers)}"
    with tempfile.TemporaryDirectory() as given:
        directory = Path(given)
        (directory / "in").mkdir()
        (directory / "log.csv").write_text("key,value\n")
        found = [begun(db, name, directory, upsert) for db in sessions]
        for number, (logged, written) in enumerate(steps):
            with (directory / "log.csv").open("a") as file:
                file.writelines(f"{key},{value}\n" for key, value in logged)
            lines = [json.dumps({"key": key, "value": value}) + "\n" for key, value in written]
            (directory / "new.tmp").write_text("".join(lines))
            (directory / "new.tmp").rename(directory / "in" / f"{number}.jsonl")
            for db in sessions:
                db.commit()
            one, several = ([readable.records() for readable in each] for each in found)
            assert one == several
        for db in sessions:
            for each in (f"{name} sums", name, f"{name} rejects"):
                db.drop(each)


@pytest.mark.slow
def test_a_process_that_is_killed_ends_the_session_and_no_record_is_lost_or_counted_twice(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("key\n")
    for number in range(3):
        with Session(workers=2, processes=True, state=str(tmp_path / "db")) as db:
            table = db.table("numbers", {"key": int})
            table.read_from(csv(log, follow=True, name="log"))
            with log.open("a") as file:
                file.writelines(f"{number * 100 + each}\n" for each in range(100))
            db.run(until=lambda number=number, table=table: len(table) == 100 * (number + 1))  # type: ignore[misc]
            os.kill(members(db)[0], signal.SIGKILL)
            wait_until(lambda db=db: db.is_closed, "the session ends")  # type: ignore[misc]
            with log.open("a") as file:
                file.write("")
            with pytest.raises(SessionError, match="ended"):
                db.commit()
    with Session(state=str(tmp_path / "db")) as db:
        assert db.table("numbers", {"key": int}).records() == [(key,) for key in range(300)]
