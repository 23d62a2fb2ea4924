"""A session that a later one has replaced makes no table or view, and empties none of the later one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import differential as dd
from differential.durable import Directory, Shard
from differential.durable.writer import Writer
from timely.errors import FencedError


def opened(path: Path) -> dd.Session:
    return dd.Session(state=str(path / "db"))


def contents(path: Path, name: str) -> dict[tuple[Any, ...], int]:
    return Shard(name, Directory(str(path / "db")).store(name)).read()


def test_its_new_table_is_no_table_of_the_later_session(tmp_path: Path) -> None:
    with opened(tmp_path) as first:
        first.table("one", {"x": [1]})
        first.commit()
        first.table("two", {"x": [7]})
        with opened(tmp_path) as second:
            with pytest.raises(FencedError, match=r"'_session' in .* was claimed by process"):
                first.commit()
            assert Directory(str(tmp_path / "db")).names() == ["_session", "one"]
            second.commit()
    with opened(tmp_path) as third:
        third.table("two", {"y": [8]})
        third.commit()
        assert third["two"].records() == [(8,)]


def table(db: dd.Session) -> None:
    db.table("two", {"x": [7]})
    db.commit()


def view(db: dd.Session) -> None:
    db.view("two", lambda t: t.one, durable=True)


@pytest.mark.parametrize("make", [table, view])
def test_a_table_of_the_later_session_keeps_its_rows(tmp_path: Path, make: Callable[[dd.Session], None]) -> None:
    with opened(tmp_path) as first:
        first.table("one", {"x": [1]})
        first.commit()
        with opened(tmp_path) as second:
            later: Any = second.table("two", {"y": [8]})
            second.commit()
            with pytest.raises(FencedError, match=r"'_session' in .* was claimed by process"):
                make(first)
            assert contents(tmp_path, "two") == {(8,): 1}
            later.insert(y=9)
            assert second.commit() == 3
    with opened(tmp_path) as third:
        assert third["two"].records() == [(8,), (9,)]


def test_a_session_that_is_replaced_while_it_claims_a_table_empties_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Writer.claim
    with opened(tmp_path) as first:
        first.table("one", {"x": [1]})
        first.commit()
        first.table("two", {"x": [7]})

        def claim(shard: Shard, role: str, at: int = 0, **options: Any) -> Writer:
            monkeypatch.undo()
            with opened(tmp_path) as second:
                second.table("two", {"y": [8]})
                second.commit()
            return whole(shard, role, at, **options)

        monkeypatch.setattr(Writer, "claim", claim)
        with pytest.raises(FencedError, match=r"'_session' in .* was claimed by process"):
            first.commit()
    with opened(tmp_path) as third:
        assert third["two"].records() == [(8,)]


def test_a_table_that_no_commit_has_decided_is_none(tmp_path: Path) -> None:
    """It was made by a session that was replaced at this moment, for a commit that the later one made."""
    with opened(tmp_path) as first:
        first.commit()
    shard = Shard("two", Directory(str(tmp_path / "db")).store("two"))
    about = {"columns": ["x"], "shown": [0], "kinds": {"x": "int64"}, "keys": 1, "has_key": False, "created": 1}
    Writer.claim(shard, "input", 1, since=1, about=about)
    with opened(tmp_path) as db:
        db.table("two", {"y": [8]})
        db.commit()
    with opened(tmp_path) as db:
        assert db["two"].records() == [(8,)]


def test_a_drop_that_was_interrupted_is_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path) as db:
        db.table("one", {"x": [1]})
        db.commit()
        with monkeypatch.context() as patched:
            patched.setattr(Writer, "begin_again", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                db.drop("one")
    with opened(tmp_path) as db, pytest.raises(KeyError, match="no table or view 'one'"):
        db["one"]


def test_the_later_session_of_the_same_process_is_known_as_such(tmp_path: Path) -> None:
    """A cell of a notebook that opens a session, and runs again, makes two of them."""
    with (
        opened(tmp_path) as first,
        opened(tmp_path),
        pytest.raises(FencedError, match=r"by process \d+ on .*, which is this one: it opened the state again, so"),
    ):
        first.commit()
