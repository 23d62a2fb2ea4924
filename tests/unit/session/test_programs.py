"""Programs of workers read the tables of a session from its directory, and leave them as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import differential as dd
from differential.durable import Directory, DurableOutput, DurableSession, Shard, State, durable_input, persist
from timely import Worker, execute_directly
from timely.errors import SessionError, StateError


def double(directory: Path, name: str | None = None, *, change: bool = False) -> dict[tuple[Any, ...], int] | None:
    """Read the table "numbers" in a program, and make durable what is twice as large if that has a name."""

    def program(worker: Worker) -> dict[tuple[Any, ...], int] | None:
        state = State.open(worker, directory)
        answer: DurableOutput | None = None
        with worker.dataflow() as scope:
            session: DurableSession
            session, numbers = durable_input(scope, state.shard("numbers"))
            doubled = numbers.map(lambda number: 2 * number)
            output = doubled.output()
            if name is not None:
                answer = persist(doubled, state.shard(name, fields=["number"]))
        if change:
            session.insert(9)
        session.close()
        worker.step_while(lambda: not output.done() or (answer is not None and not answer.done()))
        return output.contents()

    return execute_directly(program)


def commit(directory: Path, number: int) -> tuple[list[int], list[int]]:
    """Commit one more number; return all numbers, and what is durable of their view."""
    with dd.Session(state=directory) as db:
        numbers = db.table("numbers", {"number": int})
        twice = db.view("twice", lambda t: t.numbers.map(lambda number: 2 * number).named("number"), durable=True)
        numbers.insert(number=number)
        db.commit()
        return [number for (number,) in numbers.records()], [number for (number,) in twice.records()]


@pytest.mark.parametrize("name", [None, "doubled", "twice"])
def test_a_table_that_a_program_has_read_is_one_of_the_session(tmp_path: Path, name: str | None) -> None:
    commit(tmp_path, 1)
    commit(tmp_path, 2)
    assert double(tmp_path, name) == {(2,): 1, (4,): 1}
    assert commit(tmp_path, 3) == ([1, 2, 3], [2, 4, 6])
    assert double(tmp_path, name) == {(2,): 1, (4,): 1, (6,): 1}
    assert commit(tmp_path, 4) == ([1, 2, 3, 4], [2, 4, 6, 8])


def test_a_program_cannot_change_a_table_of_a_session(tmp_path: Path) -> None:
    """The session would give up the change, which none of its commits has decided."""
    commit(tmp_path, 1)
    with pytest.raises(StateError, match=r"'numbers' in .* is a table of a session, which alone can change it"):
        double(tmp_path, change=True)

    def widen(worker: Worker) -> None:
        State.open(worker, tmp_path).shard("numbers", fields=["number", "name"], added={"name": ""})

    with pytest.raises(StateError, match=r"'numbers' in .* is a table of a session, which alone can change it"):
        execute_directly(widen)
    assert commit(tmp_path, 2) == ([1, 2], [2, 4])


def test_a_session_takes_no_collection_of_a_program_for_its_own(tmp_path: Path) -> None:
    commit(tmp_path, 1)
    double(tmp_path, "doubled")
    with dd.Session(state=tmp_path) as db:
        with pytest.raises(SessionError, match="'doubled' is a durable collection of another program"):
            db.table("doubled", {"number": int})
        with pytest.raises(SessionError, match="'doubled' is a durable collection of another program"):
            db.view("doubled", lambda t: t.numbers, durable=True)
    assert Shard("doubled", Directory(str(tmp_path)).store("doubled")).read() == {(2,): 1}
