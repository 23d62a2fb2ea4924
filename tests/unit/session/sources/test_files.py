"""Sources in files: every record once, what is not a row refused, left out or kept, and all of it visible."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import math
import os
from contextlib import ExitStack
from decimal import Decimal
from functools import partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from differential import Session
from differential.session.sources import Source, csv, files, json_lines, parts, standard_input, tables
from timely.errors import DataError, SessionError
from timely.lowlevel import typed

COLUMNS = {"id": int, "name": str | None, "price": float}
ROWS = [(1, "ann", 0.5), (2, None, 2.0), (3, 'b"o,b\n', 1e300)]


def write(path: Path, form: str, rows: list[tuple[Any, ...]]) -> None:
    """Write rows in a form, with the columns in another order, and one more."""
    ids, names, prices = (list(column) for column in zip(*rows))
    table = pa.table({"more": ids, "price": prices, "name": pa.array(names, pa.string()), "id": ids})
    if form.startswith("csv"):
        fields = [f'{key},{price},"{(name or "").replace(chr(34), chr(34) * 2)}",{key}\n' for key, name, price in rows]
        data = ("more,price,name,id\n" + "".join(fields)).encode()
        path.write_bytes(gzip.compress(data) if form == "csv.gz" else data)
    elif form == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    elif form == "parquet":
        pq.write_table(table, path, row_group_size=2)
    elif form == "npy":
        np.save(path, np.array([(key, price) for key, _, price in rows], [("id", "i8"), ("price", "f8")]))
    else:
        make = pa.ipc.new_file if form == "arrow" else pa.ipc.new_stream
        with pa.OSFile(str(path), "wb") as sink, make(sink, table.schema) as writer:
            for start in range(0, len(rows), 2):
                writer.write_table(table.slice(start, 2))


def source_of(path: Path, form: str, **options: Any) -> Source:
    return (
        csv(path, **options) if form.startswith("csv") else (json_lines if form == "jsonl" else tables)(path, **options)
    )


@pytest.mark.parametrize("form", ["csv", "csv.gz", "jsonl", "parquet", "arrow", "feather"])
def test_files_of_each_form_fill_a_table(tmp_path: Path, form: str) -> None:
    directory = tmp_path / "in"
    directory.mkdir()
    write(directory / f"b.{form}", form, ROWS[1:])
    write(directory / f"a.{form}", form, ROWS[:1])
    (directory / "_c.tmp").write_text("not yet")
    with Session() as db:
        table = db.table("orders", COLUMNS)
        feed = table.read_from(source_of(directory, form))
        assert db.run() == 1
        assert table.records() == ROWS
        assert (feed.rows, feed.rejected, feed.is_ended, feed.state) == (3, 0, True, "has ended")
        assert db.status().sources.records() == [(str(directory), "orders", 3, 0, "has ended")]


@pytest.mark.parametrize("shape", ["structured", "columns"])
def test_arrays_in_files_fill_a_table(tmp_path: Path, shape: str) -> None:
    if shape == "structured":
        write(tmp_path / "a.npy", "npy", ROWS)
    else:
        np.save(tmp_path / "a.npy", np.array([[1, 0.5], [2, 2.0], [3, 1e300]]))
    with Session() as db:
        columns: dict[str, Any] = {"id": float if shape == "columns" else int, "price": float}
        table = db.table("orders", columns)
        table.read_from(tables(tmp_path / "a.npy"))
        db.run()
        assert table.records() == [(key, price) for key, _, price in ROWS]


def test_all_types_are_read_from_text(tmp_path: Path) -> None:
    columns: dict[str, Any] = {
        "day": dt.date,
        "at": dt.datetime,
        "exact": typed([], "timestamp[ns]"),
        "berlin": typed([], "timestamp[us, Europe/Berlin]"),
        "time": dt.time,
        "price": typed([], "decimal(18, 2)"),
        "large": typed([], "uint64"),
        "narrow": typed([], "float32"),
        "is_new": bool | None,
        "tags": list,
    }
    row = {
        "day": "2026-02-28",
        "at": "2026-02-28T12:00:00.000001",
        "exact": "2026-02-28T12:00:00.000000001",
        "berlin": "2026-02-28T12:00:00+01:00",
        "time": "01:02:03",
        "price": "1.50",
        "large": 2**64 - 1,
        "narrow": 0.5,
        "is_new": None,
        "tags": [1, "x"],
    }
    texts = {**row, "is_new": "", "tags": '"[1, ""x""]"'}
    (tmp_path / "a.jsonl").write_text(
        json.dumps(row) + "\n" + json.dumps(dict.fromkeys(row) | {"large": 0, "narrow": 0})
    )
    (tmp_path / "a.csv").write_text(f"{','.join(texts)}\n{','.join(map(str, texts.values()))}\n")
    with Session() as db:
        one, two = db.table("one", columns), db.table("two", columns)
        one.read_from(json_lines(tmp_path / "a.jsonl"))
        two.read_from(csv(tmp_path / "a.csv"))
        db.run()
        expected = (
            dt.date(2026, 2, 28),
            dt.datetime(2026, 2, 28, 12, 0, 0, 1),
            np.datetime64("2026-02-28T12:00:00.000000001"),
            dt.datetime(2026, 2, 28, 11, tzinfo=dt.UTC),
            dt.time(1, 2, 3),
            Decimal("1.50"),
            2**64 - 1,
            0.5,
            None,
            (1, "x"),
        )
        assert two.records() == [expected]
        assert one.records() == [expected, (None,) * 6 + (0, 0.0, None, None)]


def test_a_type_without_a_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("took\n")
    with Session() as db:
        table = db.table("t", {"took": dt.timedelta})
        table.read_from(csv(tmp_path / "a.csv"))
        with pytest.raises(SessionError, match=r"column 'took' is of type duration.us., which this source cannot read"):
            db.run()


BAD = {
    "csv": ('id,name,price\n1,"a\nb",0.5\nx,c,1\n2,d\n"3"3,e,1\n4,f,1e5\n5,g,1_0\n', [(4, 0), (5, 0), (6, 0), (8, 0)]),
    "jsonl": (
        '{"id": 1, "name": "a\\nb", "price": 0.5}\n{"id": "x", "price": 1}\n[2]\n{"id": 3, "price": 1\n'
        '{"id": 4, "name": "f", "price": 1e5}\n\n{"id": 5, "name": "g"}\n',
        [(2, 0), (3, 0), (4, 0), (7, 0)],
    ),
}


@pytest.mark.parametrize("form", BAD)
def test_records_that_are_no_rows_are_kept_with_line_and_error(tmp_path: Path, form: str) -> None:
    text, lines = BAD[form]
    path = tmp_path / f"a.{form}"
    path.write_text(text)
    with Session() as db:
        table = db.table("orders", COLUMNS)
        feed = table.read_from(source_of(path, form), on_error=db.rejects("bad"))
        db.run()
        assert table.records() == [(1, "a\nb", 0.5), (4, "f", 1e5)]
        assert (feed.rows, feed.rejected) == (2, 4)
        written = text.split("\n")
        rejects = sorted(db["bad"].records(), key=lambda record: record[2])
        assert [record[:4] for record in rejects] == [(str(path), str(path), n, written[n - 1]) for n, _ in lines]
        assert all(record[4] for record in rejects)


@pytest.mark.parametrize("form", BAD)
def test_records_that_are_no_rows_are_left_out_and_counted(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"a.{form}"
    path.write_text(BAD[form][0])
    with Session() as db:
        table = db.table("orders", COLUMNS)
        feed = table.read_from(source_of(path, form), on_error="skip")
        db.run()
        assert (len(table), feed.rows, feed.rejected, db.status().sources.records()[0][3]) == (2, 2, 4, 4)


@pytest.mark.parametrize("form", BAD)
def test_a_source_stops_at_a_record_that_is_no_row_and_goes_on_there(tmp_path: Path, form: str) -> None:
    text, lines = BAD[form]
    path = tmp_path / f"a.{form}"
    path.write_text(text)
    for _ in range(2):  # the second session stops at the same record
        with Session(state=str(tmp_path / "db")) as db:
            table = db.table("orders", COLUMNS)
            feed = table.read_from(source_of(path, form))
            with pytest.raises(SessionError, match=rf"source .* has stopped at .*, line {lines[0][0]}: .*commit"):
                db.run()
            assert table.records() == [(1, "a\nb", 0.5)]
            assert feed.state.startswith("stopped: ")
            assert db.commit() == db.status().commit
    with Session(state=str(tmp_path / "db")) as db:
        table = db.table("orders", COLUMNS)
        table.read_from(source_of(path, form), on_error="skip")
        db.run()
        assert table.records() == [(1, "a\nb", 0.5), (4, "f", 1e5)]


def test_bytes_that_are_no_text_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"x\nann\n\xff\xfe\nb\xc3\xb6b\n")
    with Session() as db:
        table = db.table("t", {"x": str})
        table.read_from(csv(tmp_path / "a.csv"), on_error=db.rejects())
        db.run()
        assert table.records() == [("ann",), ("böb",)]
        assert db["rejects"].records()[0][2:] == (3, "\ufffd\ufffd", "the text is not UTF-8")


def test_nulls_in_typed_files_are_rejected_where_the_table_has_no_place_for_them(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": [1, None, 3], "name": ["a", "b", None], "price": [math.nan, 1.0, 2.0]}), path)
    with Session() as db:
        table = db.table("orders", COLUMNS)
        table.read_from(tables(path), on_error=db.rejects("bad"))
        db.run()
        assert table.records() == [(1, "a", np.nan), (3, None, 2.0)]
        bad = [record[2:] for record in db["bad"].records()]
        assert bad == [(2, "(None, 'b', 1.0)", "column 'id' (int64) cannot be null")]


def test_a_file_that_is_no_table_is_rejected_whole(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_text("not Parquet")
    pq.write_table(pa.table({"id": ["x"], "price": [1.0], "name": ["n"]}), tmp_path / "b.parquet")
    pq.write_table(pa.table({"id": [1], "name": ["n"]}), tmp_path / "c.parquet")
    pq.write_table(pa.table({"id": [1], "name": ["n"], "price": [1.0]}), tmp_path / "d.parquet")
    with Session() as db:
        table = db.table("orders", COLUMNS)
        table.read_from(tables(tmp_path), on_error=db.rejects("bad"))
        db.run()
        assert table.records() == [(1, "n", 1.0)]
        errors = [(os.path.basename(place), error) for _, place, _, _, error in db["bad"].records()]
        assert [place for place, _ in errors] == ["a.parquet", "b.parquet", "c.parquet"]
        assert "column 'id' holds integers, not text" in errors[1][1]
        assert "there is no column 'price'" in errors[2][1]


@pytest.mark.parametrize(
    ("source", "text"),
    [(csv, "id,name\r\n1,ann\r\n"), (json_lines, '{"id": 1, "name": "ann"}\r\n'), (None, "1,ann\r\n")],
)
def test_a_mark_at_the_beginning_of_a_text_is_no_part_of_it(tmp_path: Path, source: Any, text: str) -> None:
    path = tmp_path / "t"
    path.write_bytes(text.encode("utf-8-sig"))
    with Session() as db:
        table = db.table("people", {"id": int, "name": str})
        table.read_from(csv(path, header=False) if source is None else source(path))
        db.run()
        assert table.records() == [(1, "ann")]


@pytest.mark.parametrize("header", [True, False])
def test_a_mark_at_the_beginning_of_a_record_is_a_part_of_it(tmp_path: Path, header: bool) -> None:
    path = tmp_path / "t"
    path.write_text("name\nann\n" if header else "ann\n")
    with Session() as db:
        table = db.table("people", {"name": str})
        table.read_from(csv(path, follow=True, header=header))
        db.commit()
        with path.open("a") as file:
            file.write("\ufeffbob\n")
        db.commit()
        assert table.records() == [("ann",), ("\ufeffbob",)]


def test_another_delimiter_is_suggested(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id;name\n1;ann\n")
    with Session() as db:
        table = db.table("people", {"id": int, "name": str})
        table.read_from(csv(path))
        with pytest.raises(SessionError, match=r"it has id;name, .* has id, name; delimiter=';' separates them"):
            db.run()
        table.read_from(csv(path, delimiter=";", name="again"))
        db.run()
        assert table.records() == [(1, "ann")]


def test_a_header_without_a_column_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,names\n1,ann\n")
    with Session() as db:
        table = db.table("t", {"id": int, "name": str})
        table.read_from(csv(tmp_path / "a.csv"))
        with pytest.raises(SessionError, match="the header does not have the column 'name' once: it has id, names"):
            db.commit()
        table.read_from(csv(tmp_path / "a.csv", header=["id", "name"]), on_error="skip")
        db.run()
        assert table.records() == [(1, "ann")]


def test_a_directory_that_is_followed_is_read_as_files_arrive(tmp_path: Path) -> None:
    directory = tmp_path / "in"
    directory.mkdir()
    with Session() as db:
        table = db.table("t", {"x": int})
        feed = table.read_from(json_lines(directory, follow=True))
        assert db.commit() == 1
        for number, name in enumerate(["b", "a", "c"]):
            (tmp_path / name).write_text(f'{{"x": {number}}}\n')
            (tmp_path / name).rename(directory / name)
            db.commit()
        assert table.records() == [(0,), (1,), (2,)]
        assert not feed.is_ended


def test_a_file_that_is_replaced_while_it_is_followed_loses_no_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "QUIET", 0.0)
    path = tmp_path / "log.csv"
    path.write_text("x\n1\n")
    with Session() as db:
        table = db.table("t", {"x": int})
        table.read_from(csv(path, follow=True))
        db.commit()
        with path.open("a") as file:
            file.write("2\n3")
        path.rename(tmp_path / "log.csv.1")
        db.commit()
        path.write_text("x\n4\n")
        db.commit()
        assert table.records() == [(1,), (2,), (3,), (4,)]


def test_a_compressed_file_that_is_replaced_while_it_is_followed_loses_no_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "QUIET", 0.0)
    path = tmp_path / "log.csv.gz"
    path.write_bytes(gzip.compress(b"x\n1\n2"))
    with Session() as db:
        table = db.table("t", {"x": int})
        table.read_from(csv(path, follow=True))
        db.commit()
        path.rename(tmp_path / "log.csv.1.gz")
        path.write_bytes(gzip.compress(b"x\n3\n"))
        for _ in range(2):
            db.commit()
        assert table.records() == [(1,), (2,), (3,)]


def test_a_file_that_was_renamed_is_read_until_nobody_writes_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(files, "clock", SimpleNamespace(monotonic=lambda: now[0]))
    path = tmp_path / "log.csv"
    path.write_text("x\n")
    with Session() as db, path.open("a") as old:
        table = db.table("t", {"x": int})
        table.read_from(csv(path, follow=True))
        db.commit()
        path.rename(tmp_path / "log.csv.1")
        path.write_text("x\n")
        print(1, "\n2", sep="", end="", file=old, flush=True)
        db.commit()
        now[0] += 0.9
        print("345", file=old, flush=True)
        db.commit()
        now[0] += 0.9
        print(6, file=old, flush=True)
        db.commit()
        assert table.records() == [(1,), (6,), (2345,)]
        with path.open("a") as new:
            print(7, file=new)
        db.commit()
        assert table.records() == [(1,), (6,), (2345,)]
        now[0] += 1.1
        db.commit()
        assert table.records() == [(1,), (6,), (7,), (2345,)]


def test_a_file_that_goes_on_in_its_last_line_is_another_file(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("x\n1\n12")
    for more, expected in ("", [1, 12]), ("\n5\n6", [1, 5, 6, 12]), ("78\n", None):
        with path.open("a") as file:
            file.write(more)
        with Session(state=tmp_path / "db", progress=False) as db:
            table = db.table("t", {"x": int})
            if expected is None:
                with pytest.raises(
                    SessionError, match="goes on in a line that an earlier session has read as the last"
                ):
                    table.read_from(csv(path))
            else:
                table.read_from(csv(path))
                db.run()
                assert [x for (x,) in table.records()] == expected


@pytest.mark.parametrize("form", ["csv", "npy"])
def test_a_file_of_a_directory_that_was_read_in_part_must_be_there(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "BLOCK", 1000)
    monkeypatch.setattr(import_module("differential.session.sources.tables"), "ROWS", 100)
    (tmp_path / "in").mkdir()
    path, values = tmp_path / "in" / f"a.{form}", np.arange(1000)
    if form == "csv":
        path.write_text("x\n" + "".join(f"{value}\n" for value in values))
    else:
        np.save(path, values)
    source = csv if form == "csv" else tables

    def read(commits: int, replaced: Literal["stop", "begin"] = "stop") -> int:
        with Session(state=tmp_path / "db", progress=False) as db:
            table = db.table("t", {"x": int})
            table.read_from(source(tmp_path / "in", name="in", follow=True, replaced=replaced))
            for _ in range(commits):
                db.commit()
            return len(table)

    monkeypatch.setattr(import_module("differential.session.sources.feed"), "ROWS", 1)
    assert 0 < read(1) < 1000
    path.rename(tmp_path / "away")
    with pytest.raises(SessionError, match=rf"a\.{form} is gone, and an earlier session has read only a part of it"):
        read(1)
    (tmp_path / "away").rename(path)
    assert read(20) == 1000
    path.rename(tmp_path / "away")
    assert read(1) == 1000


@pytest.mark.parametrize("header", ["", "x\n"], ids=["empty", "a header alone"])
def test_a_file_that_was_replaced_by_one_without_rows_is_followed_by_the_next_session(
    tmp_path: Path, header: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "QUIET", 0.0)
    log, source = tmp_path / "log", partial(csv, header=bool(header) or ["x"])
    log.write_text(f"{header}1\n")
    for expected in [1, 2], [1, 2, 3]:
        with Session(state=tmp_path / "db") as db:
            table = db.table("t", {"x": int})
            table.read_from(source(log, follow=True))
            db.commit()
            if expected == [1, 2]:
                with log.open("a") as file:
                    file.write("2\n")
                log.rename(tmp_path / "log.1")
                log.write_text(header)
                db.commit()
            assert [x for (x,) in table.records()] == expected
        with log.open("a") as file:
            file.write("3\n")


@pytest.mark.parametrize("restart", [False, True])
def test_a_file_that_became_another_one_is_an_error_or_read_again(tmp_path: Path, restart: bool) -> None:
    path = tmp_path / "log.csv"
    for replaced in ("stop", "begin"):
        path.write_text("x\n1\n22\n")
        state = str(tmp_path / replaced)
        db = Session(state=state)
        table = db.table("t", {"x": int})
        table.read_from(csv(path, follow=True, replaced=replaced))  # type: ignore[arg-type]
        db.commit()
        path.write_text("x\n5\n")
        if restart:
            db.close()
            db = Session(state=state)
            table = db.table("t", {"x": int})
        if replaced == "stop":
            with pytest.raises(SessionError, match=r"replaced=.begin.. reads it from its beginning"):
                table.read_from(csv(path, follow=True)) if restart else db.commit()
        else:
            if restart:
                table.read_from(csv(path, follow=True, replaced="begin"))
            db.commit()
            assert table.records() == [(1,), (5,), (22,)]
        db.close()


def test_standard_input_is_read_as_it_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = os.pipe()

    class Input:
        def fileno(self) -> int:
            return ours

    monkeypatch.setattr("sys.stdin", Input())
    with Session() as db:
        table = db.table("t", {"x": int})
        feed = table.read_from(standard_input())
        os.write(theirs, b"x\n1\n2")
        db.commit()
        assert table.records() == [(1,)]
        os.write(theirs, b"2\n3")
        os.close(theirs)
        db.run()
        assert table.records() == [(1,), (3,), (22,)]
        assert feed.is_ended
    os.close(ours)


def test_a_row_replaces_those_of_its_key(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("item,price\nnut,1\ncog,2\nnut,3\n")
    with Session() as db:
        table = db.table("stock", {"item": str, "price": float}, key="item")
        table.read_from(csv(tmp_path / "a.csv"), upsert=True)
        db.run()
        assert table.records() == [("cog", 2.0), ("nut", 3.0)]


@pytest.mark.parametrize("key", ["source", "line", "error"])
def test_only_a_table_like_that_of_the_rejects_takes_them(tmp_path: Path, key: str) -> None:
    (tmp_path / "a.csv").write_text("x\noops\n5\n")
    with Session(state=str(tmp_path / "db")) as db:
        numbers = db.table("numbers", {"x": int})
        made = db.table("mine", {"source": str, "place": str, "line": int, "record": str, "error": str}, key=key)
        texts = db.table("texts", dict.fromkeys(made.columns, str))
        with pytest.raises(SessionError, match="table 'texts' is not a table of rejects"):
            numbers.read_from(csv(tmp_path / "a.csv"), on_error=texts)
        if key == "source":
            numbers.read_from(csv(tmp_path / "a.csv"), on_error=made)
            db.commit()
        else:
            with pytest.raises(SessionError, match="table 'mine' is not a table of rejects"):
                numbers.read_from(csv(tmp_path / "a.csv"), on_error=made)
    if key == "source":
        with Session(state=str(tmp_path / "db")) as db:
            assert [row[2:4] for row in db.rejects("mine").records()] == [(2, "oops")]
            db.table("numbers", {"x": int}).read_from(csv(tmp_path / "a.csv"), on_error=db.rejects("mine"))


def test_a_source_is_refused_where_it_cannot_fill_the_table(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n")
    with ExitStack() as exits:
        db = exits.enter_context(Session())
        untyped, keyless = db.table("untyped", {"x": []}), db.table("keyless", {"x": int})
        with pytest.raises(SessionError, match="needs the type of column 'x'"):
            untyped.read_from(csv(tmp_path / "a.csv"))
        with pytest.raises(SessionError, match="replaces rows by key, so name one"):
            keyless.read_from(csv(tmp_path / "a.csv"), upsert=True)
        with pytest.raises(SessionError, match="is not a table of rejects"):
            keyless.read_from(csv(tmp_path / "a.csv"), on_error=untyped)
        columns = {"source": str, "place": str, "line": int, "record": str, "error": str}
        other = exits.enter_context(Session())
        for rejects in (
            other.rejects(),  # of another session
            db.table("other order", columns, key="place"),
            db.table("other types", columns | {"line": float}),
        ):
            with pytest.raises(SessionError, match="is not a table of rejects of this session"):
                keyless.read_from(csv(tmp_path / "a.csv"), on_error=rejects)
        with pytest.raises(SessionError, match="there is no file or directory"):
            keyless.read_from(csv(tmp_path / "b.csv"))
        for make in csv, json_lines, tables:
            with pytest.raises(SessionError, match=r"s3://bucket/\*\.csv is a URL, not the path of a file"):
                make("s3://bucket/*.csv", follow=True)
        with pytest.raises(SessionError, match="on_error is 'stop', 'skip' or a table"):
            keyless.read_from(csv(tmp_path / "a.csv"), on_error="ignore")  # type: ignore[arg-type]
        keyless.read_from(csv(tmp_path / "a.csv"))
        with pytest.raises(SessionError, match=r"already reads .*: name="):
            keyless.read_from(csv(tmp_path / "a.csv"))
        assert db.run() == 1
        assert keyless.records() == [(1,)]


def test_a_rollback_leaves_what_sources_have_delivered(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n")
    with Session() as db:
        table = db.table("t", {"x": int}, key="x")
        table.read_from(csv(tmp_path / "a.csv"))
        table.delete({"x": [7]})
        db.rollback()
        table.insert(x=2)
        table.insert(x=3)
        db.commit()
        assert table.records() == [(1,), (2,), (3,)]


def test_a_commit_that_the_program_makes_fail_keeps_what_sources_have_delivered(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n1,1\n")
    with Session() as db:
        table = db.table("t", {"x": int, "y": int})
        table.read_from(csv(tmp_path / "a.csv"))
        table.delete(x=5, y=5)
        with pytest.raises(SessionError, match="does not have the row"):
            db.commit()
        assert table.records() == []
        db.commit()
        assert table.records() == [(1, 1)]


def test_a_table_that_is_dropped_ends_its_sources(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x\n1\n")
    for _ in range(2):
        with Session(state=str(tmp_path / "db")) as db:
            table = db.table("t", {"x": int})
            feed = table.read_from(csv(path))
            db.run()
            assert table.records() == [(1,)]  # the table of the second session is another one, and reads from the start
            db.drop("t")
            assert feed.is_closed
            db.commit()


def test_sources_are_committed_in_a_thread(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x\n1\n")
    with Session() as db:
        table = db.table("t", {"x": int})
        with table.changes() as changes:
            run = db.start(every=0.001)
            table.read_from(csv(path, follow=True))
            first = changes.get(timeout=30)
            assert first is not None
            assert first.records() == [((1,), 1)]
            with path.open("a") as file:
                file.write("2\nx\n")
            second = changes.get(timeout=30)
            assert second is not None
            assert second.records() == [((2,), 1)]
            with pytest.raises(SessionError, match="line 4: column 'x'"):
                run.wait(30)
            assert not run.is_running
            assert "db.start() has ended, and sources are no longer read: source" in capsys.readouterr().err
        db.start()
    assert not capsys.readouterr().err  # `close` ends what still runs


def test_a_watch_may_stop_the_thread_that_commits(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x\n1\n")
    stopped: list[int] = []
    with Session() as db:
        table = db.table("t", {"x": int})
        run = db.start()
        table.watch(lambda change: stopped.append(run.stop()))
        table.read_from(csv(path, follow=True))
        assert run.wait(30), "the thread still runs"
        assert stopped == [1]


def test_values_that_json_has_otherwise_are_refused() -> None:
    from differential.session.sources.convert import Converter, of_json

    for of, value in [
        ("int64", True),
        ("int64", 1.0),
        ("float64", "1"),
        ("text", 1),
        ("bool", 1),
        ("decimal(9, 2)", 0.1),
        ("float64", 2**53 + 1),
        ("float32", 2**24 + 1),
    ]:
        _, wrong = Converter(["x"], [of], of_json).convert([[value]], 1)
        assert list(wrong) == [0], of
    with pytest.raises(DataError, match="cannot read"):
        Converter(["x"], ["duration[us]"], of_json)


@pytest.mark.parametrize(
    ("of", "texts"),
    [
        ("timestamp[us]", ["2026-02-28T12:00:00.1234567"]),
        ("timestamp[us, UTC]", ["2026-02-28T12:00:00.1234567Z"]),
        ("timestamp[ns]", ["2026-02-28T12:00:00+01:00", "2026-02-28T12:00:00.0000000001", "2300-01-01"]),
        ("timestamp[ns, UTC]", ["2026-02-28T12:00:00.000000001"]),
        ("time[us]", ["12:00:00.1234567"]),
        ("time[ns]", ["12:00:00.000000001+01:00"]),
        ("decimal(9, 2)", ["1_000", "1.005"]),
        ("float16", ["70000"]),
        ("float32", ["1e300"]),
        ("float64", ["1e400", "1_0"]),
    ],
)
def test_values_that_would_be_changed_are_refused(of: str, texts: list[str]) -> None:
    from differential.session.sources.convert import Converter, of_json, of_text

    for text in texts:
        for form in (of_text, of_json):
            _, wrong = Converter(["x"], [of], form).convert([[text]], 1)
            assert list(wrong) == [0], text


@pytest.mark.parametrize("of", ["float16", "float32", "float64"])
def test_floats_that_are_infinite_are_read(of: str) -> None:
    from differential.session.sources.convert import Converter, of_json, of_text

    (made,), wrong = Converter(["x"], [of], of_text).convert([["inf", "-Infinity", "0.5"]], 3)
    assert (made.tolist(), wrong) == ([math.inf, -math.inf, 0.5], {})
    (made,), wrong = Converter(["x"], [of], of_json).convert([["Infinity", "-Infinity", 0.5]], 3)
    assert (made.tolist(), wrong) == ([math.inf, -math.inf, 0.5], {})


def test_json_may_have_decimals_and_floats(tmp_path: Path) -> None:
    path = tmp_path / "prices.jsonl"
    path.write_text('{"price": "1.50", "weight": 0.5}\n{"price": 2, "weight": "NaN"}\n')
    with Session() as db:
        prices = db.table("prices", {"price": typed([], "decimal(9, 2)"), "weight": float})
        prices.read_from(json_lines(path))
        db.run()
        assert [price for price, _ in prices.records()] == [Decimal("1.50"), Decimal("2.00")]


@pytest.mark.parametrize("more", [{}, {"exact": typed([], "decimal(9, 2)")}, {"tags": list}])
def test_numbers_of_json_that_would_become_infinite_are_refused(tmp_path: Path, more: dict[str, Any]) -> None:
    path = tmp_path / "numbers.jsonl"
    path.write_text('{"x": 1e400}\n{"x": "Infinity"}\n{"x": -1e999}\n{"x": 1e308}\n{"x": 1e99999999999999999999}\n')
    with Session() as db:
        numbers = db.table("numbers", {"x": float} | more)
        feed = numbers.read_from(json_lines(path), on_error="skip")
        db.run()
        assert sorted(row[0] for row in numbers.records()) == [1e308, math.inf]
        assert feed.rejected == 3


def test_an_error_of_a_source_that_has_nothing_else_ends_the_run(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"x": 1}\n{"x": 2}\n')
    with Session() as db:
        numbers = db.table("numbers", {"x": int})
        feed = numbers.read_from(json_lines(log, follow=True))
        db.commit()
        log.write_text("")
        with pytest.raises(SessionError, match="was truncated"):
            db.run(until=lambda: feed.error is not None)


def test_a_quote_that_is_not_closed_is_shown_and_holds_back_a_bounded_part_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text('id,name,price\n1,ann,1\n2,"bob,2\n')
    with Session() as db:
        table = db.table("t", COLUMNS)
        feed = table.read_from(csv(path, follow=True, longest=100), on_error=db.rejects())
        db.commit()
        assert table.records() == [(1, "ann", 1.0)]
        assert feed.state == "reads; 9 bytes wait for the end of the record that begins in line 3: is a quote open?"
        assert feed.state in str(db.status())
        with path.open("a") as file:
            file.writelines(f"{number},eve,{number}\n" for number in range(3, 40))
        db.commit()
        assert len(table) == 38
        assert [(line, record) for _, _, line, record, _ in db["rejects"].records()] == [(3, '2,"bob,2')]
        assert feed.state == "reads"
        with path.open("a") as file:
            file.write('40,"a name\nof two lines",1\n')
        db.commit()
        assert (40, "a name\nof two lines", 1.0) in table.records()


@pytest.mark.parametrize("longest", [100, 1 << 20])
@pytest.mark.parametrize("end", ["", "50,bob,2"])
def test_a_quote_that_is_not_closed_in_a_file_that_ends_costs_one_line(tmp_path: Path, longest: int, end: str) -> None:
    path = tmp_path / "log.csv"
    path.write_text('id,name,price\n1,"ann,1\n' + "".join(f"{number},bob,2\n" for number in range(2, 50)) + end)
    with Session() as db:
        table = db.table("t", COLUMNS)
        table.read_from(csv(path, longest=longest), on_error=db.rejects())
        db.run()
        assert table.records() == [(number, "bob", 2.0) for number in range(2, 51 if end else 50)]
        assert [(line, record) for _, _, line, record, _ in db["rejects"].records()] == [(2, '1,"ann,1')]


def test_the_last_record_of_a_file_may_have_two_lines_and_no_end(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text('id,name,price\n1,"two\nlines",2')
    with Session() as db:
        table = db.table("t", COLUMNS)
        table.read_from(csv(path))
        db.run()
        assert table.records() == [(1, "two\nlines", 2.0)]


def test_the_position_of_a_directory_forgets_files_that_are_gone_and_no_others(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    state = str(tmp_path / "state")

    def add(number: int) -> None:
        (files / f"{number}.csv").write_text(f"id,name,price\n{number},ann,1\n")

    for number in range(4):
        with Session(state=state) as db:
            table = db.table("t", COLUMNS)
            feed = table.read_from(csv(files, follow=True, name="files"))
            add(number)
            db.commit()
            assert len(table) == number + 1
            done = json.loads(str(feed.position))["done"]
            there = {os.path.join("files", name) for name in os.listdir(files)}
            assert set(done) <= there, "the position has a name that is no longer there"
            if number:
                (files / f"{number - 1}.csv").unlink()
    with Session(state=state) as db:
        table = db.table("t", COLUMNS)
        table.read_from(csv(files, follow=True, name="files"))
        db.commit()
        assert [row[0] for row in table.records()] == [0, 1, 2, 3]
