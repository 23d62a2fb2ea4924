"""`timely run --state DIR` makes the session of a program durable."""

from __future__ import annotations

from pathlib import Path

import pytest

from differential import Session
from differential.errors import SessionError
from tests.integration.launcher.launching import Run

PROGRAM = """
import os
import signal

import differential as dd

with dd.Session() as db:
    numbers = db.table("numbers", {"n": int})
    for number in range(len(numbers), 6):
        numbers.insert(n=number)
        print("commit", db.commit())
        if number % 3 == 2:
            os.kill(os.getpid(), signal.SIGKILL)
    print("has", [n for (n,) in numbers.records()])
"""


@pytest.mark.lengthy
def test_a_session_goes_on_after_a_restart(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    run = Run("run", "--state", tmp_path / "state", "--restart", "2", tmp_path / "program.py")
    try:
        assert run.end(seconds=50) == 0, run.error
    finally:
        run.close()
    assert [line for line in run.output.splitlines() if line] == [
        *(f"[0] commit {number}" for number in range(1, 7)),
        "[0] has [0, 1, 2, 3, 4, 5]",
    ]
    assert run.error.count("was killed by SIGKILL") == 2


def test_one_session_of_a_program_has_the_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIMELY_STATE_DIR", str(tmp_path / "state"))
    with Session(keep=3) as db:
        db.table("numbers", {"n": [1]})
        db.commit()
        with pytest.raises(SessionError, match=r"another session of this program has the directory .*state.*state="):
            Session()
        with Session(state=tmp_path / "other") as other:
            assert list(other) == []
    with Session() as db:
        assert db.table("numbers").records() == [(1,)]
    monkeypatch.delenv("TIMELY_STATE_DIR")
    with Session() as db:
        assert list(db) == [], "in memory alone"
        with pytest.raises(SessionError, match="keep=3 applies to a durable session"):
            Session(keep=3)
