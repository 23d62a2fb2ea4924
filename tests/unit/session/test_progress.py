"""What a session shows on standard error while something takes long."""

from __future__ import annotations

import errno
import gzip
import io
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest

from differential import Collection
from differential.session import Session, progress
from differential.session.sources import csv, feed, parts, standard_input, tables
from timely.live import display


class Watched:
    """A standard error that notes when a text was written to it."""

    def __init__(self, wanted: str) -> None:
        self.wanted = wanted
        self.text = ""
        self.seen = Event()

    def write(self, text: str) -> int:
        self.text += text
        if self.wanted in self.text:
            self.seen.set()
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return False


class Full(io.StringIO):
    """A standard error on a disk that is full."""

    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let progress be shown at once, and often."""
    monkeypatch.setattr(progress, "QUIET", 0.0)
    monkeypatch.setattr(progress, "PERIOD", 0.001)
    monkeypatch.setattr(display._Plain, "period", 0.0)
    monkeypatch.setattr(feed, "ROWS", 1 << 12)
    monkeypatch.setattr(parts, "BLOCK", 1 << 15)


def watched(monkeypatch: pytest.MonkeyPatch, wanted: str) -> Watched:
    stream = Watched(wanted)
    monkeypatch.setattr(sys, "stderr", stream)
    return stream


def loaded(capsys: pytest.CaptureFixture[str]) -> list[tuple[int, int]]:
    """Return the percentage and the rows of each line about what is loaded."""
    found = re.findall(r"^loading: ([-0-9]+)%, ([0-9,]+) rows, ", capsys.readouterr().err, re.MULTILINE)
    return [(int(share), int(rows.replace(",", ""))) for share, rows in found]


def rounds(t: Any, is_enough: Callable[[], bool]) -> Collection:
    """Count up, a number in a round, until it is enough."""

    def goes_on(column: Any) -> Any:
        time.sleep(0.001)
        return (column < 5) | ((column < 5000) & (not is_enough()))

    def step(numbers: Collection) -> Collection:
        return numbers.concat(numbers.map(lambda x: x + 1).filter(goes_on)).distinct()

    return t.numbers.iterate(step)


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("workers", [1, 2])
def test_a_commit_a_view_and_a_question_that_take_long_show_their_rounds(
    monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    with Session(workers) as db:
        numbers = db.table("numbers", {"x": [0]})
        db.commit()
        stream = watched(monkeypatch, "view 'up': round ")
        db.view("up", lambda t: rounds(t, lambda: stream.seen.is_set()))
        assert stream.seen.is_set()
        stream = watched(monkeypatch, "commit 2: round ")
        numbers.insert(x=-100)
        db.commit()
        assert stream.seen.is_set()
        assert "records/s" in stream.text
        stream = watched(monkeypatch, "the question: round ")
        db.ask(lambda t: rounds(t, lambda: stream.seen.is_set()))
        assert stream.seen.is_set()


@pytest.mark.usefixtures("soon")
def test_a_definition_that_takes_long_shows_for_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = watched(monkeypatch, "view 'slow': for ")

    def define(t: Any) -> Any:
        assert stream.seen.wait(30)
        return t.numbers

    with Session() as db:
        db.table("numbers", {"x": [0]})
        db.view("slow", define)
        assert stream.seen.is_set()


@pytest.mark.usefixtures("soon")
def test_nothing_records_what_a_worker_does_when_it_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    with Session() as db:
        stream = watched(monkeypatch, "view 'up': round ")
        db.table("numbers", {"x": [0]})
        db.commit()
        db.view("up", lambda t: rounds(t, lambda: stream.seen.is_set()))
        db.commit()
        (site,) = db._catalog.engine._sites.values()
        until = time.monotonic() + 30
        while site.worker.log.kinds:  # the worker stops recording in its next step
            assert time.monotonic() < until, f"still records {site.worker.log.kinds}"
            time.sleep(0.001)


def test_what_is_quick_and_a_session_without_progress_show_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Session() as db:
        db.table("numbers", {"x": [0]})
        db.view("up", lambda t: rounds(t, lambda: True))
        db.commit()
    monkeypatch.setattr(progress, "QUIET", 0.0)
    monkeypatch.setattr(display._Plain, "period", 0.0)
    with Session(progress=False) as db:
        db.table("numbers", {"x": [0]})
        db.view("up", lambda t: rounds(t, lambda: True))
        db.commit()
        db.run()
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("soon")
def test_of_two_threads_that_wait_one_shows_something_and_both_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = watched(monkeypatch, "the question: round ")
    with Session() as db:
        db.table("numbers", {"x": [0]})
        db.commit()
        found: list[int] = []

        def ask() -> None:
            found.append(len(db.ask(lambda t: rounds(t, lambda: stream.seen.is_set()))))

        threads = [Thread(target=ask) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert len(found) == 2
        assert stream.seen.is_set()


@pytest.mark.usefixtures("soon")
def test_files_that_are_loaded_show_rows_and_the_share_of_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "x\n" + "".join(f"{number}\n" for number in range(40_000))
    (tmp_path / "a.csv").write_text(text)
    (tmp_path / "b.csv").write_text(text)
    with gzip.open(tmp_path / "c.csv.gz", "wt") as file:
        file.write(text)
    for source, rows in (
        (csv(tmp_path / "a.csv"), 40_000),
        (csv(tmp_path / "*.csv"), 80_000),
        (csv(tmp_path / "c.csv.gz"), 40_000),
    ):
        with Session() as db:
            db.table("numbers", {"x": int}).read_from(source)
            db.run()
            assert len(db["numbers"]) == rows
        shown = loaded(capsys)
        assert len(shown) > 2
        assert shown == sorted(shown)
        assert shown[0][0] < 60
        assert shown[-1][0] > 60
        assert shown[-1][1] <= rows


@pytest.mark.usefixtures("soon")
def test_a_table_in_a_file_shows_rows_alone_and_what_is_followed_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "n.npy", np.arange(30_000))
    with Session() as db:
        db.table("numbers", {"x": int}).read_from(tables(tmp_path / "n.npy"))
        db.run()
    assert re.search(r"^loading: [0-9,]+ rows, ", capsys.readouterr().err, re.MULTILINE)
    (tmp_path / "a.csv").write_text("x\n1\n")
    with Session() as db:
        followed = db.table("numbers", {"x": int})
        followed.read_from(csv(tmp_path / "a.csv", follow=True))
        db.run(until=lambda: len(followed) == 1)
    assert loaded(capsys) == []


@pytest.mark.usefixtures("soon")
def test_only_what_this_run_loads_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("x\n" + "1\n" * 40_000)
    with Session() as db:
        numbers = db.table("numbers", {"x": int})
        numbers.read_from(csv(tmp_path / "a.csv"))
        db.run()
        capsys.readouterr()
        numbers.read_from(csv(tmp_path / "b.csv"))
        db.run()
    shown = loaded(capsys)
    assert shown[0][0] < 60
    assert all(rows <= 40_000 for _, rows in shown)


@pytest.mark.usefixtures("soon")
def test_nothing_is_shown_of_files_that_were_read_and_in_a_thread(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.csv").write_text("x\n" + "1\n" * 1000)
    with Session() as db:
        numbers = db.table("numbers", {"x": int})
        numbers.read_from(csv(tmp_path / "a.csv"))
        db.run()
        capsys.readouterr()
        end = time.monotonic() + 0.05
        db.run(until=lambda: time.monotonic() > end)
        numbers.read_from(csv(tmp_path / "a.csv", name="again"))
        run = db.start()
        while len(numbers) < 2000:
            time.sleep(0.001)
        run.stop()
    assert "loading" not in capsys.readouterr().err


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("stream", [None, Full(), io.StringIO()])
def test_where_standard_error_cannot_be_written_to_everything_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream: io.StringIO | None
) -> None:
    (tmp_path / "a.csv").write_text("x\n" + "1\n" * 40_000)
    monkeypatch.setattr(sys, "stderr", stream)
    if type(stream) is io.StringIO:
        stream.close()
    with Session() as db:
        numbers = db.table("numbers", {"x": int})
        numbers.read_from(csv(tmp_path / "a.csv"))
        db.run()
        up = db.view("up", lambda t: rounds(t, lambda: True))
        numbers.insert(x=0)
        db.commit()
        assert len(numbers) == 40_001
        assert len(up) == 5
        assert not db._catalog.engine.progress._showing.locked()


def test_a_file_that_is_gone_and_standard_input_have_no_share(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n")
    with Session() as db:
        gone = db.table("numbers", {"x": int}).read_from(csv(tmp_path / "a.csv"))
        (tmp_path / "a.csv").unlink()
        assert gone.extent == (0, 0.0, 0)
    with Session() as db:
        piped = db.table("numbers", {"x": int}).read_from(standard_input())
        assert piped.extent == (0, 0.0, None)


@pytest.mark.usefixtures("soon")
def test_a_long_commit_of_what_was_loaded_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.csv").write_text("x\n0\n")
    stream = watched(monkeypatch, "commit 1: round ")
    with Session() as db:
        db.table("numbers", {"x": int}).read_from(csv(tmp_path / "a.csv"))
        db.view("up", lambda t: rounds(t, lambda: stream.seen.is_set()))
        db.run()
    assert stream.seen.is_set()


@pytest.mark.usefixtures("soon")
def test_a_run_may_run_another_one(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n" + "1\n" * 40_000)
    with Session() as db:
        numbers = db.table("numbers", {"x": int})
        numbers.read_from(csv(tmp_path / "a.csv"))
        commits: list[int] = []

        def run_again() -> bool:
            if len(numbers) and not commits:
                commits.append(db.run())
            return bool(commits)

        db.run(until=run_again)
        assert len(numbers) == 40_000
        assert not db._catalog.engine.progress._loading


@pytest.mark.usefixtures("soon")
def test_shares_are_those_of_the_files_there_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in "abcd":
        (tmp_path / f"{name}.csv").write_text("x\n" + "1\n" * 20_000)
    with Session() as db:
        numbers = db.table("numbers", {"x": int})
        numbers.read_from(csv(tmp_path / "a.csv"))
        db.run()
        (tmp_path / "a.csv").unlink()
        numbers.read_from(csv(tmp_path / "[bc].csv"))

        def change() -> bool:
            if (tmp_path / "b.csv").exists() and len(numbers) >= 42_000:
                (tmp_path / "b.csv").unlink()
                numbers.read_from(csv(tmp_path / "d.csv"))
            return False

        db.run(until=change)
        assert len(numbers) == 80_000
    shares = [share for share, _ in loaded(capsys)]
    assert len(shares) > 4
    assert 0 <= min(shares) <= max(shares) <= 100
