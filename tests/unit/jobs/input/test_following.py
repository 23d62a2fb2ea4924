"""A followed text is read as it grows, whole lines only, and is never waited for."""

from __future__ import annotations

import gzip
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from differential.jobs.input import changes, source
from differential.jobs.input.changes import EpochChange
from differential.jobs.input.faults import Faults
from differential.jobs.input.follow import ArrivedLines, Followed as Text
from differential.jobs.input.graph import open_graph
from differential.jobs.input.layout import InputLayout
from differential.jobs.input.names import Names
from differential.jobs.input.open_changes import open_changes
from tests.unit.jobs.input.reading import PLAIN, rows
from tests.unit.jobs.input.test_changes import plain
from timely.errors import DataError


class Followed:
    """Changes that are followed: `new` returns those that are there."""

    def __init__(self, path: str, names: Names | None = None) -> None:
        self.faults = Faults("report")
        self.names = names
        self._epochs = open_changes(path, names, PLAIN, self.faults, follow=True).epochs()

    def new(self) -> list[tuple[Any, ...]]:
        """Return the changes that arrived; two polls without any show that there are no more."""
        found: list[tuple[Any, ...]] = []
        nothing = 0
        while nothing < 2:
            each = next(self._epochs)
            nothing = nothing + 1 if each is None else 0
            if each is not None:
                found.append(plain(each, self.names))
        return found

    def rest(self) -> Iterator[EpochChange | None]:
        return self._epochs

    def close(self) -> None:
        self._epochs.close()  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def never_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Complete an epoch only when a later one begins."""
    monkeypatch.setattr(changes, "SETTLED", 1e9)


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_lines_are_read_as_they_are_written(tmp_path: Path) -> None:
    path = tmp_path / "changes"
    path.touch()
    followed = Followed(str(path))
    assert followed.new() == []
    append(path, "# form\n")
    assert followed.new() == []
    append(path, "+ 1 2\n- 1")
    assert followed.new() == [(1, 2, [(1, 1, 2)])]
    append(path, " 2")
    assert followed.new() == []
    append(path, "\n+ 3 4\n")
    assert followed.new() == [(2, 3, [(-1, 1, 2)]), (3, 4, [(1, 3, 4)])]
    append(path, "+ 3\n+ 5 5\n")
    assert followed.new() == [(4, 6, [(1, 5, 5)])]
    assert [(fault.line, fault.text) for fault in followed.faults.take()] == [(5, "+ 3")]
    followed.close()


def test_names_are_numbered_as_they_appear(tmp_path: Path) -> None:
    path = tmp_path / "changes"
    path.write_text("+ b new\n")
    names = Names()
    names.begin(pa.array(["a", "b"]))
    followed = Followed(str(path), names)
    assert followed.new() == [(1, 1, [(1, "b", "new")])]
    append(path, "+ newer new\n")
    assert followed.new() == [(2, 2, [(1, "newer", "new")])]
    assert names.text(range(4)) == ["a", "b", "new", "newer"]
    followed.close()


def test_an_epoch_is_complete_when_a_later_one_begins(tmp_path: Path) -> None:
    path = tmp_path / "changes"
    path.write_text("1 + 1 2\n1 + 3 4\n2 + 5 6\n")
    followed = Followed(str(path))
    assert followed.new() == [(1, 1, [(1, 1, 2), (1, 3, 4)])]
    append(path, "2 - 5 6\n")
    assert followed.new() == []
    append(path, "1 + 7 7\n3 + 5 6\n")
    assert followed.new() == [(2, 3, [(1, 5, 6), (-1, 5, 6)])]
    assert [(fault.line, fault.text) for fault in followed.faults.take()] == [(5, "1 + 7 7")]
    followed.close()


def test_an_epoch_is_complete_when_nothing_more_arrives_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "changes"
    path.write_text("1 + 1 2\n")
    followed = Followed(str(path))
    assert followed.new() == []
    monkeypatch.setattr(changes, "SETTLED", 0)
    assert followed.new() == [(1, 1, [(1, 1, 2)])]
    append(path, "1 + 3 4\n")
    assert followed.new() == [(1, 2, [(1, 3, 4)])]
    followed.close()


def test_a_file_that_is_replaced_is_read_from_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "changes"
    path.write_text("+ 1 2\n+ 3 4")
    followed = Followed(str(path))
    assert followed.new() == [(1, 1, [(1, 1, 2)])]
    path.rename(tmp_path / "old")
    assert followed.new() == []
    (tmp_path / "new").write_text("- 1 2\n- x 5\n")
    (tmp_path / "new").rename(path)
    assert followed.new() == [(2, 2, [(1, 3, 4)]), (3, 1, [(-1, 1, 2)])]
    assert [fault.line for fault in followed.faults.take()] == [2]
    append(path, "- 3 4\n")
    assert followed.new() == [(4, 3, [(-1, 3, 4)])]
    followed.close()


def test_a_line_that_is_appended_just_before_a_file_is_replaced_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "changes"
    path.write_text("+ 1 2\n")
    followed = Text(str(path))
    assert followed.poll() == ArrivedLines(b"+ 1 2\n", 1)
    stat = os.stat

    def replacing(*arguments: Any, **options: Any) -> os.stat_result:
        monkeypatch.setattr(os, "stat", stat)
        append(path, "+ 3 4\n")
        path.rename(tmp_path / "old")
        path.write_text("+ 5 6\n")
        return stat(*arguments, **options)

    monkeypatch.setattr(os, "stat", replacing)  # called when the end has been read
    found = [followed.poll() for _ in range(4)]
    assert [each for each in found if each is not None] == [ArrivedLines(b"+ 3 4\n", 2), ArrivedLines(b"+ 5 6\n", 1)]
    followed.close()


def test_headers_of_a_file_and_of_its_replacement_are_no_changes(tmp_path: Path) -> None:
    path = tmp_path / "changes"
    path.write_text("sign,source,target\n+,1,2\n")
    followed = Followed(str(path))
    assert followed.new() == [(1, 2, [(1, 1, 2)])]
    (tmp_path / "new").write_text("sign,source,target\n-,1,2\n")
    (tmp_path / "new").rename(path)
    assert followed.new() == [(2, 2, [(-1, 1, 2)])]
    assert followed.faults.count == 0
    followed.close()


def test_lines_before_the_first_change_are_faults(tmp_path: Path) -> None:
    path = tmp_path / "changes"
    path.write_text("hello\n")
    followed = Followed(str(path))
    assert followed.new() == []
    append(path, "# comment\nhello\n+ 1 2\n")
    assert followed.new() == [(1, 4, [(1, 1, 2)])]
    assert [fault.line for fault in followed.faults.take()] == [1, 3]
    followed.close()
    stopped = open_changes(str(path), None, PLAIN, Faults(), follow=True).epochs()
    with pytest.raises(DataError, match="line 1: has 1 column instead of 3"):
        next(stopped)


def test_a_file_that_is_truncated_is_read_from_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "changes"
    path.write_text("+ 1 2\n+ 3 4\n")
    followed = Followed(str(path))
    assert len(followed.new()) == 2
    os.truncate(path, 0)
    assert followed.new() == []
    append(path, "- 7 8\n")
    assert followed.new() == [(3, 1, [(-1, 7, 8)])]
    followed.close()


def test_a_named_pipe_is_followed_from_writer_to_writer(tmp_path: Path) -> None:
    path = tmp_path / "changes"
    os.mkfifo(path)
    followed = Followed(str(path))
    assert followed.new() == []
    for ordinal in (1, 2):
        writer = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        os.write(writer, b"+ 1 ")
        assert followed.new() == []
        os.write(writer, b"2\n")
        assert followed.new() == [(ordinal, ordinal, [(1, 1, 2)])]
        os.close(writer)
        assert followed.new() == []
    followed.close()


@pytest.fixture
def standard_input() -> Iterator[int]:
    """Yield the other end of what is standard input during a test."""
    saved = os.dup(0)
    read, write = os.pipe()
    os.dup2(read, 0)
    os.close(read)
    try:
        yield write
    finally:
        os.dup2(saved, 0)
        os.close(saved)


def test_standard_input_is_followed_to_its_end(standard_input: int) -> None:
    followed = Followed("-")
    os.write(standard_input, b"5 + 1 2\n5 + 3")
    assert followed.new() == []
    os.write(standard_input, b" 4")
    os.close(standard_input)
    assert [plain(each) for each in followed.rest() if each is not None] == [(5, 1, [(1, 1, 2), (1, 3, 4)])]


def test_changes_on_standard_input(standard_input: int) -> None:
    os.write(standard_input, b"+ 1 2\n")
    os.close(standard_input)
    assert [plain(each) for each in open_changes("-", None, PLAIN, Faults()).epochs()] == [(1, 1, [(1, 1, 2)])]


@pytest.mark.parametrize("data", [b"1 2\n3 x\n4 5", gzip.compress(b"1 2\n3 x\n4 5", mtime=0)])
def test_a_graph_on_standard_input_is_read_by_the_first_worker(standard_input: int, data: bytes) -> None:
    os.write(standard_input, data)
    os.close(standard_input)
    faults = Faults("report")
    graph = open_graph("-", InputLayout(names=False), faults)
    assert graph.label == "standard input"
    assert graph.total is None
    assert list(graph.share(1, 2)) == []
    assert rows(graph, 2) == [(1, 2), (4, 5)]
    assert [(fault.file, fault.line) for fault in faults.take()] == [("standard input", 2)]
    assert rows(open_graph("-", PLAIN, faults, is_first=False), 2) == []


def test_an_arrow_stream_on_standard_input(standard_input: int) -> None:
    table = pa.table({"a": [1, 2, 3], "b": [4, 5, 6]})
    with os.fdopen(standard_input, "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    assert rows(open_graph("-", PLAIN, Faults()), 2) == [(1, 4), (2, 5), (3, 6)]


def test_formats_that_need_a_file(standard_input: int) -> None:
    os.write(standard_input, b"PAR1" + bytes(100))
    os.close(standard_input)
    with pytest.raises(DataError, match="standard input has a format that cannot be read from a pipe"):
        open_graph("-", PLAIN, Faults())


def test_a_graph_in_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "graph"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=("1 2\n3 4\n",))
    writer.start()
    assert rows(open_graph(str(path), PLAIN, Faults()), 3) == [(1, 2), (3, 4)]
    writer.join(10)


def test_only_plain_text_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "changes"
    path.write_bytes(gzip.compress(b"+ 1 2\n"))
    with pytest.raises(DataError, match="cannot be followed: only uncompressed text can"):
        open_changes(str(path), None, PLAIN, Faults(), follow=True)
    with pytest.raises(DataError, match=r"cannot read .*: No such file"):
        open_changes(str(tmp_path / "none"), None, PLAIN, Faults(), follow=True)


def test_nothing_waits(tmp_path: Path) -> None:
    path = tmp_path / "changes"
    os.mkfifo(path)
    followed = Followed(str(path))
    begun = time.monotonic()
    for _ in range(100):
        assert next(followed.rest()) is None
    assert time.monotonic() - begun < 5
    followed.close()
    assert source.is_stream(str(path))
