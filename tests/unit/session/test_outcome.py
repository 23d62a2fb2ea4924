"""An error of a commit in a durable session that has ended states what the disk has, whenever the session ends."""

from __future__ import annotations

import re
import shutil
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import differential as dd
from tests.unit.session.test_interrupted import Place, traced
from timely.errors import SessionError

EACH = 29
"""One of so many moments is tested, because each opens two sessions."""
LOST = SessionError("process 1 of the session was ended by SIGKILL")


class Case:
    """A session before a commit of which an upsert reads the table."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.open()
        self.table.insert(key=1, value=10)
        self.db.commit()
        self.table.upsert(key=1, value=11)
        self.table.insert(key=2, value=20)

    def open(self) -> None:
        self.db = dd.Session(state=self.directory, progress=False)
        self.table: Any = self.db.table("t", {"key": int, "value": int}, key="key")
        self.db.view("seen", lambda t: t.t, durable=True)

    def lose(self, items_fail: bool) -> None:
        """End the session as the loss of a process does: at once, or once the worker has noticed it.

        Another thread does so, and this one waits for it, unless this one holds the lock that the other one needs.
        """
        engine = self.db._catalog.engine

        def lose() -> None:
            engine._lose(LOST)
            for site in engine._sites.values() if items_fail else ():
                site.end(SessionError(f"the session has ended: {LOST}"), was_closed=False)

        losing = threading.Thread(target=lose)
        losing.start()
        if not engine._lock.locked():
            losing.join(20)
            assert not losing.is_alive(), "the end of the session waits for something"

    def outcome(self, make: Callable[[], object]) -> str:
        """Return how the error of a commit ends."""
        with pytest.raises(SessionError, match=r"the session has ended: process 1 .* by SIGKILL \([^()]*\)$") as caught:
            make()
        return str(caught.value).rpartition("(")[2].removesuffix(")")

    def reopened(self) -> list[tuple[Any, ...]]:
        self.db.close()
        self.open()
        rows: list[tuple[Any, ...]] = self.table.records()
        self.db.close()
        return rows


def moments(directory: Path) -> list[tuple[Place, int]]:
    """Return the moments of a commit, each a place and how often it has come."""
    case, found, seen = Case(directory), [], Counter[Place]()

    def note(place: Place) -> None:
        seen[place] += 1
        found.append((place, seen[place]))

    with traced(note):
        case.db.commit()
    case.db.close()
    return found


def lost_at(case: Case, moment: tuple[Place, int], items_fail: bool) -> None:
    """Commit, and end the session at a moment."""
    place, left = moment

    def count(here: Place) -> None:
        nonlocal left
        left -= here == place
        if here == place and left == 0:
            case.lose(items_fail)

    with traced(count):
        case.db.commit()


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("items_fail", [False, True])
def test_the_error_states_what_the_disk_has_whenever_the_session_ends(tmp_path: Path, items_fail: bool) -> None:
    outcomes = Counter[str]()
    for number, moment in enumerate(moments(tmp_path / "moments")[items_fail * EACH // 2 :: EACH]):
        case = Case(tmp_path / str(number))
        try:
            lost_at(case, moment, items_fail)
        except SessionError as error:
            outcome = str(error).rpartition("(")[2].removesuffix(")")
        else:
            outcome = "commit 2 is complete"
        again = case.outcome(case.db.commit)
        assert outcome == again, moment
        assert case.reopened() == {"commit 2 is not made": BEFORE, "commit 2 is complete": AFTER}[outcome], moment
        outcomes[outcome] += 1
        shutil.rmtree(tmp_path / str(number))
    assert len(outcomes) == 2
    assert min(outcomes.values()) > 5


BEFORE, AFTER = [(1, 10)], [(1, 11), (2, 20)]


@pytest.mark.parametrize("items_fail", [False, True])
def test_a_session_that_has_ended_makes_nothing_durable(tmp_path: Path, items_fail: bool) -> None:
    case = Case(tmp_path)
    case.lose(items_fail)
    for _ in range(2):
        assert case.outcome(case.db.commit) == "commit 2 is not made"
    assert case.reopened() == BEFORE


def test_a_commit_that_was_durable_before_the_session_ended_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case(tmp_path)
    engine = case.db._catalog.engine
    submit = engine.submit

    def lost_before(call: Any) -> None:
        if call.elsewhere and call.elsewhere[0] == {}:  # the commit itself
            case.lose(items_fail=False)
        submit(call)

    monkeypatch.setattr(engine, "submit", lost_before)
    for _ in range(2):
        assert case.outcome(case.db.commit) == "commit 2 is complete"
    assert case.reopened() == AFTER


def test_a_session_that_was_closed_makes_nothing_durable(tmp_path: Path) -> None:
    case = Case(tmp_path)
    with pytest.warns(match="are lost"):
        case.db.close()
    with pytest.raises(SessionError, match=re.escape("the session was closed: ") + r".*\(commit 2 is not made\)$"):
        case.db.commit()
    assert case.reopened() == BEFORE
