"""`timely run --state DIR --restart TIMES`: a program whose processes die is started again, and goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from differential.durable import Directory, Shard
from tests.integration.launcher.launching import Run

PROGRAM = """
import os, signal
from pathlib import Path

from differential.durable import State, durable_input, persist
from timely import execute

def program(worker):
    state = State.open(worker)
    with worker.dataflow() as scope:
        words, collection = durable_input(scope, state.shard("words", keep=0))
        counts = persist(collection.count(), state.shard("counts"))
    print("begins at", words.epoch)
    for epoch in range(words.epoch, 9):
        words.insert(epoch % 2)
        words.advance_to(epoch + 1)
        worker.step_while(lambda: not counts.is_durable(epoch + 1))
        if worker.index == worker.peers - 1 and epoch % 4 == 3:
            os.kill(os.getpid(), signal.SIGKILL)
    words.close()
    worker.step_while(lambda: not counts.done())

execute(program)
"""


@pytest.mark.parametrize("processes", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_a_program_whose_process_dies_goes_on_until_its_end(tmp_path: Path, processes: str) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    state = tmp_path / "state"
    run = Run("run", "-n", processes, "--state", state, "--restart", "3", tmp_path / "program.py")
    try:
        assert run.end(seconds=50) == 0, run.error
    finally:
        run.close()
    assert run.error.count("was killed by SIGKILL") == 2
    assert [f"restart {number} of 3 in" in run.error for number in (1, 2, 3)] == [True, True, False]
    for epoch in (0, 4, 8):
        assert run.output.count(f"begins at {epoch}\n") == int(processes)
    shard = Shard("counts", Directory(str(state)).store("counts"))
    for epoch in range(9):
        zeros, ones = epoch // 2 + 1, (epoch + 1) // 2
        both = {(0, int(processes) * zeros): 1} | ({(1, int(processes) * ones): 1} if ones else {})
        assert shard.read(epoch) == both


def test_a_program_that_fails_each_time_fails_in_the_end(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("raise SystemExit(7)\n")
    run = Run("run", "--restart", "1", tmp_path / "program.py")
    try:
        assert run.end(seconds=30) == 7
    finally:
        run.close()
    assert run.error.count("process 0 ended with status 7") == 2
    assert run.error.count("timely: restart 1 of 1") == 1
