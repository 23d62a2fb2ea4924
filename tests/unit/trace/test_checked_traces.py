"""A test fails at its end if an invariant of a trace that one of its operators writes does not hold."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.compiled import COMPILED
from differential import new_input
from differential.kernels.compile import NOTHING
from differential.trace.batch import Batch
from differential.trace.description import Description
from tests.checked_traces import Traces, checked_traces, watching
from timely import Antichain, Worker, execute_directly

__all__ = ["checked_traces"]


def test_the_traces_of_operators_are_followed_and_right_when_the_test_ends(checked_traces: Traces) -> None:
    def program(worker: Worker) -> int:
        with worker.dataflow() as scope:
            session, edges = new_input(scope)
            trace = edges.arrange_by_key().trace()
            edges.count()
        session.insert(np.arange(9), 0)
        session.advance_to(1)
        worker.step_while(lambda: trace.upper.less_equal((0,)))
        found = len(checked_traces.live)
        checked_traces.finish()
        session.close()
        return found

    assert execute_directly(program) == (0 if COMPILED else 2)


def batch(lower: int, upper: int) -> Batch:
    """Return a batch of one update, which states that its times are from `lower` to before `upper`."""
    description = Description(*(Antichain([(epoch,)]) for epoch in (lower, upper, 0)))
    return Batch.build(np.array([7]), NOTHING, NOTHING, NOTHING, np.array([[1]]), description)


def test_a_batch_that_is_wrong_is_a_fault_and_is_passed_on() -> None:
    traces = Traces()
    received: list[Batch] = []
    right, wrong = batch(1, 2), batch(2, 1)
    watch = watching(received.append, traces.faults)
    watch(right)
    traces.finish()
    watch(wrong)
    with pytest.raises(AssertionError, match="ends before it begins"):
        traces.finish()
    assert received == [right, wrong]
