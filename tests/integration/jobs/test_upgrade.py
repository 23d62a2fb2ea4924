"""The main example: the same right answers for every number of workers and size of batch, and how it fails."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time as clock
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from differential.jobs.outputs import Outputs
from tests.examples_loading import EXAMPLES, example_module, write_random_upgrade, write_rows
from tests.integration.launcher.launching import ROOT, Run
from timely import Config, execute

pytest.importorskip("scipy")
debian = example_module("debian")
oracle = example_module("graph_oracle")
program = example_module("upgrade")

EVERY = ["components", "cycles", "watch", "top"]
WATCHED = ["p03", "p07"]
Files = tuple[Path, Path]


@pytest.fixture
def start() -> Iterator[Callable[..., Run]]:
    runs: list[Run] = []

    def begin(*arguments: str | Path) -> Run:
        runs.append(Run(*arguments))
        return runs[-1]

    yield begin
    for run in runs:
        run.close()


def replayed(files: Files, *, workers: int = 1, only: list[str] = EVERY, **given: Any) -> Any:
    """Return the report of a run in this process."""
    upgrade = debian.load(*files)
    watch = {name: upgrade.package(name) for name in WATCHED}
    options = Namespace(
        **{"steps": upgrade.steps, "batch": 1, "check": 0, "print_changes": False, "only": only, "plot": None} | given
    )
    outputs = Outputs("upgrade", Namespace(quiet=False), is_quiet=False)
    reports = execute(lambda worker: program.replay(worker, upgrade, watch, options, outputs), Config(workers=workers))
    assert reports[1:] == [None] * (workers - 1)
    return reports[0]


def script(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run `python upgrade.py`; return the process after its end."""
    environ = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, EXAMPLES / "upgrade.py", *arguments]
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=280, check=False)


def given(files: Files) -> list[str | Path]:
    return ["--initial", files[0], "--upgrade", files[1]]


# Right answers


@pytest.mark.lengthy
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("workers", [1, 2])
def test_answers_after_every_step_are_those_from_scratch(tmp_path: Path, seed: int, workers: int) -> None:
    report = replayed(write_random_upgrade(tmp_path, seed), workers=workers, check=1)
    assert report.steps == 25
    assert len(report.batches) == 25


@pytest.mark.lengthy
@pytest.mark.parametrize("seed", [3, 4])
def test_answers_do_not_depend_on_workers_or_batches(tmp_path: Path, seed: int) -> None:
    files = write_random_upgrade(tmp_path, seed)
    alone, shared, whole = (
        replayed(files, workers=workers, batch=batch, check=100).as_json()
        for workers, batch in [(1, 1), (3, 7), (2, 25)]
    )
    for figure in ("steps", "updates", "initial", "final", "differences"):
        assert alone[figure] == shared[figure] == whole[figure]


@pytest.mark.parametrize("batch", [1, 7])
def test_each_change_of_a_watched_answer_is_printed_with_its_step(
    tmp_path: Path, batch: int, capsys: pytest.CaptureFixture[str]
) -> None:
    files = write_random_upgrade(tmp_path, seed=5)
    replayed(files, only=["watch"], print_changes=True, batch=batch)
    printed = re.findall(r"^step (\d+) \((\w+)\): (\w+) (\d+) -> (\d+) ", capsys.readouterr().out, re.MULTILINE)

    upgrade = debian.load(*files)
    watch = {name: upgrade.package(name) for name in WATCHED}
    expected = []
    before: dict[str, int] = {}
    for step in range(upgrade.steps + 1):
        now = oracle.answers(upgrade.names, *upgrade.edges_at(step), watch, ["watch"])["watch"]
        for name in watch:
            if step and before[name] != now[name]:
                expected.append((str(step), upgrade.origin(step), name, str(before[name]), str(now[name])))
        before = now
    assert sorted(printed) == sorted(expected)
    assert len(expected) > 5


@pytest.mark.parametrize("only", EVERY)
def test_a_question_can_be_asked_alone(tmp_path: Path, only: str) -> None:
    report = replayed(write_random_upgrade(tmp_path, seed=6), only=[only], check=5)
    assert list(report.final) == ["edges", only]


def test_a_run_can_take_fewer_steps(tmp_path: Path) -> None:
    files = write_random_upgrade(tmp_path, seed=7)
    report = replayed(files, steps=9, batch=4, check=100)
    upgrade = debian.load(*files)
    assert report.final["edges"] == len(upgrade.edges_at(9)[0])
    assert [steps for steps, _ in report.batches] == [4, 4, 1]
    assert replayed(files, steps=0, check=1).final == report.initial


