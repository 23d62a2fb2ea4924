"""Variables of the environment that look like ours."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from timely import Config, execute, execute_directly, execute_from_args
from timely.communication.notes import REPORT_VARIABLE
from timely.run.environment import KNOWN, unknown_variables

ROOT = Path(__file__).parents[3]
LINE = "unknown variable TIMELY_STALL: did you mean TIMELY_STALL_SECONDS?"


def test_every_variable_that_the_sources_name_is_known() -> None:
    files = [file for package in ("timely", "differential") for file in (ROOT / package).rglob("*.py")]
    files.append(ROOT / "hatch_build.py")
    named = {
        name for file in files for name in re.findall(r"\b(?:TIMELY|DIFFERENTIAL)_[A-Z_]*[A-Z]\b", file.read_text())
    }
    assert named - {"TIMELY_STALL"} <= KNOWN
    assert named >= {REPORT_VARIABLE, "DIFFERENTIAL_KERNELS"}


def test_an_unknown_variable_without_a_similar_one_is_named_without_a_guess() -> None:
    assert unknown_variables({"TIMELY_XYZ": "", "TIMELY_WORKERS": "2"}) == ["unknown variable TIMELY_XYZ is ignored"]


def test_a_configuration_that_is_given_reads_no_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TIMELY_STALL", "5")
    execute(lambda worker: None, Config())
    execute_directly(lambda worker: None)
    assert capsys.readouterr().err == ""


def test_the_environment_decides_what_options_do_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TIMELY_STAL_SECONDS", "5")
    for _ in range(2):
        execute_from_args(["-w", "1"], lambda worker: None)
    assert (
        capsys.readouterr().err == "timely: unknown variable TIMELY_STAL_SECONDS: did you mean TIMELY_STALL_SECONDS?\n"
    )


@pytest.mark.parametrize(
    "command", [[], ["-m", "timely", "run"], ["-m", "timely", "run", "-w", "2"], ["-m", "timely", "run", "-n", "2"]]
)
def test_an_unknown_variable_is_named_once_a_run(tmp_path: Path, command: list[str]) -> None:
    script = tmp_path / "script.py"
    script.write_text("from timely import execute\nfor _ in range(2):\n    execute(lambda worker: None)\n")
    environ = os.environ | {"TIMELY_STALL": "5", "TIMELY_STALL_SECONDS": "60", "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(
        [sys.executable, *command, str(script)], env=environ, capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", f"timely: {LINE}\n")
