"""A directory has one file for each commit, whatever is killed, removed or added in between."""

from __future__ import annotations

import datetime as dt
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars
import pyarrow as pa
import pytest
from hypothesis import example, given, settings, strategies as st
from pyarrow import dataset, parquet as files

from differential.data.disk import OsDisk
from differential.session import Change, Session
from differential.session.sinks import Mark, Outlet, Sink, arrow, npy, parquet
from differential.session.sinks.directory import DirectoryWriter
from differential.session.sources import tables
from timely.errors import DataError, SessionError, StoreError
from timely.lowlevel import typed

MAKERS: dict[str, Callable[..., Sink]] = {"parquet": parquet, "arrow": arrow, "npy": npy}
Changes = list[tuple[int, int, int]]
"""(x, time, diff) for each row of the files."""


def read(directory: Path) -> Changes:
    """Return the rows of all files, as readers find them by a pattern."""
    return [
        row
        for path in sorted(directory.glob("*.*"))
        if not path.name.startswith(".")
        for row in {
            ".parquet": lambda path: polars.read_parquet(path).rows(),
            ".arrow": lambda path: polars.read_ipc(path).rows(),
            ".npy": lambda path: np.load(path).tolist(),
        }[path.suffix](path)
    ]


def named(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir() if not path.name.startswith("."))


def change(time: int, *rows: tuple[int, int]) -> Change:
    """Return a change of rows, each with its difference."""
    return Change(time, ("x",), (np.array([x for x, _ in rows]),), np.array([diff for _, diff in rows]))


@pytest.mark.parametrize("form", MAKERS)
def test_each_commit_with_changes_is_a_file(tmp_path: Path, form: str) -> None:
    path = tmp_path / "rows"
    for number in range(2):
        with Session(state=tmp_path / "db") as db:
            numbers = db.table("numbers", {"x": int})
            view = db.view("all", lambda t: t.numbers, durable=True)
            delivery = view.write_to(MAKERS[form](path))
            numbers.insert(x=[number, number, 7])
            db.commit()
            db.commit()
            assert (delivery.commit, delivery.state) == (2 * number + 2, "is up to date")
    assert named(path) == [f"{commit:012d}.{form}" for commit in (0, 1, 3)]
    assert read(path) == [(0, 1, 2), (7, 1, 1), (1, 3, 2), (7, 3, 1)]


@pytest.mark.parametrize("form", MAKERS)
def test_the_columns_of_a_view_without_rows_are_in_a_file(tmp_path: Path, form: str) -> None:
    with Session() as db:
        numbers = db.table("numbers", {"x": int, "y": float})
        db.view("all", lambda t: t.numbers.select("y", "x")).write_to(MAKERS[form](tmp_path / "rows"))
        assert named(tmp_path / "rows") == [f"000000000000.{form}"]
        assert read(tmp_path / "rows") == []
        numbers.insert(x=1, y=0.5)
        db.commit()
    assert read(tmp_path / "rows") == [(0.5, 1, 1, 1)]


def test_other_programs_read_all_files_of_a_directory(tmp_path: Path) -> None:
    with Session() as db:
        numbers = db.table("numbers", {"x": int})
        view = db.view("all", lambda t: t.numbers)
        view.write_to(parquet(tmp_path / "rows"))
        view.write_to(arrow(tmp_path / "arrow"))
        for number in range(3):
            numbers.insert(x=number)
            db.commit()
    expected = [(number, number + 1, 1) for number in range(3)]
    pattern = f"{tmp_path}/rows/*.parquet"
    assert polars.scan_parquet(pattern).collect().rows() == expected
    assert polars.scan_ipc(f"{tmp_path}/arrow/*.arrow").collect().rows() == expected
    assert duckdb.sql(f"select * from '{pattern}' order by time").fetchall() == expected
    assert dataset.dataset(tmp_path / "rows").to_table().num_rows == 3


