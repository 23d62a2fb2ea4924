"""A durable collection has the changes that are durable, and no others."""

from __future__ import annotations

from pathlib import Path
from threading import Barrier

from differential.durable import State, durable_input
from timely import Config, Worker, execute


def test_of_epochs_made_together_only_those_are_released_that_are_durable(tmp_path: Path) -> None:
    looked = Barrier(2, timeout=60)

    def program(worker: Worker) -> tuple[list[int], list[int]]:
        state = State.open(worker, str(tmp_path))
        seen: list[int] = []
        with worker.dataflow() as scope:
            session, rows = durable_input(scope, state.shard("rows", fields=["number"]))
            probe = rows.inspect(lambda record, time, diff: seen.append(record[0])).probe()
        # One worker makes ten epochs before it steps. The other one keeps all but three of them from being durable.
        for epoch in range(10 if worker.index == 0 else 3):
            if worker.index == 0:
                session.insert(epoch)
            session.advance_to(epoch + 1)
        worker.step_while(lambda: probe.less_than((3,)))
        for _ in range(20):
            worker.step_or_park(0.01)
        released = list(seen)
        looked.wait()
        session.close()
        worker.step_while(lambda: not probe.done())
        return released, seen

    workers = execute(program, Config(workers=2))
    assert sorted(record for released, _ in workers for record in released) == [0, 1, 2]
    assert sorted(record for _, seen in workers for record in seen) == list(range(10))
