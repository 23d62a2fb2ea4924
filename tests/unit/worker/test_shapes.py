"""Shapes of dataflows: what is compared, how a difference is reported, and what is kept until then."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import pytest

from timely import Config, Worker, execute
from timely.communication.message import Shape
from timely.communication.thread import thread_allocators
from timely.errors import FrameError, ShapeError
from timely.worker.shapes import Shapes, difference

ADVICE = "every worker must build the same dataflows in the same order"


class Built(NamedTuple):
    """The compared part of a dataflow."""

    index: int
    lines: tuple[str, ...]

    def shape(self) -> tuple[str, ...]:
        return self.lines


def words(*operators: str) -> Any:
    """Return a dataflow with these operators."""
    return Built(0, ("dataflow 'words'", *operators, "wiring 1f"))


def test_the_lines_at_which_operators_were_built_may_differ() -> None:
    built = [words("operator 'map' ()\ta.py:1"), words("operator 'map' ()\tb.py:2"), words("operator 'map' ()")]
    allocators = thread_allocators(3)
    shapes = list(map(Shapes, allocators))
    for own, dataflow in zip(shapes, built, strict=True):
        own.announce(dataflow)
    for own, allocator in zip(shapes, allocators, strict=True):
        for sender, message in allocator.receive():
            assert isinstance(message, Shape)
            own.receive(sender, message)
    assert [own.announced for own in shapes] == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    assert not any(own._own or own._early or own._agreed for own in shapes)


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        (("dataflow 'words'", "operator 'map' ()", "wiring 2e"), ": the same operators, connected in another way; "),
        (("dataflow 'words'", "wiring 1f"), ": operator 'map' () on worker 0, nothing more on worker 1; "),
        (("dataflow 'numbers'", "wiring 1f"), ": dataflow 'words' on worker 0, dataflow 'numbers' on worker 1; "),
        ((), "; "),
    ],
)
def test_a_difference_is_named_alike_from_both_sides(others: tuple[str, ...], expected: str) -> None:
    ours = words("operator 'map' ()").shape()
    text = difference(3, 0, ours, 1, others)
    assert text == f"worker 0 and worker 1 built different dataflows (number 3){expected}{ADVICE}"
    if others:
        assert difference(3, 1, others, 0, ours) == text


def test_functions_in_line_must_be_the_same() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers = scope.to_stream([1, 2])
            rows = numbers.map(lambda x: x + 1) if worker.index else numbers.filter(lambda x: x > 1)
            rows.exchange().probe()

    with pytest.raises(ShapeError, match=r"operator 'filter' .* on worker 0, operator 'map' .* on worker 1"):
        execute(program, Config(workers=2))


def test_an_operator_that_one_worker_lacks_is_described_even_if_it_has_no_input() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            scope.to_stream([1])
            if worker.index == 0:
                scope.to_stream([2], name="more")

    missing = r"operator 'more' \(no input\) in dataflow built at .*py:\d+ on worker 0, nothing more on worker 1"
    with pytest.raises(ShapeError, match=missing):
        execute(program, Config(workers=2))


def test_a_dataflow_may_have_the_name_of_any_file() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow(os.fsdecode(b"caf\xe9.csv")) as scope:
            scope.to_stream([worker.index]).exchange().probe()

    execute(program, Config(workers=2))


def test_the_shape_of_a_peer_that_is_ahead_is_compared_once_the_dataflow_is_built_here() -> None:
    first, second = thread_allocators(2)
    shapes, ahead = Shapes(first), Shapes(second)
    ahead.announce(words("operator 'map' ()"))
    ahead.announce(words("operator 'filter' ()")._replace(index=1))
    for sender, message in first.receive():
        assert isinstance(message, Shape)
        shapes.receive(sender, message)
    assert shapes.announced == [0, 2]
    shapes.announce(words("operator 'map' ()"))
    second.send(0, Shape(1, b"", words("operator 'filter' ()").shape()))
    second.send(0, Shape(2, b"", words("operator 'join' ()").shape()))
    with pytest.raises(ShapeError, match=r"\(number 1\): operator 'map' \(\) on worker 0, operator 'filter'"):
        shapes.announce(words("operator 'map' ()")._replace(index=1))
    received = [message for _, message in second.receive()]
    assert isinstance(received[-1], Shape)
    assert received[-1].operators == words("operator 'map' ()").shape()


def test_the_shape_of_a_peer_may_arrive_together_with_its_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("timely.worker.shapes.PATIENCE", 0.1)
    first, second = thread_allocators(2)
    worker = Worker(first, Config(workers=2))
    with worker.dataflow("words") as scope:
        scope.to_stream([1])
    second.send(0, Shape(0, b"digest", ()))
    second.send(0, Shape(0, b"digest", ("dataflow 'numbers'", "wiring 1f")))
    with pytest.raises(ShapeError, match="dataflow 'words' on worker 0, dataflow 'numbers' on worker 1"):
        worker.step()
    worker.close()


@pytest.mark.parametrize(
    "wrong", [Shape(0, b"again", ()), Shape(2, b"too early", ()), Shape(1, b"not asked for", ("dataflow 'words'",))]
)
def test_a_shape_that_is_not_due_is_refused(wrong: Shape) -> None:
    shapes = Shapes(thread_allocators(2)[0])
    shapes.receive(1, Shape(0, b"digest", ()))
    with pytest.raises(FrameError, match=f"worker 1 announced the shape of dataflow {wrong.dataflow}, .* 1 is next"):
        shapes.receive(1, wrong)
    shapes.receive(1, Shape(1, b"digest", ()))
    assert shapes.announced == [0, 2]