VALUES: dict[str, tuple[str, list[Any], pa.DataType]] = {
    "whole": ("int64", [1, -2], pa.int64()),
    "maybe": ("int64?", [7, None], pa.int64()),
    "large": ("uint64", [2**64 - 1, 0], pa.uint64()),
    "float": ("float64", [float("inf"), 0.5], pa.float64()),
    "narrow": ("float32", [0.25, 0.5], pa.float32()),
    "text": ("text", ['a,"b"\n\0', ""], pa.string()),
    "note": ("text?", [None, ""], pa.string()),
    "flag": ("bool", [True, False], pa.bool_()),
    "bytes": ("bytes?", [b"\0\xff", None], pa.binary()),
    "day": ("date", [dt.date(2026, 2, 28), None], pa.date32()),
    "moment": ("timestamp[us]", [dt.datetime(2026, 2, 28, 1, 2, 3, 4), None], pa.timestamp("us")),
    "zone": ("timestamp[us, Europe/Rome]", [dt.datetime(2026, 2, 28, tzinfo=dt.UTC), None], None),
    "exact": ("timestamp[ns]", [np.datetime64("2026-02-28T01:02:03.000000004"), None], pa.timestamp("ns")),
    "clock": ("time[us]", [dt.time(1, 2, 3), None], pa.time64("us")),
    "lasted": ("duration[us]", [dt.timedelta(seconds=3), None], pa.duration("us")),
    "price": ("decimal(9, 2)", [Decimal("1.50"), None], pa.decimal128(9, 2)),
    "list": ("value", [[1, None], None], pa.list_(pa.int64())),
    "struct": ("value", [{"a": "x"}, None], pa.struct([("a", pa.string())])),
}


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_files_have_the_types_of_frames_and_a_source_reads_the_same(tmp_path: Path, form: str) -> None:
    data = {name: typed(values, of) for name, (of, values, _) in VALUES.items()}
    with Session() as db:
        rows = db.table("rows", data)
        view = db.view("all", lambda t: t.rows)
        db.commit()
        view.write_to(MAKERS[form](tmp_path / "rows"))
        copy = db.table("copy", {name: typed([], of) for name, (of, _, _) in VALUES.items()} | {"time": int})
        copy.read_from(tables(tmp_path / "rows"))
        db.run()
        assert [row[:-1] for row in copy.records()] == rows.records()
        [path] = (tmp_path / "rows").glob(f"*.{form}")
        schema = files.read_schema(path) if form == "parquet" else pa.ipc.open_file(pa.OSFile(str(path))).schema
        assert schema.names == [*VALUES, "time", "diff"]
        assert schema.remove_metadata() == view.to_arrow().schema.append(pa.field("time", pa.int64())).append(
            pa.field("diff", pa.int64())
        )
    for name, (_, _, of) in VALUES.items():
        assert of in (None, schema.field(name).type)


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_the_types_of_lists_are_those_of_the_file_before(tmp_path: Path, form: str) -> None:
    """A file whose lists are all empty, or whose numbers are all whole, would be of a narrower type."""
    path = tmp_path / "rows"
    with Session() as db:
        rows = db.table("rows", {"list": [[0.5]]})
        view = db.view("all", lambda t: t.rows)
        db.commit()
        delivery = view.write_to(MAKERS[form](path))
        for value in [[]], [[2]], [None]:
            rows.insert(list=value)
            db.commit()
        scan = polars.scan_parquet if form == "parquet" else polars.scan_ipc
        found = scan(f"{path}/*.{form}").collect()
        assert (found.schema["list"], found["list"].to_list()) == (
            polars.List(polars.Float64),
            [[0.5], [], [2.0], None],
        )
        assert delivery.state == "is up to date"


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_lists_of_another_type_than_before_are_an_error_that_names_both_files(tmp_path: Path, form: str) -> None:
    with opened(tmp_path / "rows", form) as writer:
        writer.mark()
        one, two = (Change(at, ("x",), (typed([[at or "a"]], "value"),), np.array([1])) for at in (0, 1))
        writer.write([one], Mark("stream", 0))
        with pytest.raises(DataError, match=r"0001.\w* cannot be written: .* other types than in .*0000.\w*: .* list"):
            writer.write([two], Mark("stream", 1))


@pytest.mark.parametrize(
    ("values", "types"),
    [(["a"], "text"), (typed([1, None], "int64?"), "int64[?]"), (typed([dt.date(2026, 1, 1)], "date"), "date")],
)
def test_an_array_refuses_columns_that_are_not_numbers(tmp_path: Path, values: Any, types: str) -> None:
    with Session() as db:
        db.table("rows", {"x": values})
        view = db.view("all", lambda t: t.rows)
        db.commit()
        with pytest.raises(
            SessionError, match=rf"view 'all' .*1.npy cannot be written: column 'x' is of type {types},"
        ):
            view.write_to(npy(tmp_path / "rows"))
    assert named(tmp_path / "rows") == []


