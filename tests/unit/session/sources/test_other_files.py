"""Files that are not the ones that were read: truncated, replaced, absent for a while, or damaged."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from differential import Session
from differential.session.sources import csv, json_lines, tables
from timely.errors import SessionError

Rows = list[tuple[int]]


def write_csv(path: Path, rows: Rows) -> None:
    path.write_text("x\n" + "".join(f"{x}\n" for (x,) in rows))


def write_gzip(path: Path, rows: Rows) -> None:
    path.write_bytes(gzip.compress(("x\n" + "".join(f"{x}\n" for (x,) in rows)).encode()))


def write_parquet(path: Path, rows: Rows) -> None:
    pq.write_table(pa.table({"x": [x for (x,) in rows]}), path, row_group_size=2)


FORMS: dict[str, tuple[Callable[[Path, Rows], None], Callable[..., Any]]] = {
    "csv": (write_csv, csv),
    "csv.gz": (write_gzip, csv),
    "parquet": (write_parquet, tables),
}


@pytest.mark.parametrize("replaced", ["stop", "begin"])
def test_a_file_that_was_truncated_and_has_grown_again_is_noticed(
    tmp_path: Path, replaced: Literal["stop", "begin"]
) -> None:
    path = tmp_path / "log.csv"
    write_csv(path, [(1,), (2,)])
    with Session() as db:
        table = db.table("t", {"x": int})
        table.read_from(csv(path, follow=True, replaced=replaced))
        db.commit()
        write_csv(path, [(7,), (8,), (9,)])
        if replaced == "stop":
            with pytest.raises(SessionError, match=r"log\.csv was truncated.*replaced=.begin"):
                db.commit()
            assert table.records() == [(1,), (2,)]
        else:
            db.commit()
            assert table.records() == [(1,), (2,), (7,), (8,), (9,)]


def write_columns(path: Path, form: str, x: np.ndarray[Any, Any]) -> None:
    if form == "npy":
        np.save(path, np.array(x, [("x", "i8")]))
    elif form == "columns.npy":
        np.save(path, np.asfortranarray(x[:, None].repeat(2, axis=1)))
    elif form == "parquet":
        pq.write_table(pa.table({"x": x, "y": x}), path, row_group_size=50_000)
    else:
        table = pa.table({"x": x, "y": x})
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)


@pytest.mark.parametrize("form", ["npy", "columns.npy", "parquet", "arrow"])
@pytest.mark.parametrize("count", [300_000, 7])
def test_a_table_that_is_written_again_while_it_is_read_stops_its_source(tmp_path: Path, form: str, count: int) -> None:
    """A file that was mapped into memory and became shorter would end the process with SIGBUS."""
    path, types = tmp_path / f"rows.{form}", {"x": int} if form == "npy" else {"x": int, "y": int}
    write_columns(path, form, np.arange(300_000))
    os.utime(path, (1, 1))
    with Session() as db:
        table = db.table("t", types)
        table.read_from(tables(path))
        db.commit()
        assert 0 < (begun := len(table)) < 300_000
        write_columns(path, form, np.arange(count) + 1_000_000)
        with pytest.raises(SessionError, match=rf"rows\.{form} was written again while it was read: .*replaced=.begin"):
            db.run()
        assert [row[0] for row in table.records()] == list(range(begun))
        db.drop("t")
        table = db.table("t", types)
        table.read_from(tables(path))
        db.run()
        assert [row[0] for row in table.records()] == [*range(1_000_000, 1_000_000 + count)]


def test_a_table_that_is_replaced_while_it_is_read_is_read_to_its_end(tmp_path: Path) -> None:
    path, other = tmp_path / "rows.npy", tmp_path / "other.npy"
    write_columns(path, "npy", np.arange(300_000))
    write_columns(other, "npy", np.arange(7))
    with Session() as db:
        table = db.table("t", {"x": int})
        table.read_from(tables(path))
        db.commit()
        os.replace(other, path)
        db.run()
        assert len(table) == 300_000


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rows", [[(7,), (8,), (9,), (10,)], [(7,)]])
def test_a_session_that_is_opened_again_does_not_go_on_in_another_file(tmp_path: Path, form: str, rows: Rows) -> None:
    path, state = tmp_path / f"rows.{form}", str(tmp_path / "db")
    write, source = FORMS[form]
    for count in (3, 4):
        write(path, [(x,) for x in range(count)])
        with Session(state=state) as db:
            db.table("t", {"x": int}).read_from(source(path))
            db.commit()
            assert db["t"].records() == [(x,) for x in range(count)]
    write(path, rows)
    with Session(state=state) as db:
        with pytest.raises(SessionError, match=r"is another file, or a shorter one, than an earlier session has read"):
            db.table("t", {"x": int}).read_from(source(path))
        db.table("t").read_from(source(path, replaced="begin"))
        db.commit()
        assert db["t"].records() == sorted([*((x,) for x in range(4)), *rows])


def test_a_file_that_appears_after_its_session_was_opened_again_is_read_on(tmp_path: Path) -> None:
    path, away, state = tmp_path / "log.csv", tmp_path / "away.csv", str(tmp_path / "db")
    write_csv(path, [(1,), (2,)])
    with Session(state=state) as db:
        db.table("t", {"x": int}).read_from(csv(path, follow=True))
        db.commit()
    path.rename(away)
    with Session(state=state) as db:
        db.table("t", {"x": int}).read_from(csv(path, follow=True))
        db.commit()
        with away.open("a") as file:
            file.write("3\n")
        away.rename(path)
        db.commit()
        assert db["t"].records() == [(1,), (2,), (3,)]
    path.rename(away)
    with Session(state=state) as db:
        db.table("t", {"x": int}).read_from(csv(path, follow=True))
        write_csv(path, [(7,), (8,), (9,)])
        with pytest.raises(SessionError, match="is another file"):
            db.commit()
        assert db["t"].records() == [(1,), (2,), (3,)]


def test_a_followed_file_that_cannot_be_read_is_left_out_until_another_one_replaces_it(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("y\n1\n")
    with Session() as db:
        table = db.table("t", {"x": int})
        feed = table.read_from(csv(path, follow=True), on_error="skip")
        for _ in range(2):
            db.commit()
            assert (feed.rows, feed.rejected, feed.state) == (0, 1, "reads")
        write_csv(tmp_path / "next.csv", [(1,), (2,)])
        os.replace(tmp_path / "next.csv", path)
        db.commit()
        assert table.records() == [(1,), (2,)]


def test_a_compressed_file_that_is_not_complete_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"x": 1}\n' * 1000)[:-9])
    with Session() as db:
        feed = db.table("t", {"x": int}).read_from(json_lines(path), on_error=db.rejects())
        db.commit()
        assert (feed.rejected, feed.is_ended) == (1, True)
        assert "the file cannot be read: Compressed file ended" in db["rejects"].records()[0][-1]
