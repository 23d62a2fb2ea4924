"""Workers maintain traces while they run no operator."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from differential import Collection, InputSession, Trace, new_input
from differential.delta.half_join import half_join
from differential.operators.catching_up import CatchingUp
from differential.trace.spine import LEAST_EFFORT
from tests.oracle.scenario import Scenario, check
from timely import Config, Worker, execute, execute_directly
from timely.errors import OperatorError

ROWS = 200_000
FEW = 2000


def _wait(worker: Worker, trace: Trace, epoch: int) -> None:
    worker.step_while(lambda: trace.upper.less_equal((epoch,)))


def _rest(worker: Worker) -> None:
    """Step as long as there is anything to do."""
    while worker._step():
        pass


def _purged(worker: Worker, rows: int = ROWS) -> tuple[InputSession, Trace]:
    """Return a trace to which this many records are added at 0, and from which they are removed at 1."""
    with worker.dataflow() as scope:
        session, numbers = new_input(scope)
        trace = numbers.arrange_by_key().trace()
    if worker.index == 0:
        session.insert(np.arange(rows), np.arange(rows))
        session.advance_to(1)
        session.remove(np.arange(rows), np.arange(rows))
    session.advance_to(2)
    _wait(worker, trace, 1)
    return session, trace


@pytest.mark.parametrize("config", [Config(), Config(workers=2), Config(workers=2, spill_above=1 << 14)])
def test_epochs_without_changes_leave_few_rows_of_a_purged_trace(config: Config) -> None:
    def program(worker: Worker) -> int:
        session, trace = _purged(worker)
        assert trace.statistics().rows > ROWS // 4
        for epoch in range(2, 502):
            trace.allow_compaction_to(epoch)
            session.advance_to(epoch + 1)
            _wait(worker, trace, epoch)
        return trace.statistics().rows

    assert all(rows <= FEW for rows in execute(program, config))


def test_an_idle_worker_maintains_its_traces_and_then_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    def program(worker: Worker) -> None:
        _, trace = _purged(worker)
        _rest(worker)
        assert trace.statistics().rows == 2 * ROWS
        slept: list[float | None] = []
        monkeypatch.setattr(worker.allocator, "park", slept.append)
        trace.allow_compaction_to(2)
        steps = 0
        while not slept:
            worker.step_or_park(timeout=60)
            steps += 1
            assert steps < 1000, f"the worker does not sleep; the trace has {trace.statistics()}"
        assert 2 * ROWS / LEAST_EFFORT <= steps <= 4 * ROWS / LEAST_EFFORT
        assert trace.statistics().rows == 0
        for _ in range(3):
            worker.step_or_park(timeout=60)
        assert len(slept) == 4

    execute_directly(program)


def test_traces_that_other_dataflows_import_are_maintained_as_far_as_these_allow() -> None:
    def program(worker: Worker) -> None:
        session, trace = _purged(worker, 20_000)
        with worker.dataflow() as scope:
            held = trace.import_into(scope, since=1).trace()
            counts = trace.import_into(scope, since=1).count().output()
        worker.step_while(lambda: counts.less_than(2))
        trace.drop()
        _rest(worker)
        assert held.contents(1).records() == {}
        held.allow_compaction_to(2)
        session.insert(7, 7)
        session.advance_to(3)
        worker.step_while(lambda: counts.less_than(3))
        _rest(worker)
        assert held.statistics().rows == 1
        assert held.contents(2).records() == {(7, 7): 1}
        held.drop()

    execute_directly(program)


def test_a_trace_that_outlives_its_dataflow_is_maintained_and_keeps_nothing_of_it() -> None:
    def program(worker: Worker) -> None:
        session, trace = _purged(worker, 20_000)
        scope = weakref.ref(worker.dataflows[0].operators[0].scope)  # its operators and the dataflow may be compiled
        session.close()
        worker.step_while(lambda: bool(worker.dataflows))
        trace.allow_compaction_to(2)
        _rest(worker)
        assert trace.statistics().rows == 0
        del session
        gc.collect()
        assert scope() is None

    execute_directly(program)


def test_batches_that_cannot_be_merged_are_named_with_the_operator_that_wrote_them() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, numbers = new_input(scope)
            trace = numbers.arrange_by_key().trace()
        for epoch in range(2):
            session.update(7, diff=1 << 62)
            session.insert(np.arange(100))
            session.advance_to(epoch + 1)
            _wait(worker, trace, epoch)
        trace.allow_compaction_to(2)
        with pytest.raises(OperatorError, match=r"operator 'arrange' failed on .*how often 7 occurs does not fit"):
            _rest(worker)
        worker.drop_dataflow(scope.dataflow)

    execute_directly(program)


def _joined(numbers: Collection, others: Collection) -> Collection:
    return others.join(numbers)


def _half_joined(numbers: Collection, others: Collection) -> Collection:
    return half_join(others, numbers.arrange_by_key(), lambda key, other, number: (key, other, number))


@pytest.mark.parametrize("question", [_joined, _half_joined])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_trace_is_maintained_when_the_other_side_of_a_join_advances_without_changes(
    question: Callable[[Collection, Collection], Collection], workers: int
) -> None:
    def program(worker: Worker) -> int:
        with worker.dataflow() as scope:
            session, numbers = new_input(scope)
            other_session, others = new_input(scope)
            trace = numbers.arrange_by_key().trace()
            answer = question(numbers, others).output()
        mine = np.arange(20_000) if worker.index == 0 else np.arange(0)
        other_session.insert(mine[:1], mine[:1])
        other_session.flush()
        session.insert(mine, mine)
        session.advance_to(1)
        _wait(worker, trace, 0)
        session.remove(mine, mine)
        session.advance_to(2)
        _wait(worker, trace, 1)
        for _ in range(100):
            worker.step()
        assert trace.statistics().rows > 20_000 // workers  # the others have not passed 0
        trace.allow_compaction_to(2)
        for epoch in range(2, 300):
            session.advance_to(epoch + 1)
            other_session.advance_to(epoch + 1)
            worker.step_while(partial(answer.less_than, epoch + 1))
        for _ in range(100):
            worker.step()
        rows = trace.statistics().rows
        session.close()
        other_session.close()
        worker.step_while(lambda: not answer.done())
        return rows

    assert execute(program, Config(workers=workers)) == [0] * workers


@pytest.mark.interpreted
@pytest.mark.parametrize("queued", [False, True])
def test_a_trace_that_an_operator_reads_is_not_compacted_while_messages_are_queued_for_it(queued: bool) -> None:
    chores: list[Callable[[], bool]] = []
    dataflow = SimpleNamespace(host=SimpleNamespace(when_idle=chores.append), when_complete=lambda end: None)
    operator = SimpleNamespace(waits=False)
    queues: list[list[str]] = [[], ["a batch"] if queued else []]
    ports: Any = [SimpleNamespace(dataflow=dataflow, operator=operator, queue=queue) for queue in queues]
    compacted: list[None] = []

    def compact() -> bool:
        compacted.append(None)
        return True

    catching_up = CatchingUp(ports, compact)
    catching_up.expect()
    catching_up.expect()
    (chore,) = chores
    assert not chore()
    assert (len(compacted), operator.waits) == ((0, False) if queued else (1, True))


def test_an_operator_that_is_delayed_finds_its_trace_intact_when_it_runs() -> None:
    check(
        Scenario(
            programs=[("intersect", ("input", 1), ("motif", ("concat", ("input", 0), ("input", 1))))],
            inputs=[
                [((1, 2), (0,), 1), ((1, 2), (2,), -1)],
                [
                    ((2, 2), (0,), 2), ((1, 1), (2,), 1), ((1, 3), (1,), 1), ((0, 0), (1,), 2), ((0, 1), (0,), 1),
                    ((2, 2), (0,), -1), ((1, 0), (0,), 1),
                ],
            ],
            outer=1,
            workers=2,
            tiny=True,
            guest=False,
            readers=0,
            seed=7647,
            upserts=[],
        )
    )  # fmt: skip