def test_an_array_has_a_field_for_each_column(tmp_path: Path) -> None:
    with Session() as db:
        large = {"large": typed([2**64 - 1], "uint64")}
        db.table(
            "rows", {"größe": [0.5], "n": np.array([1], np.int64), "is": [True], "narrow": np.float32([2.0])} | large
        )
        view = db.view("all", lambda t: t.rows)
        db.commit()
        view.write_to(npy(tmp_path / "rows"))
    array = np.load(tmp_path / "rows" / "000000000001.npy")
    assert array.dtype.names == ("größe", "n", "is", "narrow", "large", "time", "diff")
    assert [array.dtype[place].str for place in range(7)] == ["<f8", "<i8", "|b1", "<f4", "<u8", "<i8", "<i8"]
    assert array.tolist() == [(0.5, 1, True, 2.0, 2**64 - 1, 1, 1)]


@pytest.mark.parametrize("how", ["removed", "another", "mark removed", "mark damaged", "mark of another form"])
def test_a_directory_without_the_files_that_were_written_is_refused(tmp_path: Path, how: str) -> None:
    path = tmp_path / "rows"
    for is_first in True, False:
        with Session(state=tmp_path / "db") as db:
            numbers = db.table("numbers", {"x": int})
            view = db.view("all", lambda t: t.numbers, durable=True)
            if is_first:
                view.write_to(parquet(path))
                for number in range(3):
                    numbers.insert(x=number)
                    db.commit()
                continue
            if how == "removed":
                (path / "000000000002.parquet").unlink()
            elif how == "another":
                polars.DataFrame({"x": [5]}).write_parquet(path / "000000000002.parquet")
            elif how == "mark removed":
                (path / ".mark").unlink()
            else:
                (path / ".mark").write_text("[" if how == "mark damaged" else json.dumps({"size": 3}))
            with pytest.raises(SessionError, match=r"it cannot go on, because the sink has .* replaces its contents"):
                view.write_to(parquet(path))
            assert len(named(path)) == (3 if how == "removed" else 4)
            view.write_to(parquet(path), existing="replace")
    assert read(path) == [(0, 3, 1), (1, 3, 1), (2, 3, 1)]


