"""Files of a directory that is followed and that are still written to: what is lost stops the source."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from differential import Session
from differential.session import Table
from differential.session.sources import Source, csv, directory, files, json_lines, tables
from differential.session.sources.source import Position, Target
from timely.errors import SessionError

GROWN = r"had \d+ bytes when it was read, and now has \d+: write a file elsewhere and move it there once it is complete"


def begin(tmp_path: Path) -> tuple[Session, Table]:
    db = Session(state=tmp_path / "db", progress=False)
    table = db.table("t", {"x": int})
    table.read_from(csv(tmp_path / "in", follow=True, name="in"))
    return db, table


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("first", ["", "x\n", "x\n1\n"], ids=["empty", "a header alone", "a row"])
def test_a_file_that_has_grown_since_it_was_read_stops_the_source(tmp_path: Path, first: str, restart: bool) -> None:
    directory = tmp_path / "in"
    directory.mkdir()
    rows = [(1,)] if first.endswith("1\n") else []
    (directory / "a.csv").write_text(first)
    (directory / "b.csv").write_text("x\n5\n")
    db, table = begin(tmp_path)
    db.commit()
    if restart:
        db.close()
        db, table = begin(tmp_path)
    db.commit()
    with (directory / "a.csv").open("a") as file:
        file.write("2\n" if first else "x\n2\n")
    with pytest.raises(SessionError, match=rf"a\.csv {GROWN}"):
        db.commit()
    assert table.records() == [*rows, (5,)]
    db.close()
    (directory / "a.csv").rename(tmp_path / "away")
    (directory / "c.csv").write_text("x\n6\n")
    db, table = begin(tmp_path)
    db.commit()
    assert table.records() == [*rows, (5,), (6,)]
    db.close()


@pytest.mark.parametrize("form", ["csv.gz", "npy"])
def test_a_file_of_another_form_that_has_grown_stops_the_source(tmp_path: Path, form: str) -> None:
    path, source = tmp_path / f"a.{form}", csv if form == "csv.gz" else tables
    if form == "npy":
        np.save(path, np.array([1]))
    else:
        path.write_bytes(gzip.compress(b"x\n1\n"))
    with Session() as db:
        table = db.table("t", {"x": int})
        table.read_from(source(tmp_path, follow=True))
        db.commit()
        db.commit()
        with path.open("ab") as file:
            file.write(b"more")
        with pytest.raises(SessionError, match=GROWN):
            db.commit()
        assert table.records() == [(1,)]


def test_positions_have_the_sizes_of_the_last_files_and_may_lack_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory, "SIZES", 2)

    def read(source: Source, position: Position | None) -> dict[str, Any]:
        reader = source.open(Target("t", ("x",), ("int64",), 1), position)
        while (batch := reader.poll()) is not None:
            position = batch.position
        reader.close()
        found: dict[str, Any] = json.loads(str(position))
        found["done"] = [os.path.basename(each) for each in found["done"]]
        return found | {"position": position}

    source = json_lines(tmp_path, follow=True)
    for name in "abcd":
        (tmp_path / name).write_text('{"x": 1}\n')
    found = read(source, None)
    assert (found["done"], found["sizes"]) == (["a", "b", "c"], [9, 9])
    former = json.loads(found["position"])
    del former["sizes"]  # as an earlier version of this library has written it
    (tmp_path / "e").write_text('{"x": 10}\n')
    (tmp_path / "f").write_text('{"x": 100}\n')
    found = read(source, json.dumps(former))
    assert (found["done"], found["sizes"]) == (["a", "b", "c", "d", "e"], [9, 10])
    (tmp_path / "d").unlink()
    (tmp_path / "g").write_text('{"x": 1}\n')
    found = read(source, found["position"])
    assert (found["done"], found["sizes"]) == (["a", "b", "c", "e", "f"], [10, 11])


def test_a_last_line_without_an_end_counts_once_its_file_does_not_grow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "QUIET", 60.0)
    with Session() as db:
        table = db.table("t", {"x": int})
        feed = table.read_from(csv(tmp_path, follow=True))
        (tmp_path / "a.csv").write_text("x\n1\n2")
        (tmp_path / "b.csv").write_text("x\n7\n")
        db.commit()
        assert table.records() == [(1,)]
        with (tmp_path / "a.csv").open("a") as file:
            file.write("0\n3")
        db.commit()
        assert table.records() == [(1,), (20,)]
        monkeypatch.setattr(files, "QUIET", 0.0)
        db.commit()
        assert (table.records(), feed.error) == ([(1,), (3,), (7,), (20,)], None)
