"""Files whose names or contents are unusual: the one that was named is read, or the error states what is wrong."""

from __future__ import annotations

import csv as _csv
import datetime as dt
import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from differential import Session
from differential.session.sources import csv, feed, json_lines, parts, standard_input, tables
from differential.session.sources.text import end_of_csv
from timely.errors import SessionError

TEXT = b"id,name\n1,a\n"
COLUMNS = {"id": int, "name": str}


def taken(source: Any) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Return the rows, and the records that are not rows without their places."""
    with Session() as db:
        table = db.table("t", COLUMNS)
        table.read_from(source, on_error=db.rejects())
        db.run()
        return table.records(), [record[2:] for record in db["rejects"].records()]


def test_a_file_whose_name_looks_like_a_pattern_is_the_one_that_is_read(tmp_path: Path) -> None:
    (tmp_path / "data[1].csv").write_bytes(TEXT)
    (tmp_path / "data1.csv").write_bytes(b"id,name\n2,b\n")
    assert taken(csv(tmp_path / "data[1].csv"))[0] == [(1, "a")]
    assert taken(csv(tmp_path / "data[12].csv"))[0] == [(2, "b")]


def test_a_name_that_is_not_utf8_is_read_and_is_a_text_in_the_rejects(tmp_path: Path) -> None:
    path = os.path.join(os.fsencode(tmp_path), b"caf\xe9.csv")
    with open(path, "wb") as file:
        file.write(TEXT + b"x,b\n")
    for source in (csv(tmp_path), csv(os.fsdecode(path))):
        assert taken(source) == ([(1, "a")], [(3, "x,b", "column 'id' (int64) cannot be 'x'")])
    for _ in range(2):
        with Session(state=str(tmp_path / "state")) as db:
            table = db.table("t", COLUMNS)
            table.read_from(csv(os.fsdecode(path)), on_error=db.rejects())
            db.run()
            assert table.records() == [(1, "a")]


def test_text_in_another_encoding_is_rejected_as_such(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(TEXT.decode().encode("utf-16"))
    rows, ((line, _, error),) = taken(csv(path))
    assert (rows, line) == ([], 1)
    assert "the header is not UTF-8" in error


def test_a_header_that_is_no_record_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"id,name\r1,a\r")
    rows, ((_, _, error),) = taken(csv(path))
    assert rows == []
    assert error == "the file cannot be read: lines end with CR alone; convert them to LF: `tr '\\r' '\\n'`"


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_lists_in_too_many_lists_cost_their_row(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"a.{form}"
    deep = "[" * 100_000 + "]" * 100_000
    records = (
        ["id,tags", f"1,{deep}", "2,[3]"]
        if form == "csv"
        else [f'{{"id": 1, "tags": {deep}}}', '{"id": 2, "tags": [3]}']
    )
    path.write_text("\n".join(records))
    with Session() as db:
        table = db.table("t", {"id": int, "tags": list})
        feed = table.read_from(csv(path) if form == "csv" else json_lines(path), on_error="skip")
        db.run()
        assert (table.records(), feed.rejected) == ([(2, (3,))], 1)


def damaged(path: Path) -> None:
    """Write a file that is damaged where its library does not expect it, or does not look."""
    if path.suffix == ".npy":
        np.save(path, np.array([(1, 2)], [("id", int), ("x", int)]))
        path.write_bytes(path.read_bytes().replace(b"}", b" ", 1))
        return
    table = pa.table({"id": [1], "name": ["a"], "more": [list(range(77))]})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    offsets, beyond = (np.array([0, end], np.int32).tobytes() for end in (77, 1 << 30))
    before, _, after = path.read_bytes().rpartition(offsets)
    assert before
    path.write_bytes(before + beyond + after)


@pytest.mark.parametrize("name", ["a.npy", "a.arrow"])
def test_a_file_that_is_damaged_is_rejected(tmp_path: Path, name: str) -> None:
    damaged(tmp_path / name)
    (tmp_path / "b.parquet").write_bytes(b"")
    pq.write_table(pa.table({"id": [1], "name": ["a"]}), tmp_path / "c.parquet")
    rows, rejected = taken(tables(tmp_path))
    assert rows == [(1, "a")]
    assert [error.partition(":")[0] for *_, error in rejected] == ["the file cannot be read"] * 2


def test_a_header_that_lacks_a_column_when_a_session_is_opened_again_leaves_no_file_open(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(TEXT)
    with Session(state=str(tmp_path / "state")) as db:
        db.table("t", COLUMNS).read_from(csv(path))
        db.run()
    with Session(state=str(tmp_path / "state")) as db:
        table = db.table("t", COLUMNS | {"more": str}, added={"more": ""})
        before = len(os.listdir("/proc/self/fd"))
        with pytest.raises(SessionError, match="the header does not have the column 'more' once"):
            table.read_from(csv(path))
        assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("follow", [False, True])
def test_a_file_without_the_end_of_a_line_is_rejected(tmp_path: Path, follow: bool) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"id,name\r" + b"1,a\r" * (parts.BLOCK // 4))
    with Session() as db:
        table = db.table("t", COLUMNS)
        table.read_from(csv(path, follow=follow), on_error=db.rejects())
        db.commit()
        ((*_, error),) = db["rejects"].records()
        assert error == (
            "the file cannot be read: no line ends in the first 1,048,576 bytes: is it CSV whose lines end with LF?"
        )


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.jsonl", "a.parquet", "a.arrow", "a.npy"])
def test_a_pipe_is_refused_and_never_waited_for(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    os.mkfifo(path)
    make = csv if "csv" in name else json_lines if "json" in name else tables
    for follow in (False, True):
        with Session() as db:
            db.table("t", COLUMNS).read_from(make(path, follow=follow))
            with pytest.raises(SessionError, match="is a pipe, which is read with standard_input"):
                db.commit()


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_a_column_of_a_file_that_has_nulls_alone_is_read_or_left_out(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"a.{form}"
    table = pa.table({"id": [1, 2], "name": pa.nulls(2), "more": pa.nulls(2), "day": pa.nulls(2)})
    if form == "parquet":
        pq.write_table(table, path)
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    for _ in range(2):
        with Session(state=str(tmp_path / "state")) as db:
            rows = db.table("t", {"id": int, "name": str | None, "day": dt.date})
            rows.read_from(tables(path))
            db.run()
            assert rows.records() == [(1, None, None), (2, None, None)]
    rows, rejected = taken(tables(path))
    assert (rows, [error for *_, error in rejected]) == ([], ["column 'name' (text) cannot be null"] * 2)


def test_an_array_without_dimensions_is_rejected(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array(5))
    rows, ((_, _, error),) = taken(tables(tmp_path / "a.npy"))
    assert (rows, "an array of shape ()" in error) == ([], True)


def test_a_directory_that_is_made_later_is_followed(tmp_path: Path) -> None:
    with Session() as db:
        table = db.table("t", COLUMNS)
        table.read_from(csv(f"{tmp_path}/later/", follow=True))
        db.commit()
        (tmp_path / "later").mkdir()
        (tmp_path / "later" / "a.csv").write_bytes(TEXT)
        db.commit()
        assert table.records() == [(1, "a")]


def test_a_pattern_in_a_directory_that_is_not_there_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Session() as db:
        table = db.table("t", COLUMNS)
        with pytest.raises(SessionError, match=r"there is no directory .*/absent"):
            table.read_from(csv(tmp_path / "absent" / "*.csv"))
        table.read_from(csv(tmp_path / "*.csv"))
        assert f"source '{tmp_path}/*.csv' reads nothing: there is no such file yet" in capsys.readouterr().err
        db.run()
        assert table.records() == []


@pytest.mark.parametrize("delimiter", ["", "::", '"', "\n", "\r"])
def test_what_cannot_be_a_delimiter_is_refused(delimiter: str) -> None:
    for make in (lambda: csv("a.csv", delimiter=delimiter), lambda: standard_input(delimiter=delimiter)):
        with pytest.raises(SessionError, match="delimiter is one character"):
            make()


def test_a_header_that_is_a_text_is_refused() -> None:
    with pytest.raises(SessionError, match=r"header is a list of names, .* not 'id,name'"):
        csv("a.csv", header="id,name")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: csv("a.csv", header=None), r"header is a list of names, True or False, not None"),
        (lambda: csv("a.csv", header=[1]), r"header is a list of names, True or False, not \[1\]"),
        (lambda: csv("a.csv", delimiter=1), "delimiter is one character, .* not 1"),
        (lambda: csv("a.csv", replaced="restart"), "replaced is 'stop' or 'begin', not 'restart'"),
        (lambda: json_lines("a", replaced=True), "replaced is 'stop' or 'begin', not True"),
        (lambda: csv("a.csv", longest=0), "longest is a number of bytes, from 1 to 2,147,483,647, not 0"),
        (lambda: csv("a.csv", longest="1 MiB"), "longest is a number of bytes, from 1 to 2,147,483,647, not '1 MiB'"),
        (lambda: standard_input("tsv"), "standard input is 'csv' or 'json', not 'tsv'"),
    ],
)
def test_options_that_a_source_cannot_have_are_refused(make: Any, message: str) -> None:
    with pytest.raises(SessionError, match=message):
        make()


@given(st.text('",;x\n\u00a7', max_size=24), st.sampled_from(",;\u00a7"), st.integers(1, 9))
def test_blocks_of_csv_end_where_the_reader_of_python_ends_records(text: str, delimiter: str, block: int) -> None:
    """However a text is cut into blocks, the records are those of the whole text."""

    def records(text: str) -> list[list[str] | None]:
        reader, found = _csv.reader(io.StringIO(text, newline="\n"), delimiter=delimiter, strict=True), []
        while True:
            try:
                found.append(next(reader))
            except StopIteration:
                return [record for record in found if record != []]
            except _csv.Error:
                found.append(None)

    data, found, count = text.encode(), list[list[str] | None](), block
    begin = 0
    while begin < len(data):
        end = end_of_csv(data[begin : begin + count], delimiter)
        if not end and begin + count < len(data):
            count += block
            continue
        end = end or len(data) - begin
        found += records(data[begin : begin + end].decode())
        begin, count = begin + end, block
    assert found == records(text)


@pytest.mark.parametrize("quote", ["", '"'])
def test_a_line_that_is_too_long_is_rejected_once_and_no_part_of_it_is_a_row(tmp_path: Path, quote: str) -> None:
    long = f"{quote}{'y,2' * 2_000_000}{quote}"
    (tmp_path / "t.csv").write_text(f"id,name\n1,{'x' * 900_000}\n2,{long}\n3,z\n")
    for state in None, tmp_path / "db":
        with Session(state=state, progress=False) as db:
            table = db.table("t", COLUMNS)
            table.read_from(csv(tmp_path / "t.csv"), on_error=db.rejects())
            for _ in range(10):
                db.commit()
            assert [(number, len(name)) for number, name in table.records()] == [(1, 900_000), (3, 1)]
            rejected = [(line, why) for _, _, line, _, why in db["rejects"].records()]
            assert rejected == [(3, "the line does not end in 1,048,576 bytes")]


def test_fields_are_as_long_as_records_may_be(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(f'id,name\n1,"{"y" * 2_000_000}"\n')
    rows, rejected = taken(csv(tmp_path / "t.csv", longest=1 << 22))
    assert [(number, len(name)) for number, name in rows] == [(1, 2_000_000)]
    assert not rejected


def test_sessions_that_stop_inside_of_a_long_line_take_no_part_of_it_as_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "BLOCK", 100)
    monkeypatch.setattr(feed, "ROWS", 1)
    (tmp_path / "t.csv").write_text("id,name\n1,a\n" + "2,b" * 300 + "\n3,c\n")
    for _ in range(8):
        with Session(state=tmp_path / "db", progress=False) as db:
            table = db.table("t", COLUMNS)
            table.read_from(csv(tmp_path / "t.csv", follow=True, longest=100), on_error=db.rejects())
            db.commit()
            found = table.records(), [line for _, _, line, *_ in db["rejects"].records()]
    assert found == ([(1, "a"), (3, "c")], [3])
