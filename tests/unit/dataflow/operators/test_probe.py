"""Tests of probes."""

from __future__ import annotations

import pytest

from timely import Antichain, Worker, execute_directly
from timely.errors import BuildError


def test_a_probe_follows_its_stream() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = scope.new_input()
            probe = stream.exchange().probe()
        assert probe.frontier == Antichain([(0,)])
        assert probe.less_equal(0)
        assert not probe.less_than(0)
        numbers.send(1)
        numbers.advance_to(3)
        worker.step_while(lambda: probe.less_than(3))
        assert probe.frontier == Antichain([(3,)])
        assert probe.less_than((4,))
        assert not probe.done()
        numbers.close()
        worker.step_while(lambda: not probe.done())
        assert not probe.less_equal(1 << 40)

    execute_directly(program)


def test_a_probe_in_a_loop_has_its_times() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope, scope.iterative() as inner:
            numbers, stream = scope.new_input()
            handle, again = inner.feedback()
            probe = again.probe()
            stream.enter(inner).concat(again).filter(lambda x: x < 0).connect_loop(handle)
        assert probe.frontier == Antichain([(0, 1)])
        numbers.advance_to(2)
        worker.step()
        assert probe.frontier == Antichain([(2, 1)])
        with pytest.raises(BuildError, match="whose times have 2 coordinate"):
            probe.less_than(1)

    execute_directly(program)


def test_a_probe_of_a_dataflow_that_is_not_complete_cannot_be_asked() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            probe = scope.to_stream(range(1)).probe()
            with pytest.raises(BuildError, match="once the dataflow is complete"):
                probe.done()

    execute_directly(program)
