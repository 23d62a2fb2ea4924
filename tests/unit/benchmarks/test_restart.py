"""A job that is started again gives figures if it goes on where it was, and none if its answers are wrong."""

from __future__ import annotations

import pytest

from benchmarks import restart
from benchmarks.harness import WrongAnswer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def test_a_job_that_goes_on_gives_figures() -> None:
    assert all(figure > 0 for figure in restart.measure(processes=1, steps=3, restarts=1).values())


def test_a_job_with_wrong_answers_gives_none(monkeypatch: pytest.MonkeyPatch) -> None:
    from_scratch = restart._from_scratch
    monkeypatch.setattr(restart, "_from_scratch", lambda step: from_scratch(step + 50))
    with pytest.raises(WrongAnswer, match="the answers after the restarts are wrong"):
        restart.measure(processes=1, steps=3, restarts=1)
