"""A program of workers reads the tables of a session, and leaves them, and the session, as they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import differential as dd
from differential.durable import Directory, DurableSession, Shard, State, durable_input, persist
from timely import Worker, execute_directly
from timely.errors import StateError


@pytest.fixture
def directory(tmp_path: Path) -> str:
    """Return the directory of a session after three commits: two of them have changed the table `one`."""
    directory = str(tmp_path / "db")
    with dd.Session(state=directory, keep=None) as db:
        one, two = db.table("one", {"x": [1]}), db.table("two", {"y": [1]})
        db.commit()
        one.insert(x=2)
        db.commit()
        two.insert(y=2)
        db.commit()
    return directory


def shard(directory: str, name: str) -> Shard:
    return Shard(name, Directory(directory).store(name))


def reading(worker: Worker, directory: str, use: Callable[[DurableSession], object]) -> dict[Any, int]:
    state = State.open(worker, directory)
    with worker.dataflow() as scope:
        sessions, collections = zip(*(durable_input(scope, state.shard(name, keep=0)) for name in ("one", "two")))
        found = collections[0].concat(collections[1]).output()
        persist(collections[0].concat(collections[1]), state.shard("answer"))
    for session in sessions:
        use(session)
        session.close()
    worker.step_while(lambda: not found.done())
    return found.contents()


USES: dict[str, Callable[[DurableSession], object]] = {
    "insert": lambda session: session.insert(7),
    "advance": lambda session: session.advance_to(session.epoch + 1),
    "position": lambda session: session.at("file", 7),
}


def test_what_is_read_stays_as_it_is(directory: str) -> None:
    before = {name: shard(directory, name).manifest() for name in ("one", "two")}
    for _ in range(2):
        assert execute_directly(lambda w: reading(w, directory, lambda _: None)) == {(1,): 2, (2,): 2}
    for name, manifest in before.items():
        after = shard(directory, name).manifest()
        assert (after.since, after.upper, after.parts) == (manifest.since, manifest.upper, manifest.parts)
    with dd.Session(state=directory) as db:
        assert (db["one"].records(), db["two"].records(), db.commit()) == ([(1,), (2,)], [(1,), (2,)], 4)


@pytest.mark.parametrize("use", USES)
def test_only_a_session_changes_a_table(directory: str, use: str) -> None:
    with pytest.raises(StateError, match=r"'one' in .* is a table of a session, which alone can change it: only read"):
        execute_directly(lambda w: reading(w, directory, USES[use]))
    with dd.Session(state=directory) as db:
        assert (db["one"].records(), db.commit()) == ([(1,), (2,)], 4)