def test_a_difference_from_scratch_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = oracle.components

    def wrong_for_few(graph: Any, packages: Any) -> Any:
        return right(graph, packages) if len(graph.data) != edges else {"count": -1, "largest": -1}

    files = write_random_upgrade(tmp_path, seed=8)
    edges = len(debian.load(*files).edges_at(10)[0])
    monkeypatch.setattr(oracle, "components", wrong_for_few)
    message = r"after step \d+ the answer 'components' is \{'count': \d+, .*; computed from scratch: \{'count': -1, "
    with pytest.raises(program.CheckError, match=message):
        replayed(files, check=10)


# The command


@pytest.mark.lengthy
@pytest.mark.timeout(300)
def test_two_processes_give_the_answers_of_one(tmp_path: Path, start: Callable[..., Run]) -> None:
    files = write_random_upgrade(tmp_path, seed=9)
    alone = replayed(files).as_json()
    run = start(
        "run", "-n", "2", EXAMPLES / "upgrade.py", *given(files),
        "--watch", "p03", "--watch", "p07", "--check", "10", "--batch", "3", "--json", tmp_path / "report.json",
    )  # fmt: skip
    assert run.end(250) == 0, run.error
    found = json.loads((tmp_path / "report.json").read_text())
    for figure in ("steps", "updates", "initial", "final", "differences"):
        assert found[figure] == alone[figure]
    figures = {"steps", "updates", "initial", "final", "latency_ms", "seconds", "differences"}
    assert found.keys() == {"job", "answer"} | figures
    assert found["latency_ms"].keys() == {"median", "p95", "p99", "max"}
    assert found["seconds"].keys() == {"load", "initial", "steps"}
    assert all(line.startswith("[0] ") for line in run.lines)
    assert "latency of a step: median" in run.output


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_first_steps_of_the_real_upgrade_are_right(tmp_path: Path) -> None:
    ended = script("--steps", "20", "--check", "10", "--json", tmp_path / "report.json")
    assert ended.returncode == 0, ended.stderr
    initial = json.loads((tmp_path / "report.json").read_text())["initial"]
    assert initial["edges"] == 279_192
    assert initial["watch"] == {"libssl3": 29_433, "libssl3t64": 0, "python3": 9_118}
    assert initial["top"][0] == ["libc6", 21_809]


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("arguments", [["-n", "2"], ["-w", "2", "--batch", "100"]])
def test_the_whole_upgrade_is_right(start: Callable[..., Run], arguments: list[str]) -> None:
    run = start("run", *arguments[:2], EXAMPLES / "upgrade.py", "--check", "1000", *arguments[2:])
    assert run.end(3500) == 0, run.error
    assert "after step 19,521:" in run.output


# Bad input


def test_a_bad_line_ends_the_program_with_a_message_that_names_it(tmp_path: Path) -> None:
    initial = write_rows(tmp_path / "initial.tsv", [("a", "b")])
    changes = write_rows(tmp_path / "changes.tsv", [(1, "-", "a", "c")])
    ended = script(*given((initial, changes)), "--watch", "a")
    assert ended.returncode == 1
    assert ended.stderr == f"upgrade: {changes}, line 1: removes an edge that is not there: a -> c\n"


def test_a_bad_line_ends_all_processes(tmp_path: Path, start: Callable[..., Run]) -> None:
    initial = write_rows(tmp_path / "initial.tsv", [("a", "b"), ("a",)])
    changes = write_rows(tmp_path / "changes.tsv", [])
    run = start("run", "-n", "2", EXAMPLES / "upgrade.py", *given((initial, changes)))
    assert run.end() == 1
    assert f"upgrade: {initial}, line 2: expected 2 fields (package, needed package), found 1\n" in run.error
    assert "Traceback" not in run.error


def test_an_unknown_watched_package_is_refused(tmp_path: Path) -> None:
    ended = script(*given(write_random_upgrade(tmp_path, seed=1)), "--watch", "p99")
    assert ended.returncode == 1
    assert ended.stderr.startswith("upgrade: no package is called 'p99'; did you mean p0")


