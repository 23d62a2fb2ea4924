"""Programs, everything that happens to them, and whether they come out right at every time.

A `Scenario` holds several programs over the same inputs, the inputs' updates, and a seed that decides all the rest:
which worker makes a change, what is handed over together, which worker steps when and what the network delivers,
how far readers let the inputs' traces be compacted, and when a second dataflow is built and perhaps dropped.

While it runs, and when all is done, `check` compares

- what each program has said so far with what it means, at every time of the grid that it has said to be final,
- what readers find in the inputs' traces with what was put in, at every time they have not let go of.

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
from differential import Arrangement, Output, new_input
from differential.operators import half_join, join
from differential.operators.input import InputSession
from differential.trace import batcher, merge, spine
from differential.trace.cursor import accumulate
from differential.trace.handle import TraceHandle
from tests.oracle.grid import Multiset, Update, contents, grid
from tests.oracle.programs import Contents, Pairs, Program, build, meaning
from timely import Config, Worker
from timely.communication.simulated import SimulatedNetwork
from timely.order import Time, meet
from timely.progress.antichain import Antichain

INPUTS = 2
STEPS = 60_000


class Scenario(NamedTuple):
    """Programs over `INPUTS` inputs, the inputs' updates, and the circumstances.

    With `tiny`, everything that begins at some size begins at once: merges in many steps, compaction, pieces of large
    outputs, numbers of strings taken back. With `guest` a second dataflow runs the last program for a while.
    """

    programs: list[Program]
    inputs: list[list[Update]]
    outer: int = 1
    workers: int = 1
    tiny: bool = False
    guest: bool = False
    seed: int = 0


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
        ):
            for name, bound in bounds.items():
                patch.setattr(module, name, bound)
        patch.setattr(interning.Interner, "is_due", True)
        yield


@contextmanager
def _as_it_is() -> Iterator[None]:
    yield


class Reader(NamedTuple):
    """Somebody who looks at an input on a worker."""

    arrangement: Arrangement
    trace: TraceHandle

    def contents(self, time: Time) -> Multiset:
        keys, vals, counts = accumulate(self.trace.batches(), time)
        columns = self.arrangement.key.decode(keys, len(keys)) + self.arrangement.value.decode(vals, len(keys))
        return Counter(dict(zip(zip(*(column.tolist() for column in columns)), counts.tolist())))


class Part:
    """The dataflow on one worker."""

    def __init__(self, worker: Worker, programs: Sequence[Program], outer: int) -> None:
        self.worker = worker
        with worker.dataflow(outer=outer) as scope:
            sessions, collections = zip(*(new_input(scope) for _ in range(INPUTS)))
            self.sessions: list[InputSession] = list(sessions)
            self.outputs: list[Output] = [build(program, collections).output() for program in programs]
            indexes = [collection.arrange_by_key() for collection in collections]
            self.readers = [Reader(index, index.reader()) for index in indexes]
            self.probes = [index.stream.probe() for index in indexes]
        self.dataflow = scope.dataflow


class Run:
    """A scenario under way."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.random = Random(scenario.seed)
        self.network = SimulatedNetwork(scenario.workers, scenario.seed)
        config = Config(workers=scenario.workers)
        self.workers = [Worker(allocator, config) for allocator in self.network.allocators]
        self.parts = [Part(worker, scenario.programs, scenario.outer) for worker in self.workers]
        self.guests: list[Part] = []
        self.grid = grid(*scenario.inputs)
        self.said: list[list[Update]] = [[] for _ in scenario.programs]
        self.meanings: dict[tuple[int, Time], Pairs] = {}

    def to_the_end(self) -> None:
        updates = sorted(
            (time, number, record, diff)
            for number, one in enumerate(self.scenario.inputs)
            for record, time, diff in one
        )
        visits = self.random.sample(range(len(updates) + 1), k=min(2, len(updates)))
        for position, update in enumerate(updates):
            if self.scenario.guest and position in visits:
                self._visit(updates)
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
            for reader in part.readers:
                if self.random.random() < 0.3:
                    possible = [time for time in [*self.grid, least] if reader.trace.logical.less_equal(time)]
                    frontier = Antichain(self.random.choices(possible, k=2))
                    reader.trace.set_logical_compaction(frontier)
                if self.random.random() < 0.3 and reader.trace.physical.dominates(reader.trace.upper):
                    reader.trace.set_physical_compaction(reader.trace.upper)

    def _put(self, parts: Sequence[Part], update: Any) -> None:
        time, number, record, diff = update
        session = self.random.choice(parts).sessions[number]
        if session.time == time and self.random.random() < 0.5:
            session.update(*record, diff=diff)
        else:
            session.update_at(*record, time=time, diff=diff)
        if self.random.random() < 0.3:
            session.flush()

    def _visit(self, updates: Sequence[Any]) -> None:
        """Build a second dataflow that gets all updates at once; or drop it, on one worker after the other."""
        if self.guests:
            for part in self.guests:
                part.worker.drop_dataflow(part.dataflow)
                self._steps(self.random.choice((0, 3)))
            self.guests.clear()
            return
        for worker in self.workers:
            self.guests.append(Part(worker, self.scenario.programs[-1:], self.scenario.outer))
            for reader in self.guests[-1].readers:
                reader.trace.drop()
            self._steps(self.random.choice((0, 3)))
        for update in updates:
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
        for number, one in enumerate(self.scenario.inputs):
            readers = [part.readers[number] for part in self.parts]
            for reader in readers:
                reader.trace._spine.validate()
            for time in self.grid:
                is_final = not self.parts[0].probes[number].less_equal(time)
                if is_final and all(reader.trace.logical.less_equal(time) for reader in readers):
                    found: Multiset = Counter()
                    for reader in readers:
                        found.update(reader.contents(time))
                    assert found == contents(one, time), f"input {number} is held wrongly at {time}"

    def _compare(self, number: int, said: Sequence[Update], time: Time) -> None:
        found, right = contents(said, time), self._meaning(number, time)
        assert found == right, (
            f"program {number} at {time}\n  has said {dict(found)}\n  but means {dict(right)}\n  "
            f"where the inputs hold {[dict(contents(one, time)) for one in self.scenario.inputs]}"
        )

    def _meaning(self, number: int, time: Time) -> Pairs:
        known = self.meanings.get((number, time))
        if known is None:
            inputs = Contents(
                lambda delay: [contents(one, (time[0] - delay, *time[1:])) for one in self.scenario.inputs]
            )
            known = self.meanings[number, time] = Counter(
                {pair: n for pair, n in meaning(self.scenario.programs[number], inputs).items() if n}
            )
        return known
