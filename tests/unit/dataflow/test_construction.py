"""Building: its cost grows with the number of operators, and dropped dataflows leave nothing behind."""

from __future__ import annotations

import gc
import time as clock
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

import differential
from tests.unit.dataflow.running import on_workers
from timely import (
    Config,
    InputPort,
    OperatorBuilder,
    OutputPort,
    Pipeline,
    Scope,
    Stream,
    TimelyError,
    Worker,
    execute,
    execute_directly,
    new_input,
    new_unordered_input,
)
from timely.dataflow.operators.concat import concatenate
from timely.errors import CycleError


def test_many_streams_into_many_operators_cost_an_edge_each_and_not_one_for_each_pair() -> None:
    def same(input: InputPort, output: OutputPort) -> None:
        for right, batch in input:
            output.give(right, batch)

    def stage(stream: Stream) -> Stream:
        return concatenate([stream.unary(Pipeline(), same) for _ in range(100)])

    def program(worker: Worker) -> int:
        with worker.dataflow() as scope:
            probe = stage(stage(scope.to_stream(range(2)))).probe()
        worker.step_while(lambda: not probe.done())
        return sum(map(len, scope.dataflow.tracker._outgoing))

    assert execute_directly(program) <= 4 * 200


def test_a_chain_of_loops_of_in_line_operators_costs_as_much_as_the_separate_loops() -> None:
    def around(stream: Stream, scope: Scope) -> Stream:
        with scope.iterative() as loop:
            handle, again = loop.feedback()
            counted = stream.enter(loop).concat(again).map(lambda x: x + 1)
            counted.filter(lambda x: x % 3 != 0).connect_loop(handle)
            return counted.filter(lambda x: x % 3 == 0).leave()

    def program(worker: Worker) -> int:
        found: list[int] = []
        with worker.dataflow() as scope:
            stream = scope.to_stream(range(3))
            for _ in range(60):
                stream = around(stream, scope)
            probe = stream.inspect(found.append).probe()
        worker.step_while(lambda: not probe.done())
        assert sorted(found) == [180, 180, 180]
        return sum(map(len, scope.dataflow.tracker._outgoing))

    assert execute_directly(program) <= 20 * 60


@pytest.mark.parametrize("enabled", [True, False])
def test_the_search_for_garbage_goes_on_after_building_if_it_did_before(enabled: bool) -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow():
            assert not gc.isenabled()
        assert gc.isenabled() == enabled
        with pytest.raises(ZeroDivisionError), worker.dataflow():
            _ = 1 // 0
        assert gc.isenabled() == enabled

    if not enabled:
        gc.disable()
    try:
        execute_directly(program)
    finally:
        gc.enable()


def failed(worker: Worker, end: Callable[[Scope], object]) -> list[Any]:
    """Return handles of a dataflow whose building `end` ends with an error."""
    with suppress(ZeroDivisionError, CycleError), worker.dataflow("q") as scope:
        numbers, stream = new_input(scope)
        others, _ = new_unordered_input(scope)
        _, graph = differential.new_input(scope)
        handles = [numbers, others, stream, stream.probe(), graph.output(), graph.arrange_by_key().trace()]
        end(scope)
    return handles


def circular(scope: Scope) -> None:
    """Close a loop in which no counter advances."""
    builder = OperatorBuilder(scope, "ring")
    _, stream = builder.add_output()
    builder.add_input(stream.map(lambda x: x), Pipeline())
    builder.build_from(lambda: None)


@pytest.mark.parametrize("end", [lambda scope: 1 // 0, circular])
def test_after_an_error_while_a_dataflow_was_built_its_handles_ask_to_build_it_again(
    end: Callable[[Scope], object],
) -> None:
    def program(worker: Worker) -> None:
        numbers, others, stream, probe, output, trace = failed(worker, end)
        assert numbers.is_closed
        assert repr(numbers) == "Input('input', not built)"
        numbers.close()
        again = r"building dataflow 0 \('q'\) failed with an error: build it again"
        uses: list[Callable[[], object]] = [
            lambda: numbers.send(1),
            lambda: numbers.advance_to(1),
            lambda: others.capability,
            lambda: stream.map(lambda x: x),
            lambda: probe.less_than(1),
            lambda: output.less_than(1),
            lambda: trace.upper,
            lambda: trace.import_into(scope),
        ]
        with worker.dataflow("r") as scope:
            for use in uses:
                with pytest.raises(TimelyError, match=again):
                    use()

    execute_directly(program)


@on_workers
def test_a_dropped_dataflow_and_its_shape_are_forgotten(workers: int) -> None:
    def built(worker: Worker) -> weakref.ref[Scope]:
        with worker.dataflow() as scope:
            scope.to_stream(range(10)).exchange().probe()
        return weakref.ref(scope)

    def program(worker: Worker) -> bool:
        forgotten = built(worker)
        while worker.step_or_park():
            pass
        # While one thread collects, gc.collect() does nothing in the others.
        deadline = clock.monotonic() + 10
        while forgotten() is not None and clock.monotonic() < deadline:
            gc.collect()
            clock.sleep(0.001)
        return forgotten() is None and not worker.shapes._own

    assert execute(program, Config(workers=workers)) == [True] * workers
