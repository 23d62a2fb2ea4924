"""A followed file that is appended to, overwritten, replaced and taken away: each record that was there counts once."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import given, settings, strategies as st

from differential import Session
from differential.session.sources import csv, files, json_lines
from tests.thorough import examples

STEPS = st.lists(
    st.tuples(st.sampled_from(["append", "append", "half", "overwrite", "replace", "away", "open"]), st.integers(0, 4)),
    max_size=7,
)


class File:
    """The file, and the rows that a source has read of it when it has read all of it."""

    def __init__(self, directory: str, form: str) -> None:
        self.path = Path(directory, f"log.{form}")
        self.read: Counter[int] = Counter()
        self._head = "x,y\n" if form == "csv" else ""
        self._form = form
        self._next = 0
        self._half = ""
        self.path.write_text(self._head)

    def append(self, count: int, path: Path | None = None) -> None:
        """Write rows that no file has had."""
        with (path or self.path).open("a") as file:
            file.write(self._half)
            self._half = ""
            for _ in range(count):
                file.write(self._line())
                self.read[self._next] += 1
                self._next += 1

    def half(self, length: int) -> None:
        """Write a part of a row, whose rest follows with the next rows."""
        if not self._half:
            line = self._line()
            with self.path.open("a") as file:
                file.write(line[: length + 1])
            self._half = line[length + 1 :]
            self.read[self._next] += 1
            self._next += 1

    def expected(self) -> Counter[tuple[int, int]]:
        """Return the rows whose lines have an end."""
        found = Counter({(x, -x): count for x, count in self.read.items()})
        return found - Counter([(self._next - 1, 1 - self._next)]) if self._half else found

    def overwrite(self, count: int) -> None:
        """Truncate the file, and write other rows into it. A part of a row is lost."""
        if self._half:
            del self.read[self._next - 1]
            self._half = ""
        self.path.write_text(self._head)
        self.append(count)

    def replace(self, count: int) -> None:
        """Put another file in the place of this one."""
        self.append(0)
        other = self.path.with_suffix(".next")
        other.write_text(self._head)
        self.append(count, other)
        os.replace(other, self.path)

    def _line(self) -> str:
        x = self._next
        return f"{x},{-x}\n" if self._form == "csv" else f'{{"y": {-x}, "x": {x}}}\n'


@given(STEPS, st.sampled_from(["csv", "jsonl"]))
@settings(max_examples=examples(20), deadline=None)
def test_each_record_of_files_at_one_path_counts_once(steps: list[tuple[str, int]], form: str) -> None:
    with tempfile.TemporaryDirectory() as directory, patch.object(files, "QUIET", 0.0):
        file = File(directory, form)
        db, table = opened(directory, file.path)
        for step, count in steps:
            if step in ("away", "open"):
                away = file.path.rename(file.path.with_suffix(".away")) if step == "away" else file.path
                db.close()
                db, table = opened(directory, file.path)
                away.rename(file.path)
            else:
                getattr(file, step)(count)
            db.commit()
            assert Counter(table.records()) == file.expected()
        db.close()


def opened(directory: str, path: Path) -> tuple[Session, Any]:
    """Open the session, which reads what there is now."""
    db = Session(state=os.path.join(directory, "db"))
    table = db.table("rows", {"x": int, "y": int})
    table.read_from((csv if path.suffix == ".csv" else json_lines)(path, follow=True, replaced="begin", name="log"))
    db.commit()
    return db, table
