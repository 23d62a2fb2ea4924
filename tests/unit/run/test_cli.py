"""The command `timely`, as far as it starts no processes."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from timely.run import cli


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The scripts that the command would have run, recorded instead of run."""
    targets: list[list[str]] = []

    def run_target(target: list[str], is_module: bool, safe_path: bool) -> int:
        targets.append(["-m", *target] if is_module else target)
        return 0

    monkeypatch.setattr(cli, "run_target", run_target)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(os, "environ", dict(os.environ))
    return targets


def test_an_interrupt_before_anything_is_started_ends_the_command_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_check_target", interrupt)
    assert cli.main(["run", "script.py"]) == 130
    assert capsys.readouterr().err == ""


def test_the_version_is_the_one_that_is_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.metadata, "version", {"timely-dataflow": "1.2.3"}.__getitem__)
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == "timely 1.2.3\n"


def test_sources_that_are_not_installed_have_no_version(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(name: str) -> NoReturn:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == "timely (not installed)\n"


def test_two_dashes_end_the_options_and_those_after_the_script_are_its_own(
    ran: list[list[str]], tmp_path: Path
) -> None:
    script = str(tmp_path / "script.py")
    Path(script).touch()
    for arguments in (["--", script, "--", "-w", "2"], [script, "--", "--bar"], ["-m", "json.tool", "--", "--bar"]):
        sys.path.insert(0, "")
        assert cli.main(["run", *arguments]) == 0
    assert ran == [[script, "--", "-w", "2"], [script, "--", "--bar"], ["-m", "json.tool", "--", "--bar"]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--bar", "script.py"], "'timely run' has no option --bar"),
        (["run", "-w", "2", "--bar=3", "-x", "-m", "module", "--size"], "'timely run' has no option --bar=3"),
        (["run", "--", "--bar"], "cannot read script --bar: No such file or directory"),
        (["run", "--"], "nothing to run"),
        (["keys", "here", "there"], "'timely keys' takes no argument 'there'"),
    ],
)
def test_unknown_arguments_are_named_in_a_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert cli.main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"timely: {message}")
    assert error.count("\n") == 1
    assert "script --bar" in message or f"'timely {arguments[0]} --help'" in error


def test_the_usage_shows_that_the_line_of_the_host_file_is_optional(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        cli.main(["run", "--help"])
    assert "[--hostfile FILE [--process INDEX] [--curve DIR]]" in capsys.readouterr().out
