"""Random dataflows with nested loops and operators that wait for frontiers.

Records are (number, fuel). A loop feeds back the records that have fuel left, with one unit less, so that every run
ends; nested loops share the fuel. The output is a function of the input, whatever the number of workers and the order
of events: the records of a number meet at one worker, and are added up only when their time is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import numpy as np

from timely import (
    Capability,
    Columns,
    Exchange,
    InputPort,
    OperatorBuilder,
    OutputPort,
    Pipeline,
    Scope,
    Stream,
    Time,
)
from timely.data.container import records

NUMBERS = 7
FUEL = 3

Step = Callable[[Stream], Stream]


def build(scope: Scope, stream: Stream, rng: Random, more: Sequence[Step] = ()) -> Stream:
    """Return the output of a random program for a stream. Equal generators build equal programs.

    `more` are steps that the program may take beside the usual ones.
    """
    return _body(scope, stream, rng, rng.randint(1, 2), rng.randint(1, 3), [*_STEPS, *more])


def _body(scope: Scope, stream: Stream, rng: Random, loops: int, length: int, steps: list[Step]) -> Stream:
    position = rng.randrange(length)
    for place in range(length):
        step = rng.choice(steps)
        if step is _double:
            steps.remove(_double)  # twice in a loop inside a loop would be thousands of messages
        stream = step(stream)
        if loops and place == position:
            stream = _loop(scope, stream, rng, loops - 1, steps)
    return stream


def _loop(scope: Scope, stream: Stream, rng: Random, loops: int, steps: list[Step]) -> Stream:
    with scope.iterative() as inner:
        handle, again = inner.feedback(rng.choice([1, 1, 2]))
        around = _body(inner, stream.enter(inner).concat(again), rng, loops, rng.randint(1, 2), steps)
        if rng.random() < 0.5:
            around = around.exchange(lambda number, fuel: number)
        around.filter(lambda number, fuel: fuel > 0).map(lambda number, fuel: (number, fuel - 1)).connect_loop(handle)
        return around.leave()


def _shift(stream: Stream) -> Stream:
    return stream.map(lambda number, fuel: ((3 * number + 1) % NUMBERS, fuel))


def _thin(stream: Stream) -> Stream:
    return stream.filter(lambda number, fuel: number % 3 != 0)


def _double(stream: Stream) -> Stream:
    return stream.concat(_shift(stream))


def _exchange(stream: Stream) -> Stream:
    return stream.exchange(lambda number, fuel: number % 3)


def _add_up(stream: Stream) -> Stream:
    return stream.unary_frontier(Exchange(lambda number, fuel: number), adding_up, name="add up")


def _add_up_drained(stream: Stream) -> Stream:
    """Do what `_add_up` does, with an input whose frontier the outputs that feed it report."""
    builder = OperatorBuilder(stream.scope, "add up what is drained")
    input = builder.add_input(stream, Exchange(lambda number, fuel: number), frontier=True, drains=True)
    output, result = builder.add_output(initial=True)

    def constructor(capabilities: list[Capability]) -> Callable[[], None]:
        logic = adding_up(capabilities[0])
        return lambda: logic(input, output)

    builder.build(constructor)
    return result


def _wait(stream: Stream) -> Stream:
    return stream.unary_frontier(Pipeline(), waiting, name="wait")


_STEPS: list[Step] = [_shift, _thin, _double, _exchange, _add_up, _add_up_drained, _wait]


def adding_up(capability: Capability) -> Callable[[InputPort, OutputPort], None]:
    """Send one record for each number of a time, when the time is complete: how often it came, its largest fuel."""
    capability.drop()
    sums: dict[Time, dict[int, list[int]]] = {}
    held: dict[Time, Capability] = {}

    def logic(input: InputPort, output: OutputPort) -> None:
        for right, batch in input:
            if right.time not in held:
                held[right.time] = right.retain()
            numbers = sums.setdefault(right.time, {})
            for number, fuel in records(batch):
                so_far = numbers.setdefault(number, [0, 0])
                so_far[0] += 1
                so_far[1] = max(so_far[1], fuel)
        for time in sorted(held):
            if not input.frontier.less_equal(time):
                found = sums.pop(time)
                with held.pop(time) as permitted:
                    output.give(permitted, as_columns([(count % NUMBERS, fuel) for count, fuel in found.values()]))

    return logic


def waiting(capability: Capability) -> Callable[[InputPort, OutputPort], None]:
    """Pass each batch on when its time is complete, an epoch later; one capability is kept and moved forward."""
    capability.drop()
    kept: dict[Time, tuple[Capability, list[Columns]]] = {}

    def logic(input: InputPort, output: OutputPort) -> None:
        for right, batch in input:
            if right.time not in kept:
                kept[right.time] = right.retain(), []
            kept[right.time][1].append(batch)  # type: ignore[arg-type]
        for time in sorted(kept):
            if not input.frontier.less_equal(time):
                permitted, batches = kept.pop(time)
                permitted.downgrade((time[0] + 1, *time[1:]))
                with permitted:
                    for batch in batches:
                        output.give(permitted, batch)

    return logic


def forgetting(kept: list[Capability]) -> Step:
    """Return a step that passes everything on, but never drops the first capability that it retains."""

    def constructor(capability: Capability) -> Callable[[InputPort, OutputPort], None]:
        capability.drop()

        def logic(input: InputPort, output: OutputPort) -> None:
            for right, batch in input:
                if not kept:
                    kept.append(right.retain())
                output.give(right, batch)

        return logic

    return lambda stream: stream.unary_frontier(Pipeline(), constructor, name="forgetful")


def as_columns(rows: list[tuple[int, int]]) -> Columns:
    """Return records (number, fuel) as a batch."""
    table = np.array(rows, np.int64).reshape(-1, 2)
    return Columns((table[:, 0].copy(), table[:, 1].copy()))
