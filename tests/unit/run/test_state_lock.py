"""Of two runs with `--restart` on one directory of state the second is refused, before it starts anything."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from timely.errors import ConfigError
from timely.run.cli import main
from timely.run.state import LOCK, reserved


def test_a_second_group_is_refused_and_names_the_first(tmp_path: Path) -> None:
    directory = str(tmp_path / "state")
    with reserved(directory, 3):
        for restarts in (0, 1):
            with (
                pytest.raises(ConfigError, match=rf"state belongs to a run with --restart \(process {os.getpid()} on"),
                reserved(directory, restarts),
            ):
                raise AssertionError("it has begun")
        with reserved(str(tmp_path / "other"), 1):
            pass
    with reserved(directory, 1), reserved(None, 1):
        pass


def test_runs_without_restarts_keep_nobody_out(tmp_path: Path) -> None:
    directory = str(tmp_path / "state")
    with reserved(directory, 0), reserved(directory, 0):
        assert not (tmp_path / "state").exists()
    with reserved(directory, 1):
        pass
    with reserved(directory, 0), reserved(directory, 1):
        pass


def test_the_command_refuses_with_the_status_of_wrong_arguments(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIMELY_STATE_DIR", "")  # which the command sets
    script, state = tmp_path / "script.py", tmp_path / "state"
    script.write_text(f"open({str(tmp_path / 'begun')!r}, 'w').close()")
    with reserved(str(state), 1):
        for options in (["--restart", "1"], []):
            assert main(["run", "--state", str(state), *options, str(script)]) == 2
            assert "belongs to a run with --restart" in capsys.readouterr().err
    assert not (tmp_path / "begun").exists()


def test_a_directory_that_cannot_be_locked_is_named(tmp_path: Path) -> None:
    (tmp_path / LOCK).mkdir()
    with pytest.raises(ConfigError, match=f"cannot lock {tmp_path / LOCK}: Is a directory"), reserved(str(tmp_path), 1):
        raise AssertionError("it has begun")


def test_a_file_system_without_locks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with (
        pytest.raises(ConfigError, match=f"cannot lock {tmp_path / LOCK}: No locks available"),
        reserved(str(tmp_path), 1),
    ):
        raise AssertionError("it has begun")
