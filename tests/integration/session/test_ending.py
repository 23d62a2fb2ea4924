"""A session ends, and gives control back, whatever it is doing."""

from __future__ import annotations

import asyncio
import gc
import os
import select
import signal
import subprocess
import sys
import threading
import time as clock
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pytest

from differential import Session
from differential.errors import SessionError
from differential.session import engine
from tests.api.modules import ROOT

WAIT = 20.0
"""Seconds after which something that was to happen soon has not, on a busy machine."""


def threads() -> list[str]:
    ours = ("timely session", "timely worker", "timely commit")
    return [thread.name for thread in threading.enumerate() if thread.name.startswith(ours)]


class Awaitable(Protocol):
    """What can be waited for as an event can."""

    def wait(self, timeout: float) -> bool: ...


@contextmanager
def interrupted_when(event: Awaitable) -> Iterator[None]:
    """Send SIGINT to this thread once `event` is set, and expect KeyboardInterrupt."""

    def send() -> None:
        if event.wait(WAIT):
            clock.sleep(0.05)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    sender = threading.Thread(target=send)
    # Hypothesis has a callback of the garbage collector. Python ignores exceptions in it, those of a handler, too.
    callbacks, gc.callbacks[:] = gc.callbacks[:], []
    try:
        sender.start()
        with pytest.raises(KeyboardInterrupt):
            yield
        sender.join(WAIT)
    finally:
        gc.callbacks[:] = callbacks


class Stuck:
    """A function of a definition that does not return once it sees a number of at least 100."""

    def __init__(self) -> None:
        self.begun = threading.Event()

    def __call__(self, x: Any) -> Any:
        if np.asarray(x).max(initial=0) >= 100:
            self.begun.set()  # once: an interrupt inside of it may leave the event's lock taken
            while True:
                pass
        return x


@pytest.fixture(params=[1, 2])
def db(request: pytest.FixtureRequest) -> Iterator[Session]:
    with Session(request.param) as session:
        session._catalog.engine.patience = 0.3
        session.table("numbers", {"x": [1, 2, 3]})
        session.commit()
        yield session
    assert threads() == []


def check_alive(db: Session) -> None:
    """The session still commits, and answers."""
    seen = db.view("seen", lambda t: t.numbers.filter(lambda x: x < 50))
    db["numbers"].insert(x=7)  # type: ignore[union-attr]
    db.commit()
    assert (7,) in seen.records()


def test_an_interrupt_names_a_function_that_it_cannot_end(db: Session) -> None:
    begun, lock = threading.Event(), threading.Lock()
    notes: list[str] = []

    def waits(x: Any) -> Any:
        if len(x):
            begun.set()
            lock.acquire(timeout=WAIT)  # an exception in this thread is raised when C returns
        return x

    with lock, interrupted_when(begun):
        try:
            db.view("waits", lambda t: t.numbers.map(waits))
        except KeyboardInterrupt as stop:
            notes = stop.__notes__
            raise
    assert notes == ["a function of view 'waits' is in a call into C, for whose end the session waits"]
    check_alive(db)


def test_an_interrupt_while_a_question_computes_drops_the_question(db: Session) -> None:
    stuck = Stuck()
    with interrupted_when(stuck.begun):
        db.ask(lambda t: t.numbers.map(lambda x: stuck(x + 100)))
    check_alive(db)


def test_an_interrupt_while_a_definition_runs_drops_the_view(db: Session) -> None:
    begun = threading.Event()

    def endless(tables: Any) -> Any:
        begun.set()
        while True:
            clock.sleep(0.001)

    with interrupted_when(begun):
        db.view("endless", endless)
    with pytest.raises(KeyError):
        db["endless"]
    check_alive(db)


def test_an_interrupt_while_a_loop_does_not_settle_drops_the_question(db: Session) -> None:
    begun = threading.Event()

    def further(x: Any) -> Any:
        begun.set()
        return x + 1

    with interrupted_when(begun):
        db.ask(lambda t: t.numbers.iterate(lambda inner: inner.map(further)))
    check_alive(db)


def test_an_interrupt_in_a_commit_drops_a_view_that_is_stuck(db: Session) -> None:
    stuck = Stuck()
    bad = db.view("bad", lambda t: t.numbers.map(stuck))
    db["numbers"].insert(x=100)  # type: ignore[union-attr]
    with interrupted_when(stuck.begun):
        db.commit()
    check_alive(db)
    assert (100,) in db["numbers"].records()
    with pytest.raises(SessionError, match="'bad'"):
        bad.records()


def test_an_interrupt_in_a_commit_leaves_the_commit_to_end(db: Session) -> None:
    begun = threading.Event()

    def slow(x: Any) -> Any:
        if np.asarray(x).max(initial=0) >= 100:
            begun.set()
            clock.sleep(0.1)
        return x

    view = db.view("slow", lambda t: t.numbers.map(slow))
    db["numbers"].insert(x=100)  # type: ignore[union-attr]
    with interrupted_when(begun):
        db.commit()
    assert (100,) in view.records()
    check_alive(db)


