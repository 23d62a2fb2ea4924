"""Programs that are killed lose nothing and do nothing twice: the state is that of a run that nobody disturbed."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from tests.examples_loading import example_module
from tests.integration.durable.killing import JOBS, UPGRADE, check, finish, kill_again_and_again, run_and_kill

KILLS = int(os.environ.get("DURABLE_KILLS", "50"))
"""How often the slow test kills the program."""
SMALL = 200
SEED = int(os.environ.get("DURABLE_SEED", "1"))


@pytest.fixture
def small(tmp_path: Path) -> list[str]:
    """Return the options for a small graph, and changes to it."""
    random = Random(7)
    edges = sorted({(random.randrange(60), random.randrange(60)) for _ in range(150)})
    (tmp_path / "graph.tsv").write_text("".join(f"p{a}\tp{b}\n" for a, b in edges))
    present, lines = set(edges), []
    for step in range(1, SMALL + 1):
        edge = random.randrange(60), random.randrange(60)
        lines.append(f"{step}\t{'-' if edge in present else '+'}\tp{edge[0]}\tp{edge[1]}\n")
        present ^= {edge}
    (tmp_path / "changes.tsv").write_text("".join(lines))
    return ["--initial", str(tmp_path / "graph.tsv"), "--upgrade", str(tmp_path / "changes.tsv"), "--steps", str(SMALL)]


def run_here(state: Path, arguments: list[str]) -> None:
    """Run the upgrade in this process, on one worker: starting another one takes longer."""
    assert example_module("durable").main([*arguments, "--state", str(state)]) == 0


@pytest.mark.lengthy
@pytest.mark.timeout(180)
def test_a_killed_program_goes_on_where_it_stopped(tmp_path: Path, small: list[str]) -> None:
    run_here(tmp_path / "undisturbed", small)
    random = Random(SEED)
    for processes in (2, 1):
        run_and_kill(UPGRADE, tmp_path / "state", random, 0.5, *small, processes=processes)
    finish(UPGRADE, tmp_path / "state", 2, *small)
    check(UPGRADE, tmp_path / "state", tmp_path / "undisturbed", SMALL)


@pytest.mark.slow
@pytest.mark.timeout(24 * 3600)
@pytest.mark.parametrize("job", sorted(JOBS))
def test_a_program_that_is_killed_again_and_again_answers_as_if_nobody_did(tmp_path: Path, job: str) -> None:
    kill_again_and_again(job, tmp_path, KILLS, SEED)
