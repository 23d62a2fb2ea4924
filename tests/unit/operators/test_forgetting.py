"""Operators allow compaction of the traces that they read, and of those of their output, as far as inputs permit."""

from __future__ import annotations

import pytest

from differential import InputSession, new_input
from differential.kernels.reduce_fold import MIN
from differential.operators.join_arrangements import join_arrangements
from differential.operators.reduction import BuiltIn, reduce_arrangement
from differential.trace.spine import Spine
from timely import Probe, Worker, execute_directly

EPOCHS = 200


def change(worker: Worker, sessions: list[InputSession], probe: Probe, first: int = 0) -> None:
    """Replace a record of the first input in each of many epochs."""
    changing = sessions[0]
    for epoch in range(first, first + EPOCHS):
        changing.insert(1, epoch)
        if epoch > first:
            changing.remove(1, epoch - 1)
        for session in sessions:
            session.advance_to(epoch + 1)
        worker.step_while(lambda least=epoch + 1: probe.less_than(least))
    changing.remove(1, first + EPOCHS - 1)


@pytest.mark.parametrize("is_left", [True, False])
def test_a_join_keeps_only_a_few_rows_of_a_record_that_changes_all_the_time(is_left: bool) -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            sessions, collections = map(list, zip(*(new_input(scope) for _ in range(2))))
            changing, still = (collection.arrange_by_key() for collection in collections)
            spines: list[Spine] = [changing._trace.spine, still._trace.spine]
            both = (changing, still) if is_left else (still, changing)
            probe = join_arrangements(*both, lambda *columns: columns, name="join").probe()
        sessions[1].insert(1, 0)
        change(worker, sessions, probe)
        assert 0 < spines[0].statistics().rows < 20
        sessions[1].close()
        change(worker, sessions[:1], probe, EPOCHS)
        # No input can arrive that would be joined with the changing side; input that arrives is joined with the other.
        assert [spine.readers for spine in spines] == [0, 1]
        assert [spine.statistics().rows for spine in spines] == [0, 1]
        sessions[0].close()
        worker.step_while(lambda: not probe.done())
        assert [spine.readers for spine in spines] == [0, 0]

    execute_directly(program)


def test_a_reduction_keeps_only_a_few_rows_of_a_record_that_changes_all_the_time() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, collection = new_input(scope)
            changing = collection.arrange_by_key()
            reduced = reduce_arrangement(changing, lambda *_: BuiltIn(MIN, 0), None, name="min")
            spines = [changing._trace.spine, reduced._trace.spine]
            probe = reduced.stream.probe()
        change(worker, [session], probe)
        assert all(0 < spine.statistics().rows < 20 for spine in spines)
        session.close()
        worker.step_while(lambda: not probe.done())
        worker.step()
        assert [spine.readers for spine in spines] == [0, 0]

    execute_directly(program)


def test_a_threshold_keeps_only_a_few_rows_of_a_record_that_changes_all_the_time() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, collection = new_input(scope)
            changing = collection.arrange_by_key()
            spine = changing._trace.spine
            probe = changing.distinct().probe()
        change(worker, [session], probe)
        assert 0 < spine.statistics().rows < 20
        assert spine.readers == 1
        session.close()
        worker.step_while(lambda: not probe.done())
        worker.step()
        assert spine.readers == 0

    execute_directly(program)


def test_a_count_keeps_only_the_last_few_of_its_output_rows() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, collection = new_input(scope)
            counts = collection.count()
            spine = counts.arrange_by_key()._trace.spine
            probe = counts.probe()
        for epoch in range(EPOCHS):
            session.insert(1, epoch)
            session.advance_to(epoch + 1)
            worker.step_while(lambda: probe.less_than(session.time))
        assert 0 < spine.statistics().rows < 20
        assert spine.readers == 1
        session.close()
        worker.step_while(lambda: not probe.done())
        worker.step()
        assert spine.readers == 0

    execute_directly(program)
