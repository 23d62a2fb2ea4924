"""What the user sees of an uncaught error."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType

import pytest

from timely.capture.file import EventFileWriter
from timely.communication.codec import MessageEncoder
from timely.communication.message import Failure
from timely.communication.notes import REPORT_VARIABLE
from timely.config import Config
from timely.errors import CaptureError, ConfigError, DataError, OperatorError, PeerLost
from timely.run.failure import PEER_FAILED, UncaughtHook, describe, fail, install_hook, message


def caught(error: BaseException, cause: BaseException | None = None) -> BaseException:
    try:
        raise error from cause
    except BaseException as raised:
        return raised


def become_another_process(patch: pytest.MonkeyPatch) -> None:
    pid = os.getpid()
    patch.setattr(os, "getpid", lambda: -pid)


def test_a_message_is_followed_by_the_users_lines() -> None:
    error = caught(DataError("column 3 is not a column"))
    assert isinstance(error, DataError)
    first, second, third = message(error).split("\n")
    assert first == "timely: column 3 is not a column"
    assert second.startswith(f"  {__file__}:")
    assert third == "    raise error from cause"


def test_the_lines_of_an_operator_error_are_those_of_its_cause() -> None:
    cause = caught(ZeroDivisionError("division by zero"))
    error = OperatorError("operator 'map' raised")
    error.__cause__ = cause
    assert "in caught" in message(error)


def test_the_line_that_has_called_the_library_comes_before_those_of_the_cause() -> None:
    cause = caught(ZeroDivisionError("division by zero"))
    try:
        raise OperatorError("operator 'map' raised") from cause
    except OperatorError as error:
        shown = message(error)
    assert shown.index("in test_the_line_that_has_called") < shown.index("in caught")


def test_if_the_cause_is_in_the_library_the_lines_are_those_of_the_error() -> None:
    with pytest.raises(CaptureError) as caught_here:
        EventFileWriter("/no such/0.events")
    _, where, line = message(caught_here.value).split("\n")
    assert where.startswith(f"  {__file__}:")
    assert line == '    EventFileWriter("/no such/0.events")'


def test_text_that_cannot_be_encoded_is_still_printed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(REPORT_VARIABLE, str(tmp_path / "report.0"))
    assert fail("caf\udce9.csv: no header line") == 1
    become_another_process(monkeypatch)
    assert fail("caf\udce9.csv: no header line") == PEER_FAILED
    with pytest.raises(SystemExit):
        UncaughtHook(sys.excepthook)(PeerLost, PeerLost("caf\udce9.csv"), None)
    assert "caf" in (tmp_path / "report.0").read_text()


def test_a_process_that_prints_a_text_again_does_not_report_that_a_peer_has_failed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(REPORT_VARIABLE, str(tmp_path / "report.0"))
    assert [fail("edges.csv: no header line") for _ in range(2)] == [1, 1]
    assert capsys.readouterr().err == "edges.csv: no header line\n" * 2
    assert not (tmp_path / "report.0").exists()
    become_another_process(monkeypatch)
    assert fail("edges.csv: no header line") == PEER_FAILED
    assert capsys.readouterr().err == ""


def test_frames_of_the_library_and_of_installed_packages_are_left_out() -> None:
    with pytest.raises(ConfigError) as caught_here:
        Config(processes=0)
    lines = message(caught_here.value).split("\n")
    assert len(lines) == 3
    assert lines[1].startswith(f"  {__file__}:")
    assert lines[2] == "    Config(processes=0)"


def test_an_error_described_in_one_line_names_the_place_where_it_was_raised() -> None:
    text = describe(caught(ValueError("no such thing")))
    assert text.startswith("ValueError: no such thing (")
    assert "test_failure.py:" in text
    assert describe(DataError("plain")) == "plain"
    assert describe(KeyboardInterrupt()) == "interrupted"
    assert describe(SystemExit()) == describe(SystemExit(0)) == "it ended with status 0"
    assert describe(SystemExit(7)) == "it ended with status 7"
    assert describe(SystemExit("timely: no such file")) == "no such file"


@pytest.mark.parametrize("error", [DataError("x" * 100_000), ValueError("\U0001f9fc" * 100_000)])
def test_a_very_long_error_is_truncated_to_fit_into_the_smallest_frame(error: Exception) -> None:
    (header,) = MessageEncoder(0, "run").encode(Failure(0, describe(caught(error))), 1)
    assert len(header) < 1 << 16
    assert "..." in describe(error)


def test_other_errors_go_to_the_former_hook() -> None:
    seen: list[BaseException] = []

    def former(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        seen.append(error)

    error = ValueError("not ours")
    UncaughtHook(former)(ValueError, error, None)
    assert seen == [error]


def test_notes_follow_the_message_and_do_not_change_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    hook = UncaughtHook(sys.__excepthook__)
    errors = [DataError("column 3 is not a column") for _ in range(2)]
    for worker, error in enumerate(errors):
        error.add_note(f"the program failed on worker {worker} of 2")
    monkeypatch.setenv("TIMELY_REPORT", str(tmp_path / "report"))
    hook(DataError, errors[0], None)
    assert capsys.readouterr().err == "timely: column 3 is not a column\n  the program failed on worker 0 of 2\n"
    become_another_process(monkeypatch)
    with pytest.raises(SystemExit) as ended:
        hook(DataError, errors[1], None)
    assert ended.value.code == PEER_FAILED
    assert capsys.readouterr().err == ""


def test_the_hook_is_installed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    install_hook()
    hook = sys.excepthook
    install_hook()
    assert sys.excepthook is hook
    assert isinstance(hook, UncaughtHook)


@pytest.mark.parametrize(
    "call", ["execute(3)", "execute(print, 3)", "execute_from_args(print, [])", "execute_directly(3)"]
)
def test_wrong_arguments_of_execute_end_a_script_without_a_traceback(tmp_path: Path, call: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"from timely import *\n{call}\n")
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    first, *others = ended.stderr.splitlines()
    assert first.startswith("timely: execute")
    assert others == [f"  {script}:2, in <module>", f"    {call}"]


def test_a_lost_peer_is_reported_and_has_a_status_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    error = PeerLost("process 1 is gone")
    hook = UncaughtHook(sys.__excepthook__)
    with pytest.raises(SystemExit) as ended:
        hook(PeerLost, error, None)
    assert ended.value.code == PEER_FAILED
    assert capsys.readouterr().err == "timely: process 1 is gone\n"
    monkeypatch.setenv("TIMELY_REPORT", str(tmp_path / "report"))
    with pytest.raises(SystemExit):
        hook(PeerLost, error, None)
    assert capsys.readouterr().err == ""
    assert (tmp_path / "report").read_text() == "process 1 is gone"
    monkeypatch.setenv("TIMELY_REPORT", str(tmp_path / "removed" / "report"))  # by a launcher that has gone
    with pytest.raises(SystemExit) as ended:
        hook(PeerLost, error, None)
    assert ended.value.code == PEER_FAILED
