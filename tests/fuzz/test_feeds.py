"""A few random programs of sessions with sources, sinks and event time. `python -m tests.fuzz.feeds` runs more."""

from __future__ import annotations

import pytest

from tests.fuzz.feeds import running
from tests.fuzz.feeds.__main__ import main
from tests.fuzz.feeds.drawing import draw
from tests.fuzz.feeds.running import run
from tests.fuzz.feeds.twin import Twin


@pytest.mark.parametrize("seed", range(2))
def test_a_session_with_sources_is_its_twin(seed: int) -> None:
    run(draw(seed, workers=1, steps=12))


@pytest.mark.lengthy
@pytest.mark.parametrize("workers", [1, 3])
def test_sessions_with_sources_are_their_twins(workers: int) -> None:
    for seed in range(100, 120):
        run(draw(seed, workers=workers))


@pytest.mark.lengthy
def test_sessions_of_processes_with_sources_are_their_twins() -> None:
    for seed in range(200, 203):
        run(draw(seed, workers=2, processes=True))


def test_a_program_that_fails_is_printed_with_the_steps_that_it_fails_by(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Forgetful(Twin):
        def commit(self) -> tuple[bool, list[str]]:
            made = super().commit()
            self.tables["c"].clear()
            return made

    monkeypatch.setattr(running, "Twin", Forgetful)
    assert main(["--cases", "20", "--seed", "300", "--steps", "6", "--workers", "1"]) == 1
    shown = capsys.readouterr()
    assert shown.out.endswith("programs from seed 300: 1 failed\n")
    assert "Wrong: c: more is" in shown.err
    assert shown.err.splitlines()[-1] == "('commit',)"
