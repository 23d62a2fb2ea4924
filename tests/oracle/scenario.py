"""Programs, everything that happens to them, and whether they come out right at every time.

A `Scenario` holds several programs over the same inputs, what happens to the inputs, and a seed that decides the rest:
how workers exchange progress, which worker makes a change, which changes are sealed together, which worker steps when,
what the network delivers, how far readers let the traces of the inputs be compacted, when other dataflows are built
that import inputs from the first or from each other, and when each of them is dropped.

While it runs, and when all is done, `check` compares

- the output of each program so far with its meaning, at every time of the grid that its frontier has passed;
- the contents of the inputs' traces with the updates inserted, at every time that they have not compacted; and those of
  the traces of dataflows that import them.

`script` writes a scenario as a program that can be run by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

import differential.data.codes as codes
import differential.data.interning as interning
from differential.delta import extend_locally, half_join, lookup
from differential.operators import histories, join_arrangements
from differential.trace import batcher, merge, spine
from tests.oracle.grid import Multiset, Update, grid
from tests.oracle.part import CONSTANT, INPUTS, received
from tests.oracle.programs import Contents, Pairs, Program
from tests.oracle.running import QUEUE_BYTES, Run
from timely.dataflow import ports, region
from timely.dataflow.operators import replay
from timely.order import Time, less_equal


class Scenario(NamedTuple):
    """Programs over the inputs, the updates of these, and the circumstances.

    `upserts` are `((key, value), time)`, in order, of the input after those of `inputs`; the value None removes a key.
    There are none if `outer` is more than 1, because then no time is the last.

    With `tiny`, everything that begins at some size begins at once: merges in many steps, compaction, outputs in
    pieces, pauses of regions, reclaiming the numbers of strings, waiting for room in queues. With `guest` a second
    dataflow runs the last program for a while, over inputs that it imports or has.
    """

    programs: list[Program]
    inputs: list[list[Update]]
    outer: int = 1
    workers: int = 1
    tiny: bool = False
    guest: bool = False
    readers: int = 0
    seed: int = 0
    upserts: Sequence[tuple[tuple[int, int | None], Time]] = ()

    def contents(self, number: int, time: Time, ended: Time | None = None) -> Multiset:
        """Return the contents of an input at a time, without updates in advance of `ended`."""
        if number < INPUTS:
            return received(self.inputs[number], time, ended)
        if number > INPUTS:
            return Counter(zip(*CONSTANT)) if time[0] >= 0 else Counter()
        records = [record for record, when in self.upserts if when <= time and not (ended and less_equal(ended, when))]
        return Counter({(key, value): 1 for key, value in dict(records).items() if value is not None})

    def everything(self) -> list[tuple[Time, int, Any, int]]:
        """Return `(time, input, record, diff)` for all that happens, in order; a statement's diff is 0."""
        updates = [(time, number, record, diff) for number, one in enumerate(self.inputs) for record, time, diff in one]
        statements = [(time, INPUTS, record, 0) for record, time in self.upserts]
        return sorted([*updates, *statements], key=lambda one: one[:2])

    def times(self) -> list[Time]:
        """Return the times of the smallest grid that holds all that happens."""
        return grid([(record, time, diff) for time, _, record, diff in self.everything()])

    def inputs_at(self, time: Time, seen: Callable[[Program, Pairs], None]) -> Contents:
        """Return the inputs at a time, which report the meaning of each part of a program to `seen`."""

        def at(delay: int) -> list[Pairs]:
            return [self.contents(number, (time[0] - delay, *time[1:])) for number in range(INPUTS + 2)]

        return Contents(at, seen=seen)


def check(scenario: Scenario) -> Counter[str]:
    """Run a scenario; raise an AssertionError that describes whatever is wrong. Return what happened."""
    with tiny() if scenario.tiny else _as_it_is(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(replay, "POLL_SECONDS", 0.0)
        run = Run(scenario)
        run.to_the_end()
    return run.happened


def script(scenario: Scenario) -> str:
    """Return a program that runs the scenario."""
    fields = ",\n".join(f"    {name}={value!r}" for name, value in scenario._asdict().items())
    return f"from tests.oracle.scenario import Scenario, check\n\ncheck(Scenario(\n{fields},\n))"


@contextmanager
def tiny() -> Iterator[None]:
    """Let everything that begins at some size begin at once."""
    with pytest.MonkeyPatch.context() as patch:
        for module, bounds in (
            (spine, {"FEW": 2, "TINY": 1, "TINY_LAYERS": 2, "EFFORT": 1, "_LEAST_PAUSE": 3}),
            (merge, {"_PIECE": 1}),
            (region, {"PATIENCE": -1.0}),
            (batcher, {"FEW": 2, "_PILE": 2}),
            (join_arrangements, {"ROWS_PER_BATCH": 2}),
            (histories, {"SHORT": 1}),
            (half_join, {"PIECE": 2}),
            (extend_locally, {"PIECE": 2, "FEW": 2}),
            (lookup, {"ROWS_PER_BATCH": 2}),
            (codes, {"PACKED_HIGH": 2}),
            (interning, {"LEAST_STEP": 3, "_LEAST_WATCHED": 4}),
            (ports, {"OVERHEAD": QUEUE_BYTES // 4}),
        ):
            for name, bound in bounds.items():
                patch.setattr(module, name, bound)
        patch.setattr(interning.Interner, "_is_due", lambda _: True)
        yield


@contextmanager
def _as_it_is() -> Iterator[None]:
    yield
