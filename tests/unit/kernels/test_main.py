"""The command that compiles kernels ahead reports what it does, and compiles nothing for other arguments."""

from __future__ import annotations

import sys

import pytest

from differential.kernels import __main__ as command, compile as compiling
from differential.kernels.fields import field


@pytest.mark.parametrize(("argument", "status"), [("--help", 0), ("--hlep", 2), ("join", 2), ("--processes=0", 2)])
def test_other_arguments_compile_nothing(
    argument: str, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    compiled: list[object] = []
    monkeypatch.setattr(command, "compile_all", compiled.append)
    monkeypatch.setattr(sys, "argv", ["kernels", argument])
    with pytest.raises(SystemExit) as ended:
        command.main()
    assert (ended.value.code, compiled) == (status, [])
    assert ("DIFFERENTIAL_CACHE_DIR" in capsys.readouterr().out) == (status == 0)


def test_without_arguments_all_kernels_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[object] = []
    monkeypatch.setattr(command, "compile_all", compiled.append)
    monkeypatch.setattr(sys, "argv", ["kernels"])
    command.main()
    assert compiled == [print]


@pytest.mark.parametrize(
    ("cached", "processes", "helpers"), [(True, 3, 0), (False, 3, 2), (False, 1, 0), (False, 99, 3)]
)
def test_other_processes_help_while_there_is_something_to_compile(
    cached: bool, processes: int, helpers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    class Helper:
        def __init__(self, command: list[str], **_: object) -> None:
            calls.append(" ".join(command[1:]))

        def terminate(self) -> None:
            calls.append("terminate")

        def wait(self) -> None:
            calls.append("wait")

    def interrupted(_: object) -> None:
        calls.append("compile")
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "are_all_cached", lambda: cached)
    monkeypatch.setattr(command, "compile_all", interrupted)
    monkeypatch.setattr(command.subprocess, "Popen", Helper)
    with pytest.raises(KeyboardInterrupt):
        command.compile_kernels(processes=processes)
    began = ["-m differential.kernels --processes 1"] * helpers
    assert calls == [*began, "compile", *["terminate"] * helpers, *["wait"] * helpers]


def test_a_kernel_is_cached_if_a_process_has_compiled_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "_KERNELS", [])
    compiling.kernel(field.source)  # type: ignore[attr-defined]
    assert compiling.are_all_cached()

    @compiling.kernel
    def never(number: int) -> int:
        return number

    assert not compiling.are_all_cached()
