"""Programs run by actors of Ray: a real cluster of Ray on this machine, which is started for them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cluster.services import ANSWER, SCRIPT, TIMELY, Ended, alone, python
from tests.integration.launcher.launching import ROOT
from timely.run.state import reserved

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]
ACTORS = ROOT / "tests/integration/cluster/scripts/actors.py"
RESTARTED = ROOT / "tests/integration/cluster/scripts/restarted.py"


@pytest.fixture(autouse=True, scope="module")
def _ray() -> None:
    python("ray>=2.40", "ray")


@pytest.fixture(autouse=True)
def _alone(_ray: None) -> Iterator[None]:
    """Ray takes for dead what does not answer in time, as happens if several clusters share few cores."""
    with alone("ray"):
        yield


def test_a_program_runs_on_actors_and_goes_on_after_one_has_died(tmp_path: Path) -> None:
    ended = Ended(f"{TIMELY.split()[0]} {ACTORS} {tmp_path / 'state'}")
    assert ended.status == 0, ended.all
    assert "places [(0, 4), (1, 4), (2, 4), (3, 4)] 2\n" in ended.output, ended.all
    assert "raised a wrong number\n" in ended.output, ended.all
    assert "died process 1 is gone:" in ended.output, ended.all
    assert "continued [8, 8] [(0, 10), (1, 8)]\n" in ended.output, ended.all
    assert "room Ray has no room for 9 processes with 1 processors each: 4 are free" in ended.output, ended.all
    assert ended.errors.count("process 1 is gone: its actor has died") == 2, ended.all
    assert "restart 2 of 3 in 1 s" in ended.errors, ended.all


def test_a_script_runs_on_actors_and_answers() -> None:
    ended = Ended(f"{TIMELY} run --on ray -n 4 {SCRIPT}")
    assert ended.status == 0, ended.all
    assert ended.output.count(ANSWER) == 1, ended.all
    assert ended.output.count("answer []") == 3, ended.all


def test_a_script_of_which_a_process_is_killed_names_it() -> None:
    ended = Ended(f"{TIMELY} run --on ray -n 4 {SCRIPT} killed")
    assert ended.status == 137, ended.all
    assert "timely: process 2 was killed by SIGKILL" in ended.errors, ended.all
    assert "answer" not in ended.output, ended.all


def test_a_script_goes_on_where_it_stopped_and_its_directory_of_state_is_its_own(tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    command = f"{TIMELY} run --on ray -n 2 --state {state} --restart 3 {RESTARTED}"
    with reserved(state, 1):
        ended = Ended(command.replace("--restart 3", ""))
        assert ended.status == 2, ended.all
        assert "belongs to a run with --restart" in ended.errors, ended.all
    ended = Ended(command)
    assert ended.status == 0, ended.all
    assert [ended.output.count(f"begins at {epoch}\n") for epoch in (0, 4, 8)] == [2, 2, 2], ended.all
    assert ended.errors.count("process 1 was killed by SIGKILL") == 2, ended.all
