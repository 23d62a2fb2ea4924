"""Examples refuse invalid options before they run, and answer for all others."""

from __future__ import annotations

import argparse
import sys

import pytest

from tests.examples_loading import EXAMPLES, example_module

WORDS, SOURCES = str(EXAMPLES / "README.md"), str(EXAMPLES)
WHOLE = {
    ("wordcount", WORDS): {"--lines": 1, "--top": 0},
    ("union_find",): {"--nodes": 1, "--edges": 0, "--batch": 1},
    ("kexposure",): {"--count": 1, "--users": 1, "--tags": 1, "--follows": 1, "--epoch": 1},
    ("window",): {"--users": 1, "--rate": 1, "--window": 1, "--slides": 1},
    ("bfs",): {"--nodes": 1, "--edges": 0, "--changes": 0},
    ("logistic",): {"--rows": 8, "--features": 1, "--rounds": 1},
    ("topics",): {"--users": 1, "--tags": 1, "--rate": 1, "--epoch": 1},
    ("interactive",): {"--nodes": 1, "--edges": 0, "--changes": 0, "--rounds": 1, "--keep": 0, "--hops": 0},
    ("barrier",): {"--rounds": 1},
    ("alltoall",): {"--records": 1, "--epochs": 1},
    ("upgrade",): {"--steps": 0, "--batch": 1, "--check": 1},
}
"""The least value of each option that is a whole number."""
REAL = {("logistic",): ["--tolerance"], ("topics",): ["--seconds", "--stale"], ("imports", SOURCES): ["--interval"]}

SMALLEST = [
    ["union_find", "--nodes", "1", "--edges", "0", "--batch", "1"],
    ["union_find", "--nodes", "1", "--edges", "5"],
    ["kexposure", "--count", "1", "--users", "1", "--tags", "1", "--follows", "1", "--epoch", "1"],
    ["window", "--users", "1", "--rate", "1", "--window", "1", "--slides", "1"],
    ["window", "--users", "1", "--rate", "1", "--window", "1", "--slides", "1", "--strong"],
    ["bfs", "--nodes", "1", "--edges", "0", "--changes", "0"],
    ["bfs", "--nodes", "3", "--edges", "0", "--changes", "5"],
    ["logistic", "--rows", "8", "--features", "1", "--rounds", "1", "--tolerance", "0"],
    ["barrier", "--rounds", "1"],
    ["alltoall", "--records", "1", "--epochs", "1"],
    ["interactive", "--nodes", "1", "--edges", "0", "--changes", "0", "--rounds", "1", "--keep", "0", "--hops", "0"],
    ["interactive", "--nodes", "3", "--edges", "0", "--rounds", "3", "--keep", "1"],
]


def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, *arguments: str) -> str:
    """Return the last line of the error with which an example refuses its command line."""
    monkeypatch.setattr(sys, "argv", [f"{name}.py", *arguments])
    with pytest.raises(SystemExit) as ended:
        example_module(name).main()
    assert ended.value.code == 2
    printed = capsys.readouterr()
    assert not printed.out
    return printed.err.splitlines()[-1]


@pytest.mark.parametrize(
    ("command", "option", "least"),
    [(command, option, least) for command, options in WHOLE.items() for option, least in options.items()],
)
def test_a_whole_number_that_is_too_small_is_refused(
    command: tuple[str, ...],
    option: str,
    least: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for value in (str(least - 1), "-7", "1.5", "many"):
        error = refused(monkeypatch, capsys, *command, option, value)
        assert error.endswith(f"error: argument {option}: {value!r} is not a whole number of at least {least}")


@pytest.mark.parametrize(
    ("command", "option"), [(command, option) for command, options in REAL.items() for option in options]
)
@pytest.mark.parametrize("value", ["-0.5", "nan", "inf", "long"])
def test_a_value_that_is_negative_or_not_a_number_is_refused(
    command: tuple[str, ...],
    option: str,
    value: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    error = refused(monkeypatch, capsys, *command, option, value)
    assert error.endswith(f"error: argument {option}: {value!r} is not a number of at least 0.0")


@pytest.mark.parametrize("command", SMALLEST, ids=" ".join)
def test_the_smallest_numbers_have_an_answer(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", command)
    example_module(command[0]).main()
    output = capsys.readouterr().out
    assert output
    assert "nan" not in output


@pytest.mark.parametrize("command", [*WHOLE, ("imports", SOURCES), ("commands",)], ids=" ".join)
def test_the_help_of_each_option_gives_its_meaning_and_its_default(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    parsers: list[argparse.ArgumentParser] = []

    def stop(parser: argparse.ArgumentParser, arguments: object = None) -> None:
        parsers.append(parser)
        raise KeyboardInterrupt

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", stop)
    with pytest.raises(KeyboardInterrupt):
        example_module(command[0]).main()
    for option in parsers[0]._actions[1:]:
        if option.option_strings:
            assert option.help, option.dest
            assert not option.help.startswith("default"), option.dest
            assert not option.default or "default" in option.help, option.dest


def test_the_help_of_commands_explains_which_worker_a_number_names(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["commands.py", "--help"])
    with pytest.raises(SystemExit):
        example_module("commands").main()
    assert "modulo" in capsys.readouterr().out
