"""Programs run by Open MPI, whose ranks exchange where they are by MPI."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.integration.cluster.services import ANSWER, SCRIPT, TIMELY, Ended, debian, python, running, wait_for
from tests.integration.live.browsing import PROGRAMS

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


def test_the_page_and_top_show_all_ranks_of_the_machine(tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = f"{MPIRUN} -n 3 {TIMELY} run --on mpi --live 0 {PROGRAMS / 'hops.py'} 60"

    def shown(what: str) -> list[str]:
        top = subprocess.run([*TIMELY.split(), "top", "--once", what], capture_output=True, text=True, timeout=60)
        return re.findall(r"^ +(\d) +(\d) +\d+ ", top.stdout, re.MULTILINE)

    ranks = [("0", "0"), ("1", "1"), ("2", "2")]
    with running(*command.split(), log=log) as process:
        wait_for(lambda: "live view at" in log.read_text(), 60, log)
        found = re.search(r"live view at (\S+)", log.read_text())
        assert found is not None
        wait_for(lambda: shown(found[1]) == ranks, 60, log)
        page = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True)
        assert len(page.stdout.split()) == 3
        for pid in page.stdout.split():
            wait_for(lambda pid=pid: shown(pid) == ranks, 60, log)  # type: ignore[misc]
