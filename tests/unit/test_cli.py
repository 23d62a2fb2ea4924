"""The command `timely`, as far as it needs no processes."""

from __future__ import annotations

from typing import NoReturn

import pytest

from timely import cli


def test_an_interrupt_before_anything_is_started_ends_the_command_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_check_target", interrupt)
    assert cli.main(["run", "script.py"]) == 130
    assert capsys.readouterr().err == ""
