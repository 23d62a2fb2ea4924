"""Programs run by Open MPI, whose ranks exchange where they are by MPI."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.cluster.services import ANSWER, SCRIPT, TIMELY, Ended, debian, python

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]
MPIRUN = "mpirun --allow-run-as-root --oversubscribe"


@pytest.fixture(autouse=True, scope="module")
def _mpi() -> None:
    debian("openmpi-bin", "mpirun")
    python("mpi4py>=4.1", "mpi4py")


def test_ranks_meet_and_answer_together() -> None:
    ended = Ended(f"{MPIRUN} -n 4 {TIMELY} run --on mpi {SCRIPT}")
    assert ended.status == 0, ended.all
    assert ended.output.count(ANSWER) == 1, ended.all
    assert ended.output.count("answer []") == 3, ended.all


def test_two_workers_per_rank_with_keys_of_ones_own(tmp_path: Path) -> None:
    assert Ended(f"{TIMELY} keys {tmp_path / 'keys'}").status == 0
    ended = Ended(f"{MPIRUN} -n 2 {TIMELY} run --on mpi -w 2 --curve {tmp_path / 'keys'} {SCRIPT}")
    assert ended.status == 0, ended.all
    assert ended.output.count(ANSWER) == 1, ended.all


@pytest.mark.parametrize(
    ("how", "named"),
    [
        ("killed", "mpirun noticed that process rank 2"),
        ("raises", "ValueError: a wrong number"),
        ("leaves", "process 2 (worker 2 at tcp://"),
    ],
)
def test_all_end_within_five_seconds_of_one_that_dies(how: str, named: str) -> None:
    ended = Ended(f"{MPIRUN} -n 4 {TIMELY} run --on mpi {SCRIPT} {how}")
    assert ended.status != 0, ended.all
    assert named in ended.all, ended.all
    assert ended.seconds_after_death < 5, ended.all
    assert "answer" not in ended.output, ended.all


def test_outside_mpirun_the_error_names_the_command_to_use() -> None:
    ended = Ended(f"{TIMELY} run --on mpi {SCRIPT}")
    assert ended.status == 2
    assert "PMI_RANK or MPI_RANKID is not set, so this process is not a rank" in ended.errors
    assert "use 'mpirun -n PROCESSES timely run --on mpi SCRIPT'" in ended.errors