def test_a_file_that_is_removed_while_the_session_writes_ends_the_delivery(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    with Session() as db:
        numbers = db.table("numbers", {"x": [1]})
        view = db.view("all", lambda t: t.numbers)
        db.commit()
        delivery = view.write_to(parquet(path), patience=0.1)
        (path / "000000000001.parquet").unlink()
        numbers.insert(x=2)
        with pytest.raises(SessionError, match="does not have the files that were written"):
            db.commit()
        assert delivery.is_over


def test_a_directory_that_is_removed_is_made_again_with_all_rows(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    with Session() as db:
        numbers = db.table("numbers", {"x": [1]})
        view = db.view("all", lambda t: t.numbers)
        db.commit()
        view.write_to(npy(path))
        for each in path.iterdir():
            each.unlink()
        path.rmdir()
        numbers.insert(x=2)
        db.commit()
    assert read(path) == [(1, 2, 1), (2, 2, 1)]


def test_files_of_other_programs_are_refused_and_never_removed(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    path.mkdir()
    (path / "part.parquet").write_bytes(b"mine")
    (path / "notes.txt").write_bytes(b"mine")
    with Session() as db:
        db.table("numbers", {"x": [1]})
        view = db.view("all", lambda t: t.numbers)
        db.commit()
        for existing in "stop", "replace":
            with pytest.raises(SessionError, match=r"part.parquet is not a file of the sink"):
                view.write_to(parquet(path), existing=existing)  # type: ignore[arg-type]
        view.write_to(npy(path))
        with pytest.raises(SessionError, match="being written to by another session"):
            view.write_to(npy(path, name="again"), patience=0)
    assert named(path) == ["000000000001.npy", "notes.txt", "part.parquet"]


def test_what_is_not_a_directory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(SessionError, match=r"there is no directory .*missing for the directory of a sink .*make it"):
        parquet(tmp_path / "missing" / "rows")
    with Session() as db:
        db.table("numbers", {"x": [1]})
        view = db.view("all", lambda t: t.numbers.named("time"))
        with pytest.raises(SessionError, match="file is not a directory"):
            view.write_to(arrow(tmp_path / "file"))
        monkeypatch.chdir(tmp_path)
        sink = arrow("rows/")
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        with pytest.raises(SessionError, match="has a column 'time', the name of one that the sink adds"):
            view.write_to(sink)
    assert (tmp_path / "rows").is_dir()


class Killed(BaseException):
    """The end of a program."""


class _Disk(OsDisk):
    """A disk on which the program is killed before its n-th change, counted from 0."""

    def __init__(self, left: int) -> None:
        self.left = left

    def _change(self) -> None:
        if not self.left:
            raise Killed
        self.left -= 1

    def write(self, path: str, data: bytes) -> None:
        if not self.left:
            Path(path).write_bytes(data[: len(data) // 2])
        self._change()
        super().write(path, data)

    def rename(self, old: str, new: str) -> None:
        self._change()
        super().rename(old, new)

    def remove(self, path: str) -> None:
        self._change()
        super().remove(path)


@contextmanager
def opened(path: Path, form: str, left: int = 1_000) -> Iterator[DirectoryWriter]:
    """Open a sink for a program that is killed after so many changes of the disk."""
    sink: Any = MAKERS[form](path)
    writer = sink.open(Outlet("all", ("x",), (np.empty(0, np.int64),)))
    writer._disk = _Disk(left)
    try:
        yield writer
    except Killed:
        pass
    finally:
        writer.close()


@settings(max_examples=40, deadline=None)
@example(kills=[0, 0, 6, 8, 8, 0], form="parquet", emptied=5)
@given(kills=st.lists(st.integers(0, 9), max_size=8), form=st.sampled_from([*MAKERS]), emptied=st.integers(0, 5))
def test_a_killed_writer_has_written_each_commit_once(
    tmp_path_factory: pytest.TempPathFactory, kills: list[int], form: str, emptied: int
) -> None:
    """The oracle: the changes of all commits. A file that readers may have seen is never changed or removed."""
    path = tmp_path_factory.mktemp("sink") / "rows"
    commits = {number: change(number, (number, 1), (-number, number)) for number in range(1, 6)}
    seen: dict[str, bytes] = {}
    is_emptied = False
    for run, left in enumerate([*kills, 1_000]):
        with opened(path, form, left) as writer:
            mark = writer.mark()
            if run == emptied and kills:
                is_emptied = True
                writer.clear()
                mark = None
            if mark is None:
                assert is_emptied or not seen
                seen, is_emptied = {}, False
                writer.write([], Mark("stream", 0))
            else:
                is_emptied = False
                assert mark == ("stream", int(max(seen).partition(".")[0]))
            for first in range(1 if mark is None else mark.commit + 1, 6, 2):
                several = [commits[number] for number in range(first, min(first + 2, 6))]
                writer.write(several, Mark("stream", several[-1].time))
        found = {name: (path / name).read_bytes() for name in named(path)}
        if not is_emptied:
            assert seen.items() <= found.items()
            seen = found
    assert named(path) == [f"{number:012d}.{form}" for number in range(6)]
    assert Counter(read(path)) == Counter(
        [(x, number, diff) for number in range(1, 6) for x, diff in ((number, 1), (-number, number))]
    )
    assert sorted(each for each in os.listdir(path) if each.startswith(".")) == [".lock", ".mark"]


def test_a_writer_of_a_directory_that_another_one_has_made_again_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    with opened(path, "npy") as writer:
        writer.mark()
        writer.write([change(1, (5, 1))], Mark("stream", 1))
        path.rename(tmp_path / "moved")
        path.mkdir()
        with pytest.raises(StoreError, match="was moved or removed"):
            writer.write([change(2, (6, 1))], Mark("stream", 2))
    assert named(path) == []


def test_what_parquet_cannot_hold_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    with opened(tmp_path / "rows", "parquet") as writer:
        writer.mark()
        of = typed([{}], "value")
        with pytest.raises(DataError, match=r"000000000001.parquet cannot be written: Parquet cannot hold"):
            writer.write([Change(1, ("x",), (of,), np.array([1]))], Mark("stream", 1))
    assert named(tmp_path / "rows") == []
