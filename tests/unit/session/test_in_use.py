"""Readers and writers are called by one thread at a time: no thread closes one that another thread uses."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread
from typing import Any

import pytest

from differential import Session
from differential.session.sinks.delivery import Delivery

WAIT = 20.0


class Slow:
    """A source, its reader, a sink and its writer: a call in which rows are read or written takes a while."""

    name = "slow"
    is_ended = False

    def __init__(self, seconds: float = 0.3) -> None:
        self.seconds = seconds
        self.is_used, self.closed = Event(), Event()
        self.is_busy = self.was_closed_while_used = False
        self.opened = 0

    def open(self, *_: Any) -> Slow:
        self.opened += 1
        return self

    def use(self, *_: Any) -> None:
        self.is_busy = True
        self.is_used.set()
        self.closed.wait(self.seconds)
        self.is_busy = False

    def write(self, changes: Any, mark: Any) -> None:
        if changes:
            self.use()

    def nothing(self, *_: Any) -> None:
        pass

    def close(self) -> None:
        self.was_closed_while_used = self.is_busy
        self.closed.set()

    poll, confirm, mark, clear = use, nothing, nothing, nothing


def written(db: Session, sink: Any) -> Delivery:
    """Attach a sink, and commit a row in another thread."""
    table = db.table("numbers", {"x": int})
    delivery = table.write_to(sink)
    table.insert(x=1)
    Thread(target=db.commit, daemon=True).start()
    return delivery


def read(db: Session, source: Any) -> None:
    """Attach a source, and read it in another thread."""
    db.table("numbers", {"x": int}).read_from(source)
    db.start()


@pytest.mark.parametrize("use", [read, written])
def test_closing_a_session_waits_for_the_end_of_a_call(use: Callable[[Session, Any], object]) -> None:
    slow = Slow()
    with Session() as db:
        use(db, slow)
        assert slow.is_used.wait(WAIT), "it is not called"
    assert slow.closed.is_set()
    assert not slow.was_closed_while_used


def test_closing_a_delivery_waits_for_the_end_of_a_call() -> None:
    slow = Slow()
    with Session() as db:
        delivery = written(db, slow)
        assert slow.is_used.wait(WAIT), "it is not called"
        delivery.close()
        assert slow.closed.is_set()
        assert not slow.was_closed_while_used


def test_a_call_that_does_not_return_does_not_keep_a_session_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("differential.session.in_use.PATIENCE", 0.05)
    slow = Slow(WAIT)
    with Session() as db:
        read(db, slow)
        assert slow.is_used.wait(WAIT), "it is not called"
    assert slow.closed.is_set()


def test_a_delivery_that_is_closed_between_two_attempts_does_not_open_its_sink_again() -> None:
    class Failing(Slow):
        def use(self, *_: Any) -> None:
            delivery.close()
            raise OSError("the disk is full")

    failing = Failing()
    with Session() as db:
        table = db.table("numbers", {"x": int})
        delivery = table.write_to(failing)
        table.insert(x=1)
        assert db.commit() == 1
        assert (failing.opened, delivery.state) == (1, "stopped: the disk is full")
