"""What `timely run` is asked for holds for the session of its script."""

from __future__ import annotations

import pytest

from differential.session import Session


@pytest.mark.parametrize("processes", [False, pytest.param(True, marks=pytest.mark.lengthy)])
def test_the_settings_of_the_environment_hold_for_a_session(
    processes: bool, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TIMELY_PROFILE", "1")
    with Session(workers=2, processes=processes) as db:
        db.table("words", {"word": ["to", "be"]})
        db.view("counts", lambda t: t.words.count())
        db.commit()
    printed = capfd.readouterr().err
    assert "timely: process 0: " in printed
    assert "runs  busy s  records in" in printed
