"""What commands print arrives complete, in every locale, or the command ends with one line that states why."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from timely.live import top
from timely.live.client import JobView
from timely.live.jobs import LiveJob
from timely.run import cli

NAME = "d\xe4ta\U0001f4a5"
SCRIPT = f"""
import timely

def program(worker):
    with worker.dataflow({NAME!r}) as scope:
        scope.to_stream([1]).probe()

timely.execute(program)
"""


@pytest.fixture(params=["keys", "containerfile", "k8s", "systemd", "viz", "top"])
def command(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A command that prints a name that is not ASCII."""

    def events(job: LiveJob) -> Iterator[tuple[str, Any]]:
        yield "tick", None

    def take(view: JobView, event: str, data: Any) -> bool:
        view.ticks = 100
        view.workers = [[0, 0, 4711, 0.25, 1.0, 7, NAME, NAME, 0.0]]
        return True

    script = tmp_path / f"{NAME}.py"
    script.write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(top, "job_of", lambda name: LiveJob("", "", ()))
    monkeypatch.setattr(top, "events", events)
    monkeypatch.setattr(JobView, "take", take)
    name: str = request.param
    if name == "top":
        pytest.importorskip("rich")
        return ["top", "--once"]
    options = {"k8s": ["--image", NAME], "keys": [NAME]}.get(name, [])
    return [name, *options, *([] if name == "keys" else [script.name])]


def test_an_output_that_cannot_be_written_is_one_line(
    command: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert cli.main(command) == 1
    assert capsys.readouterr().err == "timely: cannot write to standard output: No space left on device\n"
    monkeypatch.setattr(sys, "stdout", None)
    if command[0] != "keys":
        assert cli.main(command) == 1
        assert capsys.readouterr().err == "timely: standard output is closed\n"


def test_a_name_that_the_locale_cannot_write_is_printed(command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    output = io.BytesIO()
    with io.TextIOWrapper(output, encoding="ascii", errors="surrogateescape") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        assert cli.main(command) == 0
        printed = output.getvalue()
        assert (NAME.encode() if command[0] != "top" else b"d?ta?") in printed or b"key" in printed
