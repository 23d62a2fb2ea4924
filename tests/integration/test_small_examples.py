"""The small examples run, and are right."""

from __future__ import annotations

import argparse
import re
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from tests.examples_loading import example_module
from tests.integration.launcher.launching import Run
from timely import Config, execute

bfs = example_module("bfs")
commands = example_module("commands")
durable = example_module("durable")
interactive = example_module("interactive")


@pytest.mark.parametrize("workers", [1, 2])
def test_bfs_counts_the_nodes_at_each_distance(workers: int, capsys: pytest.CaptureFixture[str]) -> None:
    nodes, edges, changes = 40, 60, 25
    execute(lambda worker: bfs.program(worker, nodes, edges, changes), Config(workers=workers))
    source, target = bfs.random_edges(changes, edges, nodes)
    distance, frontier, reached = 0, {0}, {0}
    expected = []
    while frontier:
        expected.append(f"distance {distance}: {len(frontier)} nodes")
        frontier = {t for s, t in zip(source.tolist(), target.tolist()) if s in frontier} - reached
        reached |= frontier
        distance += 1
    assert capsys.readouterr().out.splitlines()[:-1] == expected
    assert len(expected) > 3


ANSWERS = [
    "evens: 5 multiples of 2",
    "evens: 50 multiples of 2",
    "thirds: 334 multiples of 3",
    "thirds: 34 multiples of 3",
]


@pytest.mark.parametrize("workers", [1, 3])
def test_commands_of_any_worker_install_and_drop_dataflows(workers: int, capsys: pytest.CaptureFixture[str]) -> None:
    results = execute(lambda worker: commands.program(worker, commands.SCRIPT), Config(workers=workers))
    assert results == [[line[2:] for line in commands.SCRIPT]] * workers
    assert sorted(capsys.readouterr().out.splitlines()) == ANSWERS


def test_commands_install_and_drop_dataflows_on_two_processes() -> None:
    with closing(Run("run", "-n", "2", commands.__file__)) as run:
        assert run.end() == 0, run.error
        assert sorted(line.partition("] ")[2] for line in run.output.splitlines()) == ANSWERS


@pytest.mark.parametrize("line", ["install a 2", "0 install a", "0 install a 0", "0 feed ten", "0 dorp a"])
def test_a_line_that_is_not_a_command_is_refused(line: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=f"'{line}' is not one of"):
        commands.checked(line)


def test_a_command_that_cannot_be_executed_is_refused() -> None:
    for script in (["0 drop a"], ["0 install a 2", "0 install a 3"]):
        with pytest.raises(ValueError, match=f"'{script[-1][2:]}' cannot run"):
            execute(lambda worker, script=script: commands.program(worker, script), Config(workers=2))


@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("workers", [1, 2])
def test_questions_of_a_shared_graph_are_answered(private: bool, workers: int) -> None:
    nodes, edges, changes, rounds = 50, 120, 5, 8
    reports = execute(
        lambda worker: interactive.program(worker, nodes, edges, changes, rounds, 3, 2, private),
        Config(workers=workers),
    )
    source, target = bfs.random_edges(rounds * changes, edges, nodes)
    assert len(reports[0].answers) == 3
    for node, found in reports[0].answers:
        reached = np.array([node])
        for _ in range(2):
            reached = np.union1d(reached, target[np.isin(source, reached)])
        assert found == len(reached)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--read", "state"], "there is no durable collection in .*cycles"),
        (["--state", "state", "--initial", "missing.tsv"], "cannot read missing.tsv: No such file"),
    ],
)
def test_what_is_not_there_is_one_line_of_the_durable_example(
    arguments: list[str],
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert durable.main(arguments) == 1
    error = capsys.readouterr().err
    assert re.fullmatch(f"durable: {reason}.*\n", error)
