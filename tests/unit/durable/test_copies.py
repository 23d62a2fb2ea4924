"""Collections of different moments, such as those of a copy made meanwhile, lose no change unnoticed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from differential.durable import Directory, Shard, State, durable_input, persist, stateful
from tests.unit.durable.test_snapshots import Streaks
from timely import Worker, execute_directly
from timely.errors import StateError


def run(where: Path, last: int, kind: str = "answer", *, is_ahead: bool = False) -> int:
    """Make epochs of numbers that do not change the answer, or the state; return the first."""

    def program(worker: Worker) -> int:
        state = State.open(worker, where)
        with worker.dataflow() as scope:
            session, numbers = durable_input(scope, state.shard("numbers"), ahead=is_ahead)
            few = numbers.filter(lambda number: number > 100)
            if kind == "answer":
                probe = persist(few, state.shard("few")).probe
            else:
                probe = stateful(few, Streaks, state.shard("streaks"), every=1).probe()
        first = session.epoch
        for epoch in range(first, last):
            session.insert(epoch)
            session.advance_to(epoch + 1)
            worker.step_while(lambda: probe.less_than((session.epoch,)))
        session.close()
        worker.step_while(lambda: not probe.done())
        return first

    return execute_directly(program)


def numbers(where: Path) -> list[int]:
    return [number for (number,) in Shard("numbers", Directory(str(where)).store("numbers")).read()]


@pytest.mark.parametrize(
    ("kind", "name", "is_ahead"), [("answer", "few", False), ("answer", "few", True), ("state", "streaks", False)]
)
def test_an_input_that_is_older_than_what_is_made_of_it_is_refused(
    tmp_path: Path, kind: str, name: str, is_ahead: bool
) -> None:
    state, old = tmp_path / "state", tmp_path / "old"
    run(state, 3, kind, is_ahead=is_ahead)
    shutil.copytree(state, old)
    run(state, 6, kind, is_ahead=is_ahead)
    shutil.copytree(state, tmp_path / "whole")
    shutil.rmtree(state / "numbers")
    with pytest.raises(StateError, match=f"'numbers' in .* is missing, and '{name}' .* made of its changes before "):
        run(state, 8, kind)
    shutil.copytree(old / "numbers", state / "numbers")
    complaint = f"'numbers' in .* is an older copy, with its changes before 3, and '{name}' .*, or remove '{name}'"
    with pytest.raises(StateError, match=complaint):
        run(state, 8, kind)
    shutil.rmtree(state / name)
    assert run(state, 4, kind) == 3
    assert numbers(state) == [0, 1, 2, 3]
    shutil.rmtree(state)
    shutil.copytree(tmp_path / "whole", state)
    assert run(state, 7, kind) == 6
    assert numbers(state) == [0, 1, 2, 3, 4, 5, 6]


def test_what_is_older_than_its_input_is_computed_again(tmp_path: Path) -> None:
    state, old = tmp_path / "state", tmp_path / "old"
    run(state, 3)
    shutil.copytree(state, old)
    run(state, 6)
    shutil.rmtree(state / "few")
    shutil.copytree(old / "few", state / "few")
    assert run(state, 7) == 6
    assert numbers(state) == [0, 1, 2, 3, 4, 5, 6]
