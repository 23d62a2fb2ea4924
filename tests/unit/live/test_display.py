"""Progress where standard error is not a terminal, in a notebook, and of a worker on another thread."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from timely.live import display as module
from timely.live.display import Display
from timely.observe.events import MessageSent


class Clock:
    """A clock that a test moves."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now


class Log:
    """A log that has one listener at most."""

    def __init__(self) -> None:
        self.listener: Callable[[list[Any]], None] | None = None

    def listen(self, listener: Callable[[list[Any]], None], *kinds: Any) -> Callable[[], None]:
        assert kinds == (MessageSent,)
        self.listener = listener
        return self.forget

    def forget(self) -> None:
        self.listener = None


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "clock", clock)
    return clock


def test_a_line_every_ten_seconds_has_share_rate_and_what_is_left(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with Display(True) as display:
        display.begin("reading edges.txt", 400)
        for second in range(1, 31):
            clock.now += 1
            display.advance(10 * second, 1000 * second, "edges")
    assert capsys.readouterr().err.splitlines() == [
        "reading edges.txt: 25%, 10,000 edges, 1,000/s, about 30 s left, for 10 s",
        "reading edges.txt: 50%, 20,000 edges, 1,000/s, about 20 s left, for 20 s",
        "reading edges.txt: 75%, 30,000 edges, 1,000/s, about 10 s left, for 30 s",
    ]


@pytest.mark.parametrize(
    ("is_shown", "seconds", "is_endless"), [(True, 9, False), (False, 90, False), (True, 90, True)]
)
def test_a_short_job_a_quiet_one_and_one_that_follows_print_nothing(
    clock: Clock, capsys: pytest.CaptureFixture[str], is_shown: bool, seconds: int, is_endless: bool
) -> None:
    with Display(is_shown) as display:
        display.begin("making changes", None, is_endless=is_endless)
        for second in range(seconds):
            clock.now += 1
            display.advance(second, second, "changes")
            display.computing()
    assert capsys.readouterr().err == ""


def test_the_round_of_a_loop_is_shown_and_its_records_are_counted_for_a_tenth_of_the_time(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    log, dataflow = Log(), SimpleNamespace(tracker=SimpleNamespace(), regions=[SimpleNamespace(round=0)])
    listened = 0
    with Display(True) as display:
        display.begin("computing the answer", None)
        end = display.listen(worker(log, dataflow))  # type: ignore[arg-type]
        for tenth in range(1, 301):
            clock.now = 1000.0 + tenth / 10
            dataflow.tracker.fronts = lambda tenth=tenth: [((0, tenth), (1, 0)), ((1,),)]
            dataflow.regions[0].round = 2 * tenth if tenth <= 200 else 0
            if log.listener is not None:
                listened += 1
                log.listener([sent(50)])
            display.computing()
        end()
        assert log.listener is None
    assert capsys.readouterr().err.splitlines() == [
        "computing the answer: round 200, 500 records/s, for 10 s",
        "computing the answer: round 400, 500 records/s, for 20 s",
        "computing the answer: round 300, 500 records/s, for 30 s",
    ]
    assert 3 <= listened <= 30


def worker(log: Log, *dataflows: object, call: object = None) -> SimpleNamespace:
    """Return what a display uses of a worker."""
    return SimpleNamespace(log=log, dataflows=dataflows, call=call)


def sent(records: int) -> MessageSent:
    """Return the record of a message, of which only the number of records counts here."""
    fields = dict.fromkeys(MessageSent._fields, 0)
    return MessageSent(**fields | {"records": records})


class Terminal(io.StringIO):
    """A standard error that is a terminal."""

    def isatty(self) -> bool:
        return True


class Cell(io.StringIO):
    """The output of a notebook's cell."""

    __module__ = "ipykernel.iostream"


def test_in_a_notebook_one_line_is_written_again_and_is_empty_at_the_end(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = Cell()
    monkeypatch.setattr(sys, "stderr", cell)
    with Display(True) as display:
        display.begin("loading", 100)
        for rows in (1000, 20):
            clock.now += 1
            display.advance(50, rows, "rows")
    first, second = "loading: 50%, 1,000 rows, 1,000/s, about 1 s left, for 1 s", "loading: 50%, 20 rows, 10/s"
    written = cell.getvalue().split("\r")
    assert written[:2] == ["", first]
    assert written[2].startswith(second)
    assert len(written[2]) == len(first)
    assert written[3:] == [" " * len(written[2].rstrip()), ""]


@pytest.mark.parametrize("has_rich", [True, False])
def test_what_a_program_prints_goes_where_its_output_goes_while_a_terminal_shows_progress(
    clock: Clock, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, has_rich: bool
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    if not has_rich:
        monkeypatch.setattr(module, "find_spec", lambda name: None)
    with Display(True) as display:
        display.begin("loading", 100)
        clock.now += 1
        display.advance(50, 1000, "rows")
        print("an answer")
    assert capsys.readouterr().out == "an answer\n"
    assert "1,000 rows" in terminal.getvalue()
    assert "an answer" not in terminal.getvalue()


@pytest.mark.parametrize("name", ["graph[final].txt", "a[/b].txt"])
def test_a_terminal_shows_the_name_of_a_file_as_it_is(name: str, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with Display(True) as display:
        display.begin(f"reading {name}", 100)
        clock.now += 1
        display.advance(50, 1000, "rows")
    assert f"reading {name}" in terminal.getvalue()


def test_a_worker_on_another_thread_begins_and_ends_to_count_in_its_own_steps(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    log, calls = Log(), list[Callable[[], None]]()

    def step() -> None:
        while calls:
            calls.pop(0)()

    with Display(True) as display:
        display.begin("commit 3", None, began=clock.now - 9)
        end = display.listen(worker(log, call=calls.append), is_own=False)  # type: ignore[arg-type]
        clock.now += 0.5
        display.computing()
        display.computing()
        assert (log.listener, len(calls)) == (None, 1)
        step()
        assert log.listener is not None
        log.listener([sent(7)])
        clock.now += 0.25
        display.computing()
        assert log.listener is not None
        step()
        assert log.listener is None
        clock.now += 0.25
        display.computing()
        end()
        step()
    assert capsys.readouterr().err == "commit 3: 28 records/s, for 10 s\n"


def test_a_worker_that_steps_only_after_the_end_counts_nothing(clock: Clock) -> None:
    log, calls = Log(), list[Callable[[], None]]()
    with Display(True) as display:
        display.begin("commit 3", None)
        end = display.listen(worker(log, call=calls.append), is_own=False)  # type: ignore[arg-type]
        for _ in range(30):
            clock.now += 1
            display.computing()
        end()
    assert len(calls) == 2
    for call in calls:
        call()
    assert log.listener is None


class Writer:
    """A standard error of a program that hands what is written to its log."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> None:
        self.text += text


@pytest.mark.parametrize("stream", [None, Writer()])
def test_a_standard_error_that_is_none_or_only_writes_shows_nothing(
    monkeypatch: pytest.MonkeyPatch, clock: Clock, stream: Writer | None
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    with Display(True) as display:
        display.begin("loading", 100)
        clock.now += 60
        display.advance(50, 1000, "rows")
    assert stream is None or stream.text == ""


def test_a_line_is_no_wider_than_the_terminal(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    monkeypatch.setenv("COLUMNS", "20")
    with Display(True) as display:
        display.begin("loading", 100)
        clock.now += 1
        display.advance(50, 1000, "rows")
    assert max(map(len, terminal.getvalue().split("\r"))) == 19


def test_a_terminal_that_cannot_move_its_cursor_has_plain_lines(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "dumb")
    with Display(True) as display:
        display.begin("loading", 100)
        clock.now += 10
        display.advance(50, 1000, "rows")
    assert terminal.getvalue() == "loading: 50%, 1,000 rows, 100/s, about 10 s left, for 10 s\n"
