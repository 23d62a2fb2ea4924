"""Programs that are killed lose nothing and do nothing twice: the state is that of a run that nobody disturbed."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from tests.integration.durable.killing import BEGINS, contents, history, run, run_and_kill

KILLS = int(os.environ.get("DURABLE_KILLS", "50"))
"""How often the slow test kills the program."""
STEPS = 4000
SMALL = 600
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


def finish(state: Path, processes: int, *arguments: str) -> int:
    """Run the program to its end; return the step that it began with."""
    running = run(state, processes, *arguments)
    try:
        assert running.end(seconds=600) == 0, running.error
        found = BEGINS.search(running.output)
        assert found is not None
        return int(found[1])
    finally:
        running.close()


def check(state: Path, undisturbed: Path, steps: int) -> None:
    """Compare the state with that of the run that nobody disturbed: contents, and each epoch of the answers."""
    for name in ("cycles", "dependants"):
        since, upper, updates = history(state, name)
        assert (since, upper) == (0, steps + 1)
        assert updates == history(undisturbed, name)[2]
    assert contents(state, "edges") == contents(undisturbed, "edges")
    assert history(state, "edges")[1] == steps + 1


@pytest.mark.timeout(180)
def test_a_killed_program_goes_on_where_it_stopped(tmp_path: Path, small: list[str]) -> None:
    assert finish(tmp_path / "undisturbed", 1, *small) == 0
    random = Random(SEED)
    for _ in range(2):
        run_and_kill(tmp_path / "state", random, 0.5, *small)
    finish(tmp_path / "state", 2, *small)
    check(tmp_path / "state", tmp_path / "undisturbed", SMALL)


@pytest.mark.slow
@pytest.mark.timeout(24 * 3600)
def test_a_distribution_is_upgraded_though_the_program_is_killed_again_and_again(tmp_path: Path) -> None:
    finish(tmp_path / "undisturbed", 1, "--steps", str(STEPS))
    random = Random(SEED)
    ended, kills = 0, 0
    while kills < KILLS:
        is_done = run_and_kill(tmp_path / f"state-{ended}", random, 6.0, "--steps", str(STEPS))
        kills += not is_done
        if is_done or kills == KILLS:
            finish(tmp_path / f"state-{ended}", random.randrange(1, 4), "--steps", str(STEPS))
            check(tmp_path / f"state-{ended}", tmp_path / "undisturbed", STEPS)
            ended += 1
    print(f"{kills} kills, {ended} upgrade(s)")
