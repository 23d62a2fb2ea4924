"""Tasks of Slurm that have ended, in a directory of processes as Linux shows them."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings, strategies as st

from timely.cluster.slurm import ended_tasks

STEP, SERVICE = 40, 20


class Processes:
    """A directory with a file for what each process is, and one for its environment."""

    def __init__(self, proc: Path) -> None:
        self.proc = proc
        self.add(1, "init", 0)
        self.add(SERVICE, "slurmd", 1)
        self.add(STEP, "slurmstepd", SERVICE)

    def add(self, process: int, name: str, parent: int, environ: bytes = b"PATH=/bin\0") -> None:
        directory = self.proc / str(process)
        directory.mkdir()
        (directory / "stat").write_text(f"{process} ({name}) S {parent} {process} 0 0 -1 4194560\n")
        (directory / "environ").write_bytes(environ)

    def add_task(self, task: int) -> int:
        self.add(100 + task, "a shell (of 2)", STEP, f"HOME=/\0SLURM_PROCID={task}\0PATH=/bin\0".encode())
        return 100 + task


@settings(max_examples=20)
@given(st.sets(st.integers(0, 12), min_size=1), st.data())
def test_the_tasks_that_have_ended_are_those_without_a_process(tasks: set[int], data: st.DataObject) -> None:
    own = data.draw(st.sampled_from(sorted(tasks)))
    running = data.draw(st.sets(st.sampled_from(sorted(tasks)))) | {own}
    with tempfile.TemporaryDirectory() as directory:
        processes = Processes(Path(directory))
        for task in running:
            processes.add_task(task)
        processes.add(300, "python", 100 + own)  # the task is a shell, which has started this process
        environ = {"SLURM_GTIDS": ",".join(map(str, sorted(tasks)))}
        assert ended_tasks(environ, processes.proc, 300) == sorted(tasks - running)


def test_a_task_that_has_not_started_its_program_hides_all_others(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    own = processes.add_task(0)
    processes.add(500, "slurmstepd", STEP)
    assert ended_tasks({"SLURM_GTIDS": "0,1,2"}, tmp_path, own) == []


def test_a_task_whose_end_its_parent_has_not_noticed_has_ended(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    own = processes.add_task(0)
    processes.add(500, "python", STEP, b"")
    assert ended_tasks({"SLURM_GTIDS": "0,1"}, tmp_path, own) == [1]


def test_nothing_is_known_outside_of_a_step_or_without_a_list_of_processes(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    processes.add(600, "python", SERVICE)
    assert ended_tasks({"SLURM_GTIDS": "0,1"}, processes.proc, 600) == []
    assert ended_tasks({"SLURM_GTIDS": "0,1"}, tmp_path / "absent", 600) == []
    assert ended_tasks({}, processes.proc, processes.add_task(0)) == []
