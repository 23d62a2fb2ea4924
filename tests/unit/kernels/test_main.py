"""The command that compiles kernels ahead says what it does, and does nothing else when asked for something else."""

from __future__ import annotations

import sys

import pytest

from differential.kernels import __main__ as command


@pytest.mark.parametrize(("argument", "status"), [("--help", 0), ("--hlep", 2), ("join", 2)])
def test_what_is_no_order_to_compile_compiles_nothing(
    argument: str, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    compiled: list[object] = []
    monkeypatch.setattr(command, "compile_all", compiled.append)
    monkeypatch.setattr(sys, "argv", ["kernels", argument])
    with pytest.raises(SystemExit) as ended:
        command.main()
    assert (ended.value.code, compiled) == (status, [])
    assert ("__pycache__" in capsys.readouterr().out) == (status == 0)


def test_without_arguments_all_kernels_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[object] = []
    monkeypatch.setattr(command, "compile_all", compiled.append)
    monkeypatch.setattr(sys, "argv", ["kernels"])
    command.main()
    assert compiled == [print]
