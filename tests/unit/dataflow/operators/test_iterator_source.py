"""Tests of `iterator_source`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.unit.dataflow.running import on_workers
from timely import Config, Probe, Worker, execute, execute_directly, new_input
from timely.errors import BuildError, StalledError


@on_workers
@pytest.mark.parametrize("ahead", [1, 3])
def test_no_epoch_is_drawn_before_an_epoch_that_many_earlier_is_complete_everywhere(workers: int, ahead: int) -> None:
    epochs = 8

    def program(worker: Worker) -> tuple[list[tuple[int, bool]], list[Any]]:
        probe, drawn, seen = Probe(), [], []

        def numbers() -> Iterator[np.ndarray[Any, Any]]:
            for epoch in range(epochs):
                drawn.append((epoch, probe.less_equal(epoch - ahead)))
                yield np.arange(10 * epoch)

        with worker.dataflow() as scope:
            read = scope.iterator_source(numbers(), probe, ahead=ahead).exchange()
            counts = read.count().probe_with(probe)
            counts.inspect_time(lambda time, count: seen.append((time[0], count)))
        worker.step_while(lambda: not probe.done())
        return drawn, seen

    results = execute(program, Config(workers=workers))
    assert all(drawn == [(epoch, False) for epoch in range(epochs)] for drawn, _ in results)
    for epoch in range(epochs):
        counted = sum(count for _, seen in results for at, count in seen if at == epoch)
        assert counted == workers * 10 * epoch


def test_all_permitted_epochs_are_drawn_even_if_nothing_is_consumed() -> None:
    def program(worker: Worker) -> list[int]:
        probe, drawn = Probe(), []

        def epochs() -> Iterator[list[int]]:
            while True:
                drawn.append(len(drawn))
                yield [drawn[-1]]

        with worker.dataflow() as scope:
            held, stream = new_input(scope)
            scope.iterator_source(epochs(), probe, ahead=4).concat(stream).probe_with(probe)
        for _ in range(20):
            worker.step()
        before = len(drawn)
        held.advance_to(3)
        with pytest.raises(StalledError, match="'input'"):
            worker.step_while(lambda: not probe.done())
        worker.drop_dataflow(0)
        return [before, len(drawn)]

    assert execute_directly(program) == [4, 7]


def test_an_epoch_may_be_empty_and_may_be_several_batches() -> None:
    def program(worker: Worker) -> list[Any]:
        probe, seen = Probe(), []
        with worker.dataflow() as scope:
            items = [[], iter([[1], [2]]), range(3)]
            read = scope.iterator_source(items, probe).probe_with(probe)
            read.inspect_time(lambda time, record: seen.append((time[0], int(record))))
        worker.step_while(lambda: not probe.done())
        return seen

    assert execute_directly(program) == [(1, 1), (1, 2), (2, 0), (2, 1), (2, 2)]


def test_a_probe_of_nothing_and_epochs_in_a_loop_are_refused() -> None:
    def unattached(worker: Worker) -> None:
        with worker.dataflow() as scope:
            scope.iterator_source([], Probe()).probe()

    def inside(worker: Worker) -> None:
        with worker.dataflow() as scope, scope.iterative() as inner:
            inner.iterator_source([], Probe())

    def elsewhere(worker: Worker) -> None:
        with worker.dataflow() as scope:
            probe = scope.empty().probe()
        with worker.dataflow() as scope:
            scope.iterator_source([], probe)

    for program, message in [
        (unattached, "looks at no stream"),
        (inside, "have 2"),
        (elsewhere, "cannot be driven by a probe of dataflow 0"),
    ]:
        with pytest.raises(BuildError, match=message):
            execute_directly(program)


@pytest.mark.parametrize("ahead", [0, -1, 1.5, "x", True, None])
def test_a_number_of_epochs_that_is_none_is_refused(ahead: Any) -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            scope.iterator_source([], Probe(), ahead=ahead)

    with pytest.raises(BuildError, match=r"iterator_source \(at .*: `ahead` must be a whole number of at least 1, not"):
        execute_directly(program)


def test_generators_are_closed_when_their_dataflow_is_dropped() -> None:
    closed: list[str] = []

    def batches() -> Iterator[list[int]]:
        try:
            while True:
                yield [1]
        finally:
            closed.append("batches")

    def epochs() -> Iterator[Iterator[list[int]]]:
        try:
            while True:
                yield drawn[0]
        finally:
            closed.append("epochs")

    drawn = [batches()]

    def program(worker: Worker) -> None:
        probe = Probe()
        with worker.dataflow() as scope:
            scope.iterator_source(epochs(), probe).probe_with(probe)
        for _ in range(3):
            worker.step()
        assert closed == []
        worker.drop_dataflow(scope.dataflow)
        assert closed == ["batches", "epochs"]

    execute_directly(program)
