"""An operator with private state, whose output goes from process to process."""

from __future__ import annotations

from pathlib import Path

from differential.durable import Directory, Shard
from tests.integration.launcher.launching import Run

PROGRAM = """
import numpy as np
from differential.durable import State, durable_input, persist, stateful
from timely import execute

class Squares:
    def update(self, time, columns, diffs):
        number, square, diff = np.stack([columns[0], columns[0] ** 2, diffs], axis=1).T
        return (number, square), diff

    def snapshot(self):
        return {}

def program(worker):
    state = State.open(worker)
    with worker.dataflow() as scope:
        numbers, collection = durable_input(scope, state.shard("numbers"))
        answer = persist(stateful(collection, Squares, state.shard("kept"), every=4), state.shard("squares"))
    if worker.index == 0:
        numbers.insert(np.arange(20))
    numbers.close()
    worker.step_while(lambda: not answer.done())

execute(program)
"""


def test_an_operator_may_return_views_of_one_array(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    run = Run("run", "-n", "2", "--state", tmp_path / "state", tmp_path / "program.py")
    try:
        assert run.end(seconds=30) == 0, run.error
    finally:
        run.close()
    shard = Shard("squares", Directory(str(tmp_path / "state")).store("squares"))
    assert shard.read() == {(number, number**2): 1 for number in range(20)}
