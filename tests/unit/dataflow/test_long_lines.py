"""Operators that stand in a line run however long it is: they do not call each other without end."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from differential import Collection
from tests.unit.dataflow.running import collected
from timely import Config, Probe, Scope, Stream, Worker, execute, execute_directly

LONG = 1200
"""More than the calls that Python nests."""

LINES: dict[str, Callable[[Stream], Stream]] = {
    "map": lambda stream: stream.map(lambda x: x + 1),
    "inspect": lambda stream: stream.inspect(lambda x: None),
    "branch": lambda stream: stream.branch(lambda x: x < 0)[0],
    "concat": lambda stream: stream.concat(stream.scope.empty()),
    "concat of the other": lambda stream: stream.scope.empty().concat(stream),
    "probe": lambda stream: stream.probe_with(Probe()),
    "filter and concat": lambda stream: stream.filter(lambda x: x >= 0).concat(stream.scope.empty()),
}


def line(step: Callable[[Stream], Stream], scope: Scope) -> Stream:
    """Return the stream of 3 and 4 of worker 0 after many steps."""
    stream = scope.to_stream([3, 4] if scope.index == 0 else [])
    for _ in range(LONG):
        stream = step(stream)
    return stream


@pytest.mark.parametrize("name", LINES)
def test_a_long_line_of_operators_passes_everything_on(name: str) -> None:
    added = LONG if name == "map" else 0
    assert collected(partial(line, LINES[name])) == [3 + added, 4 + added]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_long_line_in_a_loop_goes_around(workers: int) -> None:
    def program(worker: Worker) -> dict[tuple[object, ...], int]:
        def grow(inner: Collection) -> Collection:
            grown = inner
            for _ in range(LONG):
                grown = grown.map(lambda x: x)
            return grown.map(lambda x: x + 1).concat(inner).filter(lambda x: x < 9).distinct()

        with worker.dataflow() as scope:
            output = Collection.of(scope, [5] if scope.index == 0 else [6]).iterate(grow).output()
        worker.step_while(lambda: not output.done())
        return output.contents()

    found: dict[tuple[object, ...], int] = {}
    for contents in execute(program, Config(workers=workers)):
        found.update(contents)
    assert found == {(5,): 1, (6,): 1, (7,): 1, (8,): 1}


def test_a_collection_added_to_itself_many_times_occurs_as_often() -> None:
    def program(worker: Worker) -> dict[tuple[object, ...], int]:
        with worker.dataflow() as scope:
            one = total = Collection.of(scope, ["a"])
            for _ in range(LONG):
                total = total.concat(one)
            output = total.output()
        worker.step_while(lambda: not output.done())
        return output.contents()

    assert execute_directly(program) == {("a",): LONG + 1}
