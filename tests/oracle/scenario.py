"""Programs, everything that happens to them, and whether they come out right at every time.

A `Scenario` holds several programs over the same inputs, what happens to the inputs, and a seed that decides the rest:
how workers tell of their progress, which makes a change, what is handed over together, which steps when and what the
network delivers, how far readers let the inputs' traces be compacted, and when a second dataflow is built and perhaps
dropped.

While it runs, and when all is done, `check` compares

- what each program has said so far with what it means, at every time of the grid that it has said to be final,
- what is found in the inputs' traces with what was put in, at every time they have not let go of.

`script` writes a scenario as a program that can be run by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from random import Random
from typing import Any, NamedTuple

import pytest

import differential.codes as codes
import differential.interning as interning
from differential import Output, Trace, new_input, new_upsert_input
from differential.operators import half_join, join
from differential.trace import batcher, merge, spine
from tests.oracle.grid import Multiset, Update, contents, grid
from tests.oracle.programs import SIZE, Contents, Pairs, Program, build, meaning
from timely import Config, Worker
from timely.communication.simulated import SimulatedNetwork
from timely.config import ACCUMULATIONS, PROGRESS_MODES
from timely.dataflow import ports
from timely.order import Time, meet
from timely.progress.antichain import Antichain

INPUTS = 2
"""So many inputs are said by updates; one after them by statements of which value a key has."""

STEPS = 60_000
SPILL_ABOVE = 100
QUEUE_BYTES = 1 << 16
"""Room for so few messages of as many bytes as they are said to have that operators have to wait."""


class Scenario(NamedTuple):
    """Programs over the inputs, what happens to these, and the circumstances.

    `upserts` are statements `((key, value), time)` of the input after those of `inputs`, in order; None is no value.
    There are none where `outer` is more than 1, since then nothing is last.

    With `tiny`, everything that begins at some size begins at once: merges in many steps, compaction, pieces of large
    outputs, numbers of strings taken back, waiting for room in queues. With `guest` a second dataflow runs the last
    program for a while.
    """

    programs: list[Program]
    inputs: list[list[Update]]
    outer: int = 1
    workers: int = 1
    tiny: bool = False
    guest: bool = False
    seed: int = 0
    upserts: Sequence[tuple[tuple[int, int | None], Time]] = ()

    def contents(self, number: int, time: Time) -> Multiset:
        """Return what an input holds at a time."""
        if number < INPUTS:
            return contents(self.inputs[number], time)
        values = dict(record for record, when in self.upserts if when <= time)
        return Counter({(key, value): 1 for key, value in values.items() if value is not None})

    def everything(self) -> list[tuple[Time, int, Any, int]]:
        """Return `(time, input, record, diff)` for all that happens, in order; a statement's diff is 0."""
        updates = [(time, number, record, diff) for number, one in enumerate(self.inputs) for record, time, diff in one]
        statements = [(time, INPUTS, record, 0) for record, time in self.upserts]
        return sorted([*updates, *statements], key=lambda one: one[:2])


def check(scenario: Scenario) -> None:
    """Run a scenario; raise AssertionError, in words, if anything is not what it should be."""
    with tiny() if scenario.tiny else _as_it_is():
        Run(scenario).to_the_end()


def script(scenario: Scenario) -> str:
    """Return a program that runs the scenario."""
    fields = ",\n".join(f"    {name}={value!r}" for name, value in scenario._asdict().items())
    return f"from tests.oracle.scenario import Scenario, check\n\ncheck(Scenario(\n{fields},\n))"


