"""Notes of processes that can be looked at: who can read them, and which are believed."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from timely.observe.presence import Presence, fellows, note, presences, socket_of, withdraw


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The private directory of a run, in a directory for temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    made = tmp_path / "timely-run-aaaaaaaa"
    made.mkdir(mode=0o700)
    return made


def noted(directory: Path, **changed: object) -> Presence:
    """Note this process in a directory."""
    pid = os.getpid()
    presence = Presence(pid, 7, "job.py", {"r": 2}, socket_of(directory, pid))._replace(**changed)
    note(presence)
    return presence


def found(directory: Path) -> list[Presence]:
    return [presence for presence in presences() if presence.socket.parent == directory]


def test_a_note_is_read_as_it_was_written_until_it_is_withdrawn(directory: Path) -> None:
    presence = noted(directory)
    assert found(directory) == [presence]
    assert [(index, each) for index, each in fellows({"r": 0, "s": 1}) if each == presence] == [(2, presence)]
    assert presence not in [each for _, each in fellows({"s": 0})]
    withdraw(presence)
    withdraw(presence)
    assert found(directory) == []
    assert [*directory.iterdir()] == []


def test_only_the_owner_can_read_a_note(directory: Path) -> None:
    noted(directory)
    assert {stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()} == {0o600}


@pytest.mark.parametrize(("mode", "of_file"), [(0o755, 0o600), (0o770, 0o600), (0o700, 0o644)])
def test_what_others_can_enter_or_write_is_not_read(directory: Path, mode: int, of_file: int) -> None:
    presence = noted(directory)
    presence.socket.with_name(f"{presence.socket.name}.json").chmod(of_file)
    directory.chmod(mode)
    assert found(directory) == []


def test_a_process_that_has_ended_is_passed_over(directory: Path) -> None:
    noted(directory, pid=2**22 + 1, socket=socket_of(directory, 2**22 + 1))
    assert found(directory) == []


def test_a_process_that_was_killed_is_passed_over_though_nobody_has_waited_for_it(directory: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    noted(directory, pid=process.pid, socket=socket_of(directory, process.pid))
    assert len(found(directory)) == 1
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert found(directory) == []
    process.communicate(timeout=30)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"launcher": "x", "program": "", "runs": {}}', '{"launcher": 0, "program": "", "runs": 1}'],
)
def test_damaged_notes_are_passed_over(directory: Path, text: str) -> None:
    presence = noted(directory)
    presence.socket.with_name(f"{presence.socket.name}.json").write_text(text)
    assert found(directory) == []


def test_two_notes_with_the_number_of_one_process_are_both_read(directory: Path, tmp_path: Path) -> None:
    other = tmp_path / "timely-run-bbbbbbbb"
    other.mkdir(mode=0o700)
    expected = [noted(directory), noted(other, runs={"s": 0}, socket=socket_of(other, os.getpid()))]
    assert [each for each in presences() if each.socket.is_relative_to(tmp_path)] == expected
