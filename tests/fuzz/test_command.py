"""The arguments of the fuzzer's command; the fuzzer itself is replaced by a stub."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.fuzz import seeds
from tests.fuzz.__main__ import main


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The arguments of libFuzzer after the name of the program."""
    arguments: list[str] = []

    def set_up(command: list[str], one_input: Callable[[bytes], None]) -> None:
        arguments.extend(command[1:])

    fuzzer = SimpleNamespace(instrument_imports=lambda include: nullcontext(), Setup=set_up, Fuzz=lambda: None)
    monkeypatch.setitem(sys.modules, "atheris", fuzzer)  # type: ignore[arg-type]
    return arguments


def test_options_of_the_fuzzer_reach_it_unchanged(given: list[str], tmp_path: Path) -> None:
    directory = tmp_path / "inputs"
    main([str(directory), "-runs=10", "-handle_segv=0", "-max_total_time=60"])
    assert given == [str(directory), "-runs=10", "-handle_segv=0", "-max_total_time=60"]
    assert any(directory.iterdir())


def test_keeping_writes_the_short_inputs_in_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(seeds, "CORPUS", tmp_path / "corpus.txt")
    inputs = tmp_path / "inputs"
    inputs.mkdir()
    for number, data in enumerate((b"bc", b"\x00", b"x" * 1000)):
        (inputs / str(number)).write_bytes(data)
    main(["--keep", str(inputs)])
    assert (tmp_path / "corpus.txt").read_text() == "00\n6263\n"


def test_help_teaches_with_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert "python -m tests.fuzz DIRECTORY" in shown
    assert "python -m tests.fuzz inputs -max_total_time=3600" in shown
    assert "--keep" in shown


def test_a_missing_fuzzer_is_reported_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "atheris", None)  # type: ignore[arg-type]
    with pytest.raises(SystemExit) as ended:
        main([str(tmp_path / "inputs")])
    assert ended.value.code == 1
    assert capsys.readouterr().err == "the fuzzer is not installed: 'pip install atheris'\n"
    assert not (tmp_path / "inputs").exists()


@pytest.mark.parametrize("arguments", [[], ["--keep"], ["--keep", "missing"], ["--keep", "here", "there"]])
def test_an_impossible_request_is_a_usage_error(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "python -m tests.fuzz" in capsys.readouterr().err
