"""A scenario under way: workers in one thread, a network of arbitrary delays, and everything that happens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import reduce
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from differential import Collection, Output, Trace, new_input, new_upsert_input
from tests.oracle.grid import Multiset, Update, contents, grid
from tests.oracle.programs import SIZE, Contents, Pairs, Program, build, meaning
from timely import Config, Worker
from timely.communication.simulated import SimulatedNetwork
from timely.config import ACCUMULATIONS, PROGRESS_MODES
from timely.order import Time, less_equal, meet
from timely.progress.antichain import Antichain

if TYPE_CHECKING:
    from tests.oracle.scenario import Scenario

INPUTS = 2
"""So many inputs are said by updates; one after them by statements of which value a key has; one is constant."""

CONSTANT = (0, 1, 2, 0), (1, 2, 0, 1)
"""Its columns."""

STEPS = 60_000
SPILL_ABOVE = 100
QUEUE_BYTES = 1 << 16
"""Room for so few messages of as many bytes as they are said to have that operators have to wait."""


class Part:
    """A dataflow on one worker. Where there is a trace, the input is imported as of a time, and has no session."""

    def __init__(
        self,
        worker: Worker,
        programs: Sequence[Program],
        outer: int,
        traces: Sequence[Trace | None] = (None,) * (INPUTS + 1),
        since: Time | None = None,
    ) -> None:
        self.worker = worker
        self.sessions: list[Any] = []
        self.traces: list[Trace] = []
        collections = []
        with worker.dataflow(outer=outer) as scope:
            for number, trace in enumerate(traces):
                if trace is None:
                    made: Any = new_upsert_input(scope) if number == INPUTS and outer == 1 else new_input(scope)
                    session, collection = made
                    self.traces.append(collection.arrange_by_key().trace())
                else:
                    session, collection = None, trace.import_into(scope, since=since).as_collection()
                self.sessions.append(session)
                collections.append(collection)
            collections.append(Collection.of(scope, *map(np.array, CONSTANT)))
            self.outputs: list[Output] = [build(program, collections).output() for program in programs]
        self.dataflow = scope.dataflow

    def close(self) -> None:
        """Say nothing any more."""
        for session in self.sessions:
            if session is not None:
                session.close()


class Watched:
    """What a program has said, to be compared from some time on."""

    def __init__(self, number: int, output: Output, since: Time | None = None) -> None:
        self.number = number
        self.since = since
        self._output = output
        self._said: list[Update] = []

    def said(self) -> list[Update]:
        """Return all that was said so far."""
        self._said += self._output.changes()
        return self._said

    def is_final(self, time: Time) -> bool:
        """Return whether what was said can be compared at a time."""
        is_late = self.since is None or less_equal(self.since, time)
        return is_late and not self._output._input.frontier.less_equal(time)


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
            spill_above=self.random.choice((None, SPILL_ABOVE)) if scenario.tiny else None,
        )
        self.workers = [Worker(allocator, config) for allocator in self.network.allocators]
        self.hosts = [Part(worker, scenario.programs, scenario.outer) for worker in self.workers]
        self.guests: list[Part] = []
        self.updates = scenario.everything()
        self.grid = grid([(record, time, diff) for time, _, record, diff in self.updates])
        self.watched = [Watched(number, output) for number, output in enumerate(self.hosts[0].outputs)]
        self.meanings: dict[tuple[int, Time], Pairs] = {}

    def to_the_end(self) -> None:
        """Let everything happen, and compare."""
        updates = self.updates
        visits = self.random.sample(range(len(updates) + 1), k=min(self.random.choice((1, 1, 2)), len(updates)))
        for position, update in enumerate(updates):
            if self.scenario.guest and position in visits:
                self._visit()
            self._advance(reduce(meet, (time for time, *_ in updates[position:])))
            self._put(self.hosts, update)
            self._steps(self.random.choice((0, 0, 3, 30)))
            if self.random.random() < 0.2:
                self._look()
        for part in self.hosts:
            part.close()
        self._finish()
        self._look()

    def _advance(self, least: Time) -> None:
        """Move all sessions on as far as the updates to come permit, and let readers let go of some times."""
        for part in self.hosts:
            for session in part.sessions:
                session.advance_to(least)
            for trace in part.traces:
                if trace.is_dropped:
                    continue
                if self.random.random() < 0.3:
                    possible = [time for time in [*self.grid, least] if trace.logical.less_equal(time)]
                    trace.set_logical_compaction(Antichain(self.random.choices(possible, k=2)))
                if self.random.random() < 0.3 and trace.physical.dominates(trace.upper):
                    trace.set_physical_compaction(trace.upper)

    def _put(self, parts: Sequence[Part], update: tuple[Time, int, Any, int]) -> None:
        time, number, record, diff = update
        if parts[0].sessions[number] is None:
            return
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
        """Build a second dataflow, of inputs imported and of inputs of its own; or drop it, one worker after the other.

        It runs the last program. Its own inputs get all updates at once; what it imports is right from the time on as
        of which it imports, but nothing is as it was before.
        """
        if self.guests:
            self.watched.pop()
            for part in self.guests:
                part.worker.drop_dataflow(part.dataflow)
                self._steps(self.random.choice((0, 3)))
            self.guests.clear()
            return
        program = self.scenario.programs[-1]
        imported: list[int] = []
        since = self._common_time()
        if since is not None and "delay" not in str(program):
            imported = [number for number in range(INPUTS + 1) if self.random.random() < 0.6]
        for host in self.hosts:
            traces = [trace if number in imported else None for number, trace in enumerate(host.traces)]
            guest = Part(host.worker, [program], self.scenario.outer, traces, since)
            for trace in guest.traces:
                trace.drop()
            self.guests.append(guest)
            self._steps(self.random.choice((0, 3)))
        number = len(self.scenario.programs) - 1
        self.watched.append(Watched(number, self.guests[0].outputs[0], since if imported else None))
        for number in imported:
            if self.random.random() < 0.3:
                for host in self.hosts:
                    host.traces[number].drop()
        for update in self.updates:
            self._put(self.guests, update)
        for guest in self.guests:
            guest.close()

    def _common_time(self) -> Time | None:
        """Return some time that all traces can be read at, or will be."""
        traces = [trace for host in self.hosts for trace in host.traces]
        if any(trace.is_dropped for trace in traces):
            return None
        possible = [time for time in self.grid if all(trace.logical.less_equal(time) for trace in traces)]
        return min(self.random.choices(possible, k=2)) if possible else None

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
        for watched in self.watched:
            said = watched.said()
            for time in self.grid:
                if watched.is_final(time):
                    self._compare(watched.number, said, time)
        for number in range(INPUTS + 1):
            traces = [part.traces[number] for part in self.hosts]
            if not traces[0].is_dropped:
                self._look_into(traces, number)

    def _look_into(self, traces: Sequence[Trace], number: int) -> None:
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
                    self.scenario.contents(number, (time[0] - delay, *time[1:])) for number in range(INPUTS + 2)
                ]
            )
            known = self.meanings[number, time] = Counter(
                {pair: n for pair, n in meaning(self.scenario.programs[number], inputs).items() if n}
            )
        return known
