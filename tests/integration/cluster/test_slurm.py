"""Programs run by Slurm: its own daemons, one node, tasks that recognise each other by munge."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cluster.services import ANSWER, SCRIPT, TIMELY, Ended, slurm

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def environ(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with slurm(tmp_path_factory.mktemp("slurm")) as environ:
        yield environ


def test_tasks_meet_and_answer_together(environ: dict[str, str]) -> None:
    ended = Ended(f"srun --ntasks=4 {TIMELY} run --on slurm {SCRIPT}", environ)
    assert ended.status == 0, ended.all
    assert ended.output.count(ANSWER) == 1, ended.all
    assert ended.output.count("answer []") == 3, ended.all


def test_two_workers_per_task_with_keys_of_ones_own(environ: dict[str, str], tmp_path: Path) -> None:
    assert Ended(f"{TIMELY} keys {tmp_path / 'keys'}").status == 0
    ended = Ended(f"srun --ntasks=2 {TIMELY} run --on slurm -w 2 --curve {tmp_path / 'keys'} {SCRIPT}", environ)
    assert ended.status == 0, ended.all
    assert ended.output.count(ANSWER) == 1, ended.all


@pytest.mark.parametrize(
    ("how", "named"),
    [
        ("killed", "process 2 (worker 2 at tcp://"),
        ("raises", "worker 2 failed: ValueError: a wrong number"),
        ("leaves", "process 2 (worker 2 at tcp://"),
    ],
)
def test_all_end_within_five_seconds_of_one_that_dies(environ: dict[str, str], how: str, named: str) -> None:
    ended = Ended(f"srun --ntasks=4 {TIMELY} run --on slurm {SCRIPT} {how}", environ)
    assert ended.status != 0, ended.all
    assert named in ended.errors, ended.all
    assert ended.seconds_after_death < 5, ended.all
    assert "answer" not in ended.output, ended.all


def test_a_task_that_ends_before_the_rendezvous_is_named_by_the_others(environ: dict[str, str], tmp_path: Path) -> None:
    script = tmp_path / "task.sh"
    script.write_text(
        'test "$SLURM_PROCID" = 2 && { sleep 1; echo "ended at $(date +%s.%N)"; exit 9; }\n'
        f"exec {TIMELY} run --on slurm {SCRIPT}\n"
    )
    ended = Ended(f"srun --ntasks=4 sh {script}", environ)
    assert ended.status == 9, ended.all
    assert "process 2 ended before all processes were connected" in ended.errors, ended.all
    assert ended.seconds_after_death < 5, ended.all


def test_outside_a_job_the_error_names_the_command_to_use() -> None:
    ended = Ended(f"{TIMELY} run --on slurm {SCRIPT}")
    assert ended.status == 2
    assert "SLURM_PROCID is not set" in ended.errors
    assert "use 'srun timely run --on slurm SCRIPT'" in ended.errors
