"""A transaction() block ends in the thread in which it began, or the session names it instead of waiting for ever.

Once it has ended, it is over in every context: web frameworks may end a block in another context of its thread.
"""

from __future__ import annotations

import gc
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from contextvars import copy_context
from threading import Event, Thread
from typing import Any

import pytest

from differential import Session
from differential.session.schema import Schema
from timely.errors import DataError, SessionError

TORN = r"a transaction\(\) block .* has not ended in the thread in which it began"


@pytest.fixture
def db() -> Iterator[Session]:
    with Session() as db:
        db.table("numbers", {"x": int})
        db.commit()
        yield db


@pytest.fixture
def without_garbage() -> Iterator[None]:
    """Collect no garbage, whose finalizers would swallow an interrupt."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def outcome(function: Callable[[], Any]) -> Any:
    """Return what a function returns or raises in a thread of its own, which must end."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(function())
        except Exception as error:
            found.append(error)

    thread = Thread(target=run, daemon=True)
    thread.start()
    thread.join(20)
    assert found, "the thread waits"
    return found[0]


def begin(db: Session) -> AbstractContextManager[None]:
    block = db.transaction()
    block.__enter__()
    db["numbers"].insert(x=1)  # type: ignore[union-attr]
    return block


def test_a_block_whose_thread_has_ended_in_it_is_named_by_all_others(db: Session) -> None:
    kept = [outcome(lambda: begin(db))]
    still = Event()
    others = [Thread(target=still.wait, args=(20,)) for _ in range(4)]  # so that none has the identity of the ended one
    for other in others:
        other.start()
    for call in (lambda: db["numbers"].insert(x=2), db.commit, db.rollback, lambda: db.transaction().__enter__()):  # type: ignore[union-attr]
        found = outcome(call)
        assert isinstance(found, SessionError)
        assert TORN.partition(" .*")[0].replace("\\", "") in str(found)
    still.set()
    for other in others:
        other.join()
    assert db["numbers"].records() == []
    del kept


@pytest.mark.parametrize("error", [None, ValueError("within")])
def test_a_block_that_ends_in_another_thread_commits_nothing(db: Session, error: Exception | None) -> None:
    began, may_end = Event(), Event()
    blocks: list[AbstractContextManager[None]] = []

    def own() -> None:
        blocks.append(begin(db))
        began.set()
        may_end.wait(20)

    owner = Thread(target=own)
    owner.start()
    assert began.wait(20)
    with pytest.raises(SessionError, match=TORN):
        blocks[0].__exit__(type(error) if error else None, error, None)
    assert isinstance(outcome(db.commit), SessionError)
    assert db["numbers"].records() == []
    may_end.set()
    owner.join()


def test_blocks_of_threads_that_end_them_leave_nothing(db: Session) -> None:
    def whole() -> None:
        with db.transaction():
            db["numbers"].insert(x=1)  # type: ignore[union-attr]

    for _ in range(3):
        assert outcome(whole) is None
    assert outcome(db.commit) == 5
    assert db["numbers"].records() == [(1,)] * 3


def test_a_block_that_ends_in_another_context_is_over(db: Session) -> None:
    block = begin(db)
    copy_context().run(block.__exit__, None, None, None)
    assert len(db.ask(lambda t: t.numbers)) == 1
    db["numbers"].insert(x=2)  # type: ignore[union-attr]
    db.commit()
    assert len(db.ask(lambda t: t.numbers)) == 2


def test_an_interrupt_as_a_block_begins_leaves_the_session_as_it_was(db: Session, without_garbage: None) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for round in range(300):
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-6 + round * 1e-6)
                for _ in range(20):
                    with db._catalog.transaction():
                        raise ZeroDivisionError
            except (KeyboardInterrupt, ZeroDivisionError):
                pass
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            assert db._catalog.blocks.depth == 0
    except KeyboardInterrupt:
        pass  # before the timer was ended
    finally:
        signal.signal(signal.SIGALRM, before)
    with db.transaction():
        db["numbers"].insert(x=1)  # type: ignore[union-attr]
    assert db["numbers"].rows().records() == [(1,)]  # type: ignore[union-attr]


def test_a_block_that_fails_after_a_rollback_leaves_nothing_of_its_changes(db: Session) -> None:
    numbers = db.table("numbers")
    numbers.insert(x=[1])
    numbers.insert(x=[2])

    def block() -> None:
        with db.transaction():
            numbers.insert(x=3)
            with db.transaction():
                db.rollback()
                numbers.insert(x=4)
            numbers.insert(x=5)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        block()
    assert db.status().uncommitted == 0
    numbers.insert(x=6)
    db.commit()
    assert numbers.records() == [(6,)]


@pytest.mark.parametrize("columns", [{"x": int}, {"x": []}], ids=["stated", "found"])
def test_a_block_that_fails_inside_of_another_fits_few_statements_again(
    db: Session, columns: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, fitted = db.table("rows", columns), []
    fit = Schema.fit

    def counted(self: Schema, *given: Any) -> Any:
        fitted.append(given)
        return fit(self, *given)

    monkeypatch.setattr(Schema, "fit", counted)
    with db.transaction():
        for x in range(50):
            rows.insert(x=x)
            with suppress(ValueError), db.transaction():
                rows.insert(x=x)
                raise ValueError
    assert rows.records() == [(x,) for x in range(50)]
    assert len(fitted) <= 50 * 3, "each statement is fitted as it is made, and at most one again for each block"


def test_a_block_that_fails_forgets_the_kinds_that_it_alone_has_found(db: Session) -> None:
    rows = db.table("rows", {"x": [], "y": []}, key="x")
    with db.transaction():
        rows.insert(x=1, y="a")
        rows.delete(x=2)
        with suppress(ValueError), db.transaction():
            rows.insert(x=2, y="b")
            raise ValueError
        with pytest.raises(DataError, match="column 'y' of table 'rows' holds text, not integers such as 3"):
            rows.insert(x=3, y=3)
    db.drop("rows")
    rows = db.table("rows", {"x": [], "y": []}, key="x")
    with db.transaction():
        rows.delete(x=2)
        with suppress(ValueError), db.transaction():
            rows.insert(x=2, y="a")
            raise ValueError
        rows.insert(x=3, y=3)
    assert rows.records() == [(3, 3)]
