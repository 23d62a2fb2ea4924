"""If a durable table is removed or replaced by an older copy, no commit and no later session goes on without it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import obstore
import pytest
from obstore.store import MemoryStore

import differential as dd
from differential.durable import Directory, Shard
from differential.durable.objects import Objects
from timely.errors import ConfigError, FencedError, SessionError, StateError, StoreError
from timely.run.cli import main


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("differential.durable.writer._FIRST_PAUSE", 0.0)


def remove(table: Path, old: Path) -> None:
    shutil.rmtree(table)


def remove_manifest(table: Path, old: Path) -> None:
    (table / "manifest.json").unlink()


def replace(table: Path, old: Path) -> None:
    shutil.rmtree(table)
    shutil.copytree(old, table)


def begun(tmp_path: Path) -> tuple[dd.Session, Any, Any]:
    """Return a session with two tables and a view after two commits; below `old` is a copy as of the first."""
    db = dd.Session(state=str(tmp_path / "db"))
    one, two = db.table("one", {"x": [1]}), db.table("two", {"y": [1]})
    db.view("both", lambda t: t.one.concat(t.two), durable=True)
    db.commit()
    shutil.copytree(tmp_path / "db", tmp_path / "old")
    one.insert(x=2)
    two.insert(y=2)
    db.commit()
    return db, one, two


def last(tmp_path: Path) -> int:
    """Return the last commit that was decided."""
    return Shard("_session", Directory(str(tmp_path / "db")).store("_session")).manifest().upper - 1


@pytest.mark.parametrize(
    ("harm", "name", "changed", "complaint"),
    [
        (remove, "one", "one", "was removed while this program wrote to it"),
        (remove, "one", "two", "was removed while this program wrote to it"),
        (remove, "both", "two", "was removed while this program wrote to it"),
        (remove_manifest, "one", "two", "was removed while this program wrote to it"),
        (replace, "one", "one", "was replaced by an older copy while this program wrote to it"),
        (replace, "one", "two", "was replaced by an older copy while this program wrote to it"),
        (replace, "both", "two", "was replaced by an older copy while this program wrote to it"),
    ],
)
def test_a_commit_is_refused_whichever_table_it_changes(
    tmp_path: Path, harm: Callable[[Path, Path], None], name: str, changed: str, complaint: str
) -> None:
    db, one, two = begun(tmp_path)
    with db:
        harm(tmp_path / "db" / name, tmp_path / "old" / name)
        {"one": one, "two": two}[changed].insert([[3]])
        where = re.escape(str(tmp_path / "db" / name))
        with pytest.raises(
            FencedError, match=f"{name!r} in .*{where}.* {complaint}.*restore the directory from a copy"
        ):
            db.commit()
        with pytest.raises(SessionError, match="can no longer make anything durable"):
            db.commit()
        assert (last(tmp_path), one.records(), two.records()) == (2, [(1,), (2,)], [(1,), (2,)])
    if harm is remove:
        assert not (tmp_path / "db" / name).exists(), "a copy could not be restored to where it was"


@pytest.mark.parametrize("harm", [remove, remove_manifest, replace])
def test_a_session_is_not_opened_without_a_commit_of_a_table(
    tmp_path: Path, harm: Callable[[Path, Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    db, _, two = begun(tmp_path)
    with db:
        two.insert(y=3)
        db.commit()
    table = tmp_path / "db" / "one"
    shutil.copytree(table, tmp_path / "last")
    harm(table, tmp_path / "old" / "one")
    complaint = (
        f"'one' in .*{re.escape(str(table))}.* {{}}.* commit 2.*restore the directory.*timely state --accept one"
    )
    with pytest.raises(StateError, match=complaint.format("is an older copy" if harm is replace else "is missing")):
        dd.Session(state=str(tmp_path / "db"))
    replace(table, tmp_path / "last") if table.exists() else shutil.copytree(tmp_path / "last", table)
    with dd.Session(state=str(tmp_path / "db")) as db:
        assert (db["one"].records(), db["two"].records()) == ([(1,), (2,)], [(1,), (2,), (3,)])
    harm(table, tmp_path / "old" / "one")
    assert main(["state", "--accept", "one", str(tmp_path / "db")]) == 0
    assert capsys.readouterr().out.startswith("the session goes on with 'one' as it is")
    with dd.Session(state=str(tmp_path / "db")) as db:
        assert db["two"].records() == [(1,), (2,), (3,)]
        if harm is not replace:
            db.table("one", {"x": [7]})
        assert (db.commit(), db["one"].records()) == (4, [(1,)] if harm is replace else [(7,)])


def test_a_table_whose_files_are_removed_is_not_written_to(tmp_path: Path) -> None:
    db, one, _ = begun(tmp_path)
    with db:
        shutil.rmtree(tmp_path / "db" / "one" / "parts")
        one.insert(x=3)
        with pytest.raises(StoreError, match=f"cannot write {tmp_path}/db/one/parts/.*No such file or directory"):
            db.commit()
    assert last(tmp_path) == 2


def test_a_session_in_an_object_store_misses_a_table(tmp_path: Path) -> None:
    objects = MemoryStore()
    with dd.Session(state=Objects(objects, "db")) as db:
        db.table("one", {"x": [1]})
        two: Any = db.table("two", {"y": [1]})
        db.commit()
        obstore.delete(objects, "db/one/manifest.json")
        two.insert(y=2)
        with pytest.raises(FencedError, match="'one' in db/one in MemoryStore was removed"):
            db.commit()
    with pytest.raises(StateError, match=r"'one' in db/one in MemoryStore is missing.* from a copy that has it$"):
        dd.Session(state=Objects(objects, "db"))


def test_a_session_whose_directory_is_removed_is_refused(tmp_path: Path) -> None:
    db, one, _ = begun(tmp_path)
    with db:
        shutil.rmtree(tmp_path / "db")
        one.insert(x=3)
        with pytest.raises(FencedError, match="was removed while this program wrote to it"):
            db.commit()
    assert not (tmp_path / "db").exists()


def test_a_session_without_its_decisions_names_them(tmp_path: Path) -> None:
    begun(tmp_path)[0].close()
    shutil.rmtree(tmp_path / "db" / "_session")
    with pytest.raises(
        ConfigError, match="of a session whose directory '_session' was removed: restore it from a copy"
    ):
        dd.Session(state=str(tmp_path / "db"))


@pytest.mark.parametrize("keep", [0, None])
@pytest.mark.parametrize("name", ["one", "new"])
def test_decisions_that_are_older_than_the_tables_are_refused(tmp_path: Path, keep: int | None, name: str) -> None:
    """Otherwise the session would give up the commits that they lack."""
    begun(tmp_path)[0].close()
    with dd.Session(state=str(tmp_path / "db"), keep=keep) as db:
        table = db.table(name, {"x": int})
        for _ in range(3):
            table.insert(x=3)
            db.commit()
    shutil.copytree(tmp_path / "db", tmp_path / "whole")
    replace(tmp_path / "db" / "_session", tmp_path / "old" / "_session")
    where = re.escape(str(tmp_path / "db" / name))
    complaint = f"{name!r} in .*{where}.* has commits up to 5, .* decided those up to 1: '_session' is an older copy"
    with pytest.raises(StateError, match=complaint):
        dd.Session(state=str(tmp_path / "db"))
    replace(tmp_path / "db" / "_session", tmp_path / "whole" / "_session")
    with dd.Session(state=str(tmp_path / "db")) as db:
        assert db[name].records()[-3:] == [(3,)] * 3


def test_a_dropped_table_is_not_missed(tmp_path: Path) -> None:
    db, *_ = begun(tmp_path)
    with db:
        db.drop("both")
        db.drop("one")
        db.commit()
    shutil.rmtree(tmp_path / "db" / "one")
    with dd.Session(state=str(tmp_path / "db")) as db:
        assert db["two"].records() == [(1,), (2,)]
        db.table("one", {"x": [9]})
        db.commit()
    shutil.rmtree(tmp_path / "db" / "one")
    with pytest.raises(StateError, match=r"'one' in .* is missing"):
        dd.Session(state=str(tmp_path / "db"))


def test_only_a_table_of_a_session_is_accepted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    begun(tmp_path)[0].close()
    assert main(["state", "--accept", "three", str(tmp_path / "db")]) == 2
    assert "no table 'three'" in capsys.readouterr().err
    shutil.rmtree(tmp_path / "db" / "_session")
    assert main(["state", "--accept", "one", str(tmp_path / "db")]) == 2
    assert "no session" in capsys.readouterr().err
