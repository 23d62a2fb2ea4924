"""Progress of jobs where standard error is no terminal."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType, SimpleNamespace
from typing import Any

import pytest

from differential.jobs import display as module, report
from differential.jobs.display import Display
from tests.integration.jobs.running import outcome
from timely.observe.events import FrontierChanged, MessageSent


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
        assert kinds == (MessageSent, FrontierChanged)
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


def test_the_round_of_a_loop_and_its_records_are_recorded_from_the_first_line_on(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    log = Log()
    with Display(True) as display:
        display.begin("computing the answer", None)
        end = display.listen(SimpleNamespace(log=log))  # type: ignore[arg-type]
        for second in range(1, 31):
            clock.now += 1
            display.computing()
            assert (log.listener is None) == (second < 10)
            if log.listener is not None:
                log.listener([SimpleNamespace(frontier=[(0, second)]), sent(50)])
        end()
        assert log.listener is None
    assert capsys.readouterr().err.splitlines() == [
        "computing the answer: for 10 s",
        "computing the answer: round 19, 50 records/s, for 20 s",
        "computing the answer: round 29, 50 records/s, for 30 s",
    ]


def sent(records: int) -> MessageSent:
    """Return the record of a message, of which only the number of records counts here."""
    fields = dict.fromkeys(MessageSent._fields, 0)
    return MessageSent(**fields | {"records": records})


def test_a_change_is_recorded_without_going_through_those_before() -> None:
    calls = Counter[int]()

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename == report.__file__:
            calls[changes] += 1

    for changes in (20, 80):
        sys.setprofile(count)
        try:
            found, _ = outcome("components", ["random:50,100", f"replace:{changes}"])
        finally:
            sys.setprofile(None)
        assert found.report.changes == changes
    assert calls[80] < 6 * calls[20]
