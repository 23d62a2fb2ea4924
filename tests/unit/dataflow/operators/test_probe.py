"""Tests of probes."""

from __future__ import annotations

import numpy as np
import pytest

from timely import Antichain, Config, Probe, Worker, execute, execute_directly, new_input
from timely.errors import BuildError


def test_a_probe_follows_its_stream() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = new_input(scope)
            probe = stream.exchange().probe()
        assert probe.frontier == Antichain([(0,)])
        assert probe.less_equal(0)
        assert not probe.less_than(0)
        numbers.send(1)
        numbers.advance_to(3)
        worker.step_while(lambda: probe.less_than(3))
        assert probe.frontier == Antichain([(3,)])
        assert probe.less_than((4,))
        assert probe.less_than(np.int64(4))
        assert not probe.less_than(np.array([3]))
        assert not probe.done()
        numbers.close()
        worker.step_while(lambda: not probe.done())
        assert not probe.less_equal(1 << 40)

    execute_directly(program)


def test_a_probe_in_a_loop_has_its_times() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope, scope.iterative() as inner:
            numbers, stream = new_input(scope)
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


def test_a_probe_of_an_unfinished_dataflow_cannot_be_read() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            probe = scope.to_stream(range(1)).probe()
            with pytest.raises(BuildError, match="once the dataflow is complete"):
                probe.done()

    execute_directly(program)


@pytest.mark.parametrize("workers", [1, 3])
def test_a_probe_of_several_streams_waits_for_all_of_them(workers: int) -> None:
    def program(worker: Worker) -> int:
        probe = Probe()
        with pytest.raises(BuildError, match="looks at no stream"):
            probe.done()
        with pytest.raises(BuildError, match="looks at no stream"):
            probe.explain(0)
        with worker.dataflow() as scope:
            first, one = new_input(scope, name="first")
            second, two = new_input(scope, name="second")
            seen: list[int] = []
            one.exchange().probe_with(probe).inspect(seen.append)
            two.exchange().probe_with(probe)
        with worker.dataflow() as scope:
            third, three = new_input(scope, name="third")
            three.probe_with(probe)
            with pytest.raises(BuildError, match="leave its `with` block"):
                probe.done()
        first.send(5)
        for handle, others in ((first, (second, third)), (second, (first, third)), (third, (first, second))):
            for other in (first, second, third):
                other.advance_to(other.epoch + 1)
            for other in others:
                other.advance_to(other.epoch + 1)
            worker.step_while(lambda handle=handle: probe.less_than(handle.time))
            assert probe.less_equal(handle.time)
            handle.advance_to(handle.epoch + 1)
        worker.step_while(lambda: probe.less_than(5))
        for handle in (third, first, second):
            assert not probe.done()
            handle.close()
        worker.step_while(lambda: not probe.done())
        assert probe.explain(patience=0) == "nothing holds this frontier back"
        return len(seen)

    assert sum(execute(program, Config(workers=workers))) == workers


def test_a_probe_reports_what_holds_each_stream_back() -> None:
    def program(worker: Worker) -> str:
        probe = Probe()
        with worker.dataflow() as scope:
            streams = [new_input(scope, name=name)[1].probe_with(probe) for name in ("first", "second")]
            assert len(streams) == 2
        return probe.explain(0)

    text = execute_directly(program)
    assert "'first'" in text
    assert "'second'" in text


def test_a_probe_has_times_of_one_width() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            probe = scope.empty().probe()
            with scope.iterative() as inner:
                scope.empty().enter(inner).probe_with(probe)

    with pytest.raises(BuildError, match="whose times have 2"):
        execute_directly(program)
