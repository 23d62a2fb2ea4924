"""Notices are not a reason for a program to end."""

from __future__ import annotations

import io
import sys

import pytest

from timely.observe.notices import notify, on_notice, print_error


class Full(io.StringIO):
    """A stream that nothing can be written to."""

    def write(self, text: str) -> int:
        raise OSError(28, "No space left on device")


@pytest.mark.parametrize("stderr", [None, Full()])
def test_nobody_needs_to_receive_a_notice(
    stderr: io.StringIO | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stderr", stderr)
    notify("nothing has moved")
    print_error("nothing has moved")
    assert capsys.readouterr().out == ""


def test_a_notice_is_one_line_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    notify("nothing has moved")
    assert capsys.readouterr() == ("", "timely: nothing has moved\n")


def test_whoever_ends_to_listen_twice_ends_nobody_else() -> None:
    heard: list[str] = []
    stop, stop_another = on_notice(heard.append), on_notice(heard.append)
    stop()
    stop()
    notify("nothing has moved")
    stop_another()
    assert heard == ["nothing has moved"]