def run_here(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> int:
    """Return the status that the program ends with, run in this process."""
    monkeypatch.setattr(sys, "argv", ["upgrade.py", *map(str, arguments)])
    return int(program.main())


def test_packages_are_looked_up_if_they_are_to_be_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = given(write_random_upgrade(tmp_path, seed=1))
    assert run_here(monkeypatch, *files, "--only", "top", "--steps", "2") == 0
    assert run_here(monkeypatch, *files, "--only", "watch,top") == 1
    message = "upgrade: no package is called 'libssl3', which is watched by default; name others with --watch\n"
    assert capsys.readouterr().err.endswith(message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "tops"], "'tops' is not one of components, cycles, watch, top"),
        (["--batch", "0"], "'0' is not a whole number of at least 1"),
        (["--steps", "-1"], "'-1' is not a whole number of at least 0"),
        (["--only", "top", "--print-changes"], "--print-changes is about the answer 'watch', which --only leaves out"),
        (["--only", "top", "--changes", "-"], "--changes is about the answer 'watch', which --only leaves out"),
        (["--only", "top", "--watch", "perl"], "--watch is about the answer 'watch', which --only leaves out"),
        (["--plot", "picture.txt"], "'picture.txt' does not end in .svg, .png or .pdf"),
    ],
)
def test_invalid_options_are_refused(arguments: list[str], message: str) -> None:
    ended = script(*arguments)
    assert ended.returncode == 2
    assert message in ended.stderr


def test_changes_of_watched_answers_are_a_stream_that_adds_up_to_the_last_answer(tmp_path: Path) -> None:
    files = write_random_upgrade(tmp_path, seed=5)
    arguments = [*given(files), "--only", "watch", "--watch", "p03", "--watch", "p07", "--changes"]
    ended = script(*arguments, tmp_path / "changes.tsv", "--json", tmp_path / "report.json")
    assert ended.returncode == 0, ended.stderr
    counts: Counter[tuple[str, int]] = Counter()
    steps = []
    for line in (tmp_path / "changes.tsv").read_text().splitlines():
        step, sign, package, number = line.split("\t")
        counts[package, int(number)] += 1 if sign == "+" else -1
        steps.append(int(step))
    last = json.loads((tmp_path / "report.json").read_text())["final"]["watch"]
    assert dict(record for record, count in counts.items() if count) == last
    assert set(counts.values()) <= {0, 1}
    assert steps == sorted(steps)


@pytest.mark.parametrize("option", ["--json", "--plot"])
def test_an_output_that_cannot_be_written_is_named(
    option: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    assert run_here(monkeypatch, option, "nowhere/file.svg") == 1
    assert capsys.readouterr().err == "upgrade: cannot write nowhere/file.svg: No such file or directory\n"


@pytest.mark.lengthy
@pytest.mark.parametrize(("only", "panels"), [("components,cycles,watch,top", 5), ("top", 2)])
def test_the_picture_shows_latency_and_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, only: str, panels: int
) -> None:
    pytest.importorskip("matplotlib")
    files, place = given(write_random_upgrade(tmp_path, seed=1)), tmp_path / "picture.svg"
    watch = ["--watch", "p03"] if "watch" in only else []
    assert run_here(monkeypatch, *files, "--only", only, *watch, "--plot", place) == 0
    assert place.read_text().count('<g id="axes_') == panels


def test_as_many_answers_are_drawn_as_there_is_room_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "POINTS", 5)
    report = replayed(write_random_upgrade(tmp_path, seed=1), plot="picture.svg")
    assert [step for step, _ in report.history] == [0, 5, 10, 15, 20, 25]
    assert report.history[0][1] == report.initial
    assert report.history[-1][1] == report.final


def test_without_scipy_a_check_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = write_random_upgrade(tmp_path, seed=1)
    monkeypatch.setattr(oracle, "find_spec", lambda name: None)
    monkeypatch.setattr(sys, "argv", ["upgrade.py", *map(str, given(files)), "--watch", "p03", "--check", "1"])
    assert program.main() == 1
    assert "pip install 'timely-dataflow[check]'" in capsys.readouterr().err


@pytest.mark.lengthy
@pytest.mark.timeout(300)
def test_ctrl_c_ends_the_program_without_a_traceback(tmp_path: Path, start: Callable[..., Run]) -> None:
    files = write_random_upgrade(tmp_path, seed=0, steps=20_000)
    run = start("run", "-n", "2", EXAMPLES / "upgrade.py", *given(files), "--only", "top")
    end = clock.monotonic() + 250
    while "initial answers" not in run.output:
        assert clock.monotonic() < end, run.error
        clock.sleep(0.05)
    run.send(signal.SIGINT)
    assert run.end() == 130
    assert "Traceback" not in run.error