@contextmanager
def tiny() -> Iterator[None]:
    """Let everything that waits for some size happen at once."""
    with pytest.MonkeyPatch.context() as patch:
        for module, bounds in (
            (spine, {"FEW": 2, "TINY": 1, "TINY_LAYERS": 2, "EFFORT": 1, "_LEAST_PAUSE": 3}),
            (merge, {"_PIECE": 1}),
            (batcher, {"FEW": 2, "_PILE": 2}),
            (join, {"ROWS_PER_BATCH": 2}),
            (half_join, {"PIECE": 2}),
            (codes, {"PACKED_HIGH": 2}),
            (interning, {"LEAST_STEP": 3, "_LEAST_WATCHED": 4}),
            (ports, {"OVERHEAD": QUEUE_BYTES // 4}),
        ):
            for name, bound in bounds.items():
                patch.setattr(module, name, bound)
        patch.setattr(interning.Interner, "is_due", True)
        yield


@contextmanager
def _as_it_is() -> Iterator[None]:
    yield


class Part:
    """The dataflow on one worker."""

    def __init__(self, worker: Worker, programs: Sequence[Program], outer: int) -> None:
        self.worker = worker
        with worker.dataflow(outer=outer) as scope:
            inputs: list[Any] = [new_input(scope) for _ in range(INPUTS)]
            inputs.append(new_upsert_input(scope) if outer == 1 else new_input(scope))
            sessions, collections = zip(*inputs)
            self.sessions: list[Any] = list(sessions)
            self.outputs: list[Output] = [build(program, collections).output() for program in programs]
            indexes = [collection.arrange_by_key() for collection in collections]
            self.traces = [index.trace() for index in indexes]
        self.dataflow = scope.dataflow


class Run:
    """A scenario under way."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.random = Random(scenario.seed)
        self.network = SimulatedNetwork(scenario.workers, scenario.seed)
        config = Config(
            workers=self.random.choice([size for size in (1, 2, 3, 4) if scenario.workers % size == 0]),
            progress=self.random.choice(PROGRESS_MODES),
            accumulation=self.random.choice(ACCUMULATIONS),
            queue_bytes=QUEUE_BYTES,
            spill_above=SPILL_ABOVE if scenario.tiny and scenario.seed % 4 == 0 else None,
        )
        self.workers = [Worker(allocator, config) for allocator in self.network.allocators]
        self.parts = [Part(worker, scenario.programs, scenario.outer) for worker in self.workers]
        self.guests: list[Part] = []
        self.updates = scenario.everything()
        self.grid = grid([(record, time, diff) for time, _, record, diff in self.updates])
        self.said: list[list[Update]] = [[] for _ in scenario.programs]
        self.meanings: dict[tuple[int, Time], Pairs] = {}

    def to_the_end(self) -> None:
        updates = self.updates
        visits = self.random.sample(range(len(updates) + 1), k=min(2, len(updates)))
        for position, update in enumerate(updates):
            if self.scenario.guest and position in visits:
                self._visit()
            self._advance(reduce(meet, (time for time, *_ in updates[position:])))
            self._put(self.parts, update)
            self._steps(self.random.choice((0, 0, 3, 30)))
            if self.random.random() < 0.2:
                self._look()
        for part in self.parts:
            for session in part.sessions:
                session.close()
        self._finish()
        self._look()

    def _advance(self, least: Time) -> None:
        """Move all sessions on as far as the updates to come permit, and let readers let go of some times."""
        for part in self.parts:
            for session in part.sessions:
                session.advance_to(least)
            for trace in part.traces:
                if self.random.random() < 0.3:
                    possible = [time for time in [*self.grid, least] if trace.logical.less_equal(time)]
                    trace.set_logical_compaction(Antichain(self.random.choices(possible, k=2)))
                if self.random.random() < 0.3 and trace.physical.dominates(trace.upper):
                    trace.set_physical_compaction(trace.upper)

    def _put(self, parts: Sequence[Part], update: tuple[Time, int, Any, int]) -> None:
        time, number, record, diff = update
        if number == INPUTS:
            # Of two workers the last would be right; so one says all of an epoch.
            session = parts[time[0] % len(parts)].sessions[number]
            session.advance_to(time)
            key, value = record
            if value is None:
                session.unset(key)
            else:
                session.set(key, value)
        else:
            session = self.random.choice(parts).sessions[number]
            if session.time == time and self.random.random() < 0.5:
                session.update(*record, diff=diff)
            else:
                session.update_at(*record, time=time, diff=diff)
        if self.random.random() < 0.3:
            session.flush()

    def _visit(self) -> None:
        """Build a second dataflow that gets all updates at once; or drop it, on one worker after the other."""
        if self.guests:
            for part in self.guests:
                part.worker.drop_dataflow(part.dataflow)
                self._steps(self.random.choice((0, 3)))
            self.guests.clear()
            return
        for worker in self.workers:
            self.guests.append(Part(worker, self.scenario.programs[-1:], self.scenario.outer))
            for trace in self.guests[-1].traces:
                trace.drop()
            self._steps(self.random.choice((0, 3)))
        for update in self.updates:
            self._put(self.guests, update)
        for part in self.guests:
            for session in part.sessions:
                session.close()

    def _step(self) -> None:
        if self.network.pending and self.random.random() < 0.6:
            self.network.deliver_one()
        else:
            self.random.choice(self.workers).step()

    def _steps(self, number: int) -> None:
        for _ in range(number):
            self._step()

    def _finish(self) -> None:
        for _ in range(STEPS):
            if not any(worker.dataflows for worker in self.workers):
                return
            self._step()
        raise AssertionError("\n".join(worker.explain() for worker in self.workers))

    def _look(self) -> None:
        """Compare what is final with what it should be."""
        for number, output in enumerate(self.parts[0].outputs):
            self.said[number] += output.changes()
            for time in self.grid:
                if not output._input.frontier.less_equal(time):
                    self._compare(number, self.said[number], time)
        last = len(self.said) - 1
        for output in self.guests[0].outputs if self.guests else ():
            if output.done():
                said = output.changes()
                for time in self.grid:
                    self._compare(last, said, time)
                self.guests.clear()
        for number in range(INPUTS + 1):
            traces = [part.traces[number] for part in self.parts]
            for trace in traces:
                trace._handle._spine.validate()
            for time in self.grid:
                if all(trace.logical.less_equal(time) and not trace.upper.less_equal(time) for trace in traces):
                    found: Multiset = Counter()
                    for trace in traces:
                        found.update(trace.contents(time).records())
                    assert found == self.scenario.contents(number, time), f"input {number} is held wrongly at {time}"
                    self._look_up(traces, time, found)

    def _look_up(self, traces: Sequence[Trace], time: Time, contents: Multiset) -> None:
        """Ask for some keys, in a random order."""
        keys = self.random.sample(range(SIZE + 1), k=2)
        found: Multiset = Counter()
        for trace in traces:
            place, values, counts = trace.cursor(time)[keys]
            for at, *value, count in zip(place.tolist(), *(column.tolist() for column in values), counts.tolist()):
                found[keys[at], *value] += count
        right = {record: count for record, count in contents.items() if record[0] in keys}
        assert found == right, f"keys {keys} of an input have {found} at {time}, not {right}"

    def _compare(self, number: int, said: Sequence[Update], time: Time) -> None:
        found, right = contents(said, time), self._meaning(number, time)
        assert found == right, (
            f"program {number} at {time}\n  has said {dict(found)}\n  but means {dict(right)}\n  "
            f"where the inputs hold {[dict(self.scenario.contents(number, time)) for number in range(INPUTS + 1)]}"
        )

    def _meaning(self, number: int, time: Time) -> Pairs:
        known = self.meanings.get((number, time))
        if known is None:
            inputs = Contents(
                lambda delay: [
                    self.scenario.contents(number, (time[0] - delay, *time[1:])) for number in range(INPUTS + 1)
                ]
            )
            known = self.meanings[number, time] = Counter(
                {pair: n for pair, n in meaning(self.scenario.programs[number], inputs).items() if n}
            )
        return known
