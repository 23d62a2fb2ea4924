"""Tests of `InputSession`."""

from __future__ import annotations

import numpy as np
import pytest

from differential import new_input, new_upsert_input
from tests.oracle.grid import on_workers, run
from timely import Config, Worker, execute, execute_directly
from timely.errors import CapabilityError, DataError


@on_workers
def test_a_change_at_a_later_time_happens_then(workers: int) -> None:
    updates = [((1, 2), (4,), 1), ((1, 2), (0,), 2), ((1, 2), (9,), -3)]
    assert run(lambda one: one.count(), updates, workers=workers) == [
        ((1, 2), (0,), 1),
        ((1, 2), (4,), -1),
        ((1, 3), (4,), 1),
        ((1, 3), (9,), -1),
    ]


def test_columns_can_change_at_a_later_time_beside_records_at_others() -> None:
    def program(worker: Worker) -> object:
        with worker.dataflow() as scope:
            session, numbers = new_input(scope)
            output = numbers.output()
        session.insert(0)
        session.update_at(np.array([1, 2]), time=2, diff=np.array([5, 6]))
        session.update_at(3, time=1)
        session.close()
        worker.step_while(lambda: not output.done())
        return output.changes()

    assert execute_directly(program) == [((0,), (0,), 1), ((3,), (1,), 1), ((1,), (2,), 5), ((2,), (2,), 6)]


@pytest.mark.parametrize(
    ("time", "error", "message"),
    [
        (2, CapabilityError, r"at time \(3,\) and cannot change the collection at \(2,\)"),
        ((3, 0), CapabilityError, r"\(3, 0\) is not a time"),
    ],
)
def test_a_change_in_the_past_or_of_another_scope_is_refused(time: object, error: type, message: str) -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, _ = new_input(scope)
        session.advance_to(3)
        session.update_at(1, time=time)  # type: ignore[arg-type]

    with pytest.raises(error, match=message):
        execute_directly(program)


def test_a_record_of_another_width_is_refused() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, _ = new_input(scope)
        session.update_at(1, time=3)
        session.update_at(1, 2, time=3)

    with pytest.raises(DataError, match="2 field"):
        execute_directly(program)


def test_a_session_says_when_more_waits_than_may() -> None:
    def program(worker: Worker) -> list[bool]:
        with worker.dataflow() as scope:
            session, collection = new_input(scope)
            collection.count().probe()
        said = []
        for _ in range(2):
            session.insert(np.arange(10_000))
            session.flush()
            said.append(session.is_congested)
            worker.step()
            said.append(session.is_congested)
        return said

    assert execute(program, Config(queue_bytes=1 << 16)) == [[True, False] * 2]


def test_changes_of_a_dataflow_that_was_dropped_are_refused_and_what_was_not_sent_may_be_closed() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, _ = new_input(scope)
            upserts, _ = new_upsert_input(scope)
        session.insert(0)
        upserts.set(0, 1)
        worker.drop_dataflow(scope.dataflow)
        session.close()
        upserts.close()
        session.insert(0)
        with pytest.raises(CapabilityError, match="takes no more data"):
            session.flush()

    execute_directly(program)