class Rounds:
    """A loop that counts from 100 to `last`, and slowly before `is_quick`; for ever by default."""

    def __init__(self, last: int = 1 << 40) -> None:
        self.last, self.is_quick, self.begun = last, False, threading.Event()

    def further(self, x: Any) -> Any:
        if np.asarray(x).max(initial=0) >= 100 and not self.is_quick:
            self.begun.set()
            clock.sleep(0.01)
        return np.where((x >= 100) & (x < self.last), x + 1, x)

    def __call__(self, tables: Any) -> Any:
        return tables.numbers.iterate(lambda inner: inner.map(self.further))


def interrupted_commit(db: Session, rounds: Rounds) -> str:
    """Interrupt a commit in which a view makes rounds; return the notes of the interrupt."""
    db.view("rounds", rounds)
    db["numbers"].insert(x=100)  # type: ignore[union-attr]
    notes: list[str] = []
    with interrupted_when(rounds.begun):
        try:
            db.commit()
        except KeyboardInterrupt as stop:
            notes += stop.__notes__
            raise
    return "\n".join(notes)


def test_an_interrupt_of_a_commit_names_the_view_that_still_computes(
    db: Session, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "QUIET", 0.1)
    still = "view 'rounds' still computes; db.drop('rounds') ends it"
    assert interrupted_commit(db, Rounds()) == f"commit 2 continues in the background: {still}"
    status = db.status()
    assert (status.commit, status.computing) == (1, ("rounds",))
    assert "still computing: rounds" in str(status)
    for blocked in (db["numbers"].records, lambda: db.ask(lambda t: t.numbers.count()), db.commit):
        seen, begun = threading.Event(), clock.monotonic()
        monkeypatch.setattr(engine, "notify", lambda text, seen=seen: (print(text, file=sys.stderr), seen.set()))
        with interrupted_when(seen):
            blocked()
        assert capsys.readouterr().err.splitlines()[0] == f"waiting for commit 2: {still}"
        assert clock.monotonic() - begun < WAIT
    assert db.status().computing == ("rounds",)
    db.drop("rounds")
    check_alive(db)
    assert db.status().computing == ()


def test_a_view_that_is_slow_completes_after_an_interrupt(db: Session) -> None:
    rounds = Rounds(600)
    assert "continues in the background" in interrupted_commit(db, rounds)
    with interrupted_when(rounds.begun):
        db.ask(lambda t: t.numbers)  # waits for the commit, and leaves the view as it is when it is interrupted
    rounds.is_quick = True
    assert (600,) in db["rounds"].records()
    assert (db.status().commit, db.status().computing) == (2, ())
    check_alive(db)


def test_an_interrupt_after_which_a_commit_ends_says_that_it_is_complete(db: Session) -> None:
    db._catalog.engine.patience = WAIT
    assert interrupted_commit(db, Rounds(150)) == "commit 2 is complete"
    assert (150,) in db["rounds"].records()
    check_alive(db)


def test_a_durable_commit_waits_for_one_that_was_interrupted(tmp_path: Path) -> None:
    rounds = Rounds(300)
    with Session(state=tmp_path, progress=False) as db:
        db._catalog.engine.patience = 0.1
        db.table("numbers", {"x": [1]})
        db.commit()
        assert "continues in the background" in interrupted_commit(db, rounds)
        db["numbers"].insert(x=7)  # type: ignore[union-attr]
        assert db.commit() == 3
    with Session(state=tmp_path) as db:
        assert db.table("numbers").records() == [(1,), (7,), (100,)]
    assert threads() == []


def test_a_view_whose_loop_does_not_settle_can_be_dropped_while_a_commit_runs(db: Session) -> None:
    begun = threading.Event()

    def further(x: Any) -> Any:
        if np.asarray(x).max(initial=0) >= 100:
            begun.set()
        return np.where(x >= 100, x + 1, x)

    db.view("endless", lambda t: t.numbers.iterate(lambda inner: inner.map(further)))
    db["numbers"].insert(x=100)  # type: ignore[union-attr]
    numbers: list[int] = []
    committing = threading.Thread(target=lambda: numbers.append(db.commit()))
    committing.start()
    assert begun.wait(WAIT)
    db.drop("endless")
    committing.join(WAIT)
    assert numbers == [2]
    check_alive(db)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("what", ["commit", "ask", "view"])
def test_close_ends_what_another_thread_waits_for(what: str, workers: int) -> None:
    db = Session(workers)
    db._catalog.engine.patience = 0.3
    db.table("numbers", {"x": [1, 2, 100]})
    stuck = Stuck()
    calls: dict[str, Callable[[], object]] = {
        "ask": lambda: db.ask(lambda t: t.numbers.map(stuck)),
        "view": lambda: db.view("late", lambda t: t.numbers.map(stuck)),
        "commit": db.commit,
    }
    if what == "commit":
        db.view("early", lambda t: t.numbers.map(stuck))
    else:
        db.commit()
    caught: list[BaseException] = []

    def call() -> None:
        try:
            calls[what]()
        except BaseException as error:
            caught.append(error)

    waiting = threading.Thread(target=call)
    waiting.start()
    assert stuck.begun.wait(WAIT)
    db.close()
    waiting.join(WAIT)
    assert not waiting.is_alive()
    assert [type(error) for error in caught] == [SessionError]
    assert threads() == []


