"""A few random programs of sessions, and what happens to one that fails. `python -m tests.fuzz.sessions` runs more."""

from __future__ import annotations

import pytest

from tests.fuzz.programs import Wrong, shrunk
from tests.fuzz.sessions import running
from tests.fuzz.sessions.__main__ import main
from tests.fuzz.sessions.drawing import draw
from tests.fuzz.sessions.running import run
from tests.fuzz.sessions.values import Row
from tests.fuzz.sessions.views import Rows, Tree


@pytest.mark.parametrize("seed", range(4))
def test_a_session_is_its_twin(seed: int) -> None:
    run(draw(seed, steps=10))


@pytest.mark.lengthy
@pytest.mark.parametrize("seed", range(100, 160, 20))
def test_sessions_are_their_twins(seed: int) -> None:
    for each in range(seed, seed + 20):
        run(draw(each))


@pytest.mark.lengthy
def test_sessions_of_processes_are_their_twins() -> None:
    for seed in range(200, 206):
        run(draw(seed, workers=2, processes=True))


def test_a_program_that_fails_is_printed_with_the_steps_that_it_fails_by(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def forgetful(tree: Tree, tables: dict[str, Rows]) -> Rows:
        rows = right(tree, tables)
        return rows if len(rows) < 2 else type(rows)({min(rows, key=repr): 1})

    right = running.answer
    monkeypatch.setattr(running, "answer", forgetful)
    assert main(["--cases", "40", "--seed", "300", "--steps", "10", "--workers", "1"]) == 1
    shown = capsys.readouterr()
    assert shown.out.endswith("programs from seed 300: 1 failed\n")
    assert "Wrong: " in shown.err
    assert "seed 3" in shown.err


def test_the_smallest_program_fails_without_none_of_its_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: object, name: str, how: str, rows: tuple[Row, ...], form: str) -> None:
        if how == "upsert":
            raise Wrong("no upserts today")

    monkeypatch.setattr(running._Running, "do_state", refuse)
    program = next(
        each for each in map(draw, range(100)) if any(step[0] == "state" and step[2] == "upsert" for step in each.steps)
    )
    (step,) = shrunk(program, run, Wrong).steps
    assert "upsert" in [how for _, _, how, *_ in (step[1] if step[0] == "block" else [step])]