def test_a_session_that_is_forgotten_ends_its_threads() -> None:
    db = Session()
    db.table("numbers", {"x": [1]})
    db.commit()
    assert len(threads()) == 1
    del db
    gc.collect()
    end = clock.monotonic() + WAIT
    while threads() and clock.monotonic() < end:
        clock.sleep(0.01)
    assert threads() == []


def test_a_closed_session_refuses_everything() -> None:
    db = Session()
    table = db.table("numbers", {"x": [1]})
    view = db.view("same", lambda t: t.numbers)
    db.close()
    db.close()
    assert db.is_closed
    for call in (db.commit, view.records, table.records, db.status, lambda: db.ask(lambda t: t.numbers)):
        with pytest.raises(SessionError, match="was closed"):
            call()  # type: ignore[operator]
    assert repr(db) == "<Session, closed>"


def test_workers_that_build_different_dataflows_end_the_session_with_the_reason() -> None:
    with Session(2) as db:
        table = db.table("numbers", {"x": [1, 2]})
        db.commit()
        changes = table.changes()
        here = threading.local()
        turns = iter(range(2))

        def different(tables: Any) -> Any:
            here.turn = next(turns)
            return tables.numbers if here.turn else tables.numbers.count().map(lambda x, n: x).count()

        with pytest.raises(SessionError, match=r"the session has ended: .*dataflow"):
            db.view("different", different)
        with pytest.raises(SessionError, match="the session has ended"):
            db.commit()
        with pytest.raises(SessionError, match="the session has ended"):
            table.records()
        with pytest.raises(SessionError, match="the session has ended"):
            changes.get(WAIT)
        assert db.is_closed
    assert threads() == []


def test_a_commit_in_the_background_ends_when_the_session_is_closed() -> None:
    async def main() -> None:
        with Session() as db:
            db._catalog.engine.patience = 0.3
            stuck = Stuck()
            db.table("numbers", {"x": [100]})
            db.view("stuck", lambda t: t.numbers.map(stuck))
            committing = asyncio.ensure_future(db.commit_async())
            await asyncio.sleep(0)
            assert await asyncio.to_thread(stuck.begun.wait, WAIT)
            db.close()
            with pytest.raises(SessionError, match="was closed"):
                await asyncio.wait_for(committing, WAIT)

    asyncio.run(main())
    end = clock.monotonic() + WAIT
    while threads() and clock.monotonic() < end:
        clock.sleep(0.01)
    assert threads() == []


ENDINGS = {
    "the program ends": "pass",
    "an error": "raise ValueError",
    "sys.exit": "raise SystemExit(0)",
    "a view is stuck": "numbers.insert(x=4); threading.Thread(target=db.commit, daemon=True).start(); begun.wait(20)",
    "a thread commits": "threading.Thread(target=commits, daemon=True).start(); begun.wait(20)",
    "a thread waits for changes": "threading.Thread(target=list, args=(numbers.changes(),), daemon=True).start()",
    "a child was forked": "if not os.fork(): sys.exit(0)\nos.wait()",
}


@pytest.mark.lengthy
@pytest.mark.parametrize("ending", ENDINGS)
def test_the_interpreter_ends_though_a_session_is_open(ending: str) -> None:
    program = f"""
import os, sys, threading
import differential as dd
begun = threading.Event()
def stuck(x):
    if len(x) and x.max() > 3:
        begun.set()
        while True:
            pass
    return x
def commits():
    while True:
        numbers.insert(x=1)
        db.commit()
        begun.set()
db = dd.Session()
numbers = db.table("numbers", {{"x": [1, 2]}})
db.view("stuck", lambda t: t.numbers.map(stuck))
db.commit()
print("here", flush=True)
{ENDINGS[ending]}
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=50, cwd=ROOT)
    assert ran.stdout == "here\n"
    assert ran.returncode == (1 if ending == "an error" else 0), ran.stderr
    if ending != "an error":
        assert ran.stderr == ""


def test_a_forked_process_is_refused_at_once_and_leaves_the_session_as_it_is(db: Session) -> None:
    numbers = db["numbers"]
    reader, writer = os.pipe()
    with db._catalog.exclusive(), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads, which is the point
        process = os.fork()
    if not process:
        found = []
        for call in (db.commit, numbers.records, lambda: numbers.insert(x=1), db.status, db.close):  # type: ignore[union-attr]
            try:
                found.append(str(call()))
            except SessionError as error:
                found.append(str(error))
        os.write(writer, "\n".join(found).encode())
        os._exit(0)
    os.close(writer)
    assert select.select([reader], [], [], WAIT)[0], "the forked process waits"
    with os.fdopen(reader) as file:
        found = file.read().split("\n")
    assert os.waitpid(process, 0)[1] == 0
    assert found == ["the session belongs to the process that forked this one: open another session here"] * 4 + [
        "None"
    ]
    check_alive(db)
