"""A scenario under way: workers in one thread, a network of arbitrary delays, and everything that happens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import reduce
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.simulated import SimulatedNetwork
from tests.invariants import check
from tests.oracle.grid import Multiset, Update, contents
from tests.oracle.part import INPUTS, Installed, Part, Watched, driven, imported, read_back
from tests.oracle.post import Post
from tests.oracle.programs import LOOPS, SIZE, Contents, Pairs, Program, meaning
from timely import Config, Worker
from timely.config import ACCUMULATIONS, PROGRESS_MODES
from timely.dataflow.explain import rounds
from timely.order import Time, meet
from timely.progress.antichain import Antichain

if TYPE_CHECKING:
    from tests.oracle.scenario import Scenario

STEPS = 3_000_000
"""More than any program takes to complete: of tens of thousands, one with loops in a loop on four workers, of which
each message carries one row, took 692,513."""
MOST_GUESTS = 3
STEPS_TO_A_LOOP = 60
SPILL_ABOVE = 100
QUEUE_BYTES = 1 << 16
"""Room for so few messages, of their nominal bytes, that operators have to wait."""


class Run:
    """A scenario under way; `happened` counts what has happened."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.random = Random(scenario.seed)
        self.happened: Counter[str] = Counter()
        self.network, self.workers = self._cluster(scenario.workers)
        self.grid = scenario.times()
        self.updates = scenario.everything()
        self.to_come = list(self.updates)
        self.least: Time | None = None
        """The time of the hosts' sessions."""
        posts = INPUTS + 2 if scenario.readers else 0
        self.posts = [Post(scenario.workers, self.random, self.happened) for _ in range(posts)]
        self.hosts: Installed | None = self._hosts()
        self.installed = [self.hosts]
        self.watched: list[tuple[Watched, Installed]] = [(each, self.hosts) for each in self.hosts.watched]
        if scenario.readers:
            self._read(scenario.readers)
        self.meanings: dict[Any, Pairs] = {}

    def _cluster(self, size: int) -> tuple[SimulatedNetwork, list[Worker]]:
        network = SimulatedNetwork(size, self.scenario.seed)
        config = Config(
            workers=self.random.choice([threads for threads in (1, 2, 3, 4) if size % threads == 0]),
            progress=self.random.choice(PROGRESS_MODES),
            accumulation=self.random.choice(ACCUMULATIONS),
            queue_bytes=QUEUE_BYTES,
            general=self.scenario.seed % 5 < 2,
            spill_above=self.random.choice((None, SPILL_ABOVE)) if self.scenario.tiny else None,
        )
        return network, [Worker(allocator, config) for allocator in network.allocators]

    def _hosts(self) -> Installed:
        """Build the dataflow that runs all programs."""
        scenario = self.scenario
        sources = [driven(number, scenario.outer) for number in range(INPUTS + 1)]
        parts = [
            Part(worker, scenario.programs, scenario.outer, sources, [post.written[index] for post in self.posts])
            for index, worker in enumerate(self.workers)
        ]
        hosts = Installed(parts, [Watched(number, output) for number, output in enumerate(parts[0].outputs)])
        hosts.live = set(range(INPUTS + 1))
        return hosts

    def _read(self, readers: int) -> None:
        """On another cluster, build the last program over the inputs as they are read back from the first cluster."""
        self.happened["read by fewer" if readers < len(self.workers) else "read by as many or more"] += 1
        scenario = self.scenario
        self.readers_network, self.readers = self._cluster(readers)
        programs = [scenario.programs[-1], ("input", INPUTS + 2)]
        sources = [read_back(post.read) for post in self.posts]
        parts = [Part(worker, programs, scenario.outer, sources) for worker in self.readers]
        for part in parts:
            part.drop_traces()
        numbers = len(scenario.programs) - 1, 0
        watched = [Watched(number, output) for number, output in zip(numbers, parts[0].outputs)]
        self.watched += [(each, Installed(parts, watched)) for each in watched]

    def to_the_end(self) -> None:
        """Let everything happen, and compare the output with the meaning."""
        updates = self.updates
        visits = self.random.sample(range(len(updates) + 1), k=min(self.random.choice((2, 3, 4)), len(updates)))
        for position, update in enumerate(updates):
            self.to_come = updates[position:]
            if self.scenario.guest and position in visits:
                self._visit()
            self._advance(reduce(meet, (time for time, *_ in self.to_come)))
            if self.hosts is not None:
                self._put(self.hosts.parts, update)
            self._steps(self.random.choice((0, 0, 3, 30)))
            if self.random.random() < 0.2:
                self._look()
        if self.hosts is not None:
            for part in self.hosts.parts:
                part.close()
        self._finish()
        self._look()

    def _advance(self, least: Time) -> None:
        """Advance all sessions as far as the updates to come permit, and let readers release some times."""
        self.least = least
        if self.hosts is not None:
            for part in self.hosts.parts:
                for session in part.sessions:
                    session.advance_to(least)
        for installed in self.installed:
            for part in installed.parts:
                for trace in part.traces:
                    if not trace.is_dropped:
                        self._compact(trace, least)

    def _compact(self, trace: Any, least: Time) -> None:
        if self.random.random() < 0.3:
            self.happened["logical compaction"] += 1
            possible = [time for time in [*self.grid, least] if trace.logical.less_equal(time)]
            if possible:
                trace.set_logical_compaction(Antichain(self.random.choices(possible, k=2)))
        if self.random.random() < 0.3 and trace.physical.dominates(trace.upper):
            self.happened["physical compaction"] += 1
            trace.set_physical_compaction(trace.upper)
        if (
            self.random.random() < 0.1
            and trace.physical.dominates(trace.upper)
            and trace.logical.dominates(trace.upper)
        ):
            self.happened["compaction of both"] += 1
            trace.allow_compaction_to(trace.upper)

    def _put(self, parts: Sequence[Part], update: tuple[Time, int, Any, int]) -> None:
        time, number, record, diff = update
        if parts[0].sessions[number] is None:
            return
        if number == INPUTS:
            # Upserts by several workers in one epoch have another order than `upserts`: one worker makes all of them.
            session = parts[time[0] % len(parts)].sessions[number]
            session.advance_to(time)
            key, value = record
            self.happened["unset" if value is None else "set"] += 1
            if value is None:
                session.unset(key)
            else:
                session.set(key, value)
        else:
            session = self.random.choice(parts).sessions[number]
            if session.time == time and self.random.random() < 0.5:
                if diff == 1:
                    session.insert(*record)
                elif diff == -1:
                    session.remove(*record)
                else:
                    session.update(*record, diff=diff)
                self.happened[{1: "insert", -1: "remove"}.get(diff, "change by more")] += 1
            else:
                self.happened["change ahead of time"] += session.time != time
                session.update_at(*record, time=time, diff=diff)
        if self.random.random() < 0.3:
            session.flush()

    def _visit(self) -> None:
        """Build a dataflow, or drop one, one worker after the other."""
        guests = [installed for installed in self.installed if installed is not self.hosts]
        if len(guests) == MOST_GUESTS or (guests and self.random.random() < 0.6):
            droppable = guests if self.posts else self.installed
            exporters = [origin for guest in guests for origin in guest.origins.values() if origin in droppable]
            self._drop(self.random.choice(exporters if exporters and self.random.random() < 0.8 else guests))
            if self.random.random() < 0.7:
                self._install(self._draw_number())
            return
        number = self._draw_number()
        guest = self._install(number)
        if self.random.random() < (0.6 if _has_loops(self.scenario.programs[number]) else 0.1):
            for _ in range(STEPS_TO_A_LOOP):
                if not _is_in_a_loop(guest):
                    self._step()
            self._drop(guest)
        elif len(guests) + 1 < MOST_GUESTS and self.random.random() < 0.25:
            self._install(self._draw_number())

    def _draw_number(self) -> int:
        """Return the number of a program, if possible of one that does not read earlier contents."""
        programs = self.scenario.programs
        possible = [number for number, program in enumerate(programs) if "delay" not in str(program)]
        return self.random.choice(possible or range(len(programs)))

    def _install(self, program: int) -> Installed:
        """Build a dataflow over inputs of its own and inputs imported from the hosts or from another guest.

        Its own inputs receive all updates at once. An imported input is right from the time on as of which it is
        imported, not before.
        """
        scenario = self.scenario
        ended = [each for each in self.installed if each.ended]
        exporter = self.random.choice([None, *self.installed, *self.installed[-1:] * 4, *ended * 6])
        since = None if exporter is None else self._common_time(exporter)
        origins: dict[int, Installed] = {}
        if exporter is not None and since is not None and "delay" not in str(scenario.programs[program]):
            origins = {n: exporter for n in range(INPUTS + 1) if exporter.exports(n) and self.random.random() < 0.7}
        parts = []
        for index, worker in enumerate(self.workers):
            sources = [
                imported(origins[number].parts[index].traces[number], since)
                if number in origins and since is not None
                else driven(number, scenario.outer)
                for number in range(INPUTS + 1)
            ]
            parts.append(Part(worker, [scenario.programs[program]], scenario.outer, sources))
            self._steps(self.random.choice((0, 3)))
        watched = Watched(program, parts[0].outputs[0], since if origins else None)
        guest = Installed(parts, [watched], origins, since)
        self._count_import(guest)
        self.installed.append(guest)
        self.watched.append((watched, guest))
        for installed, share in ((exporter, 0.2), (guest, 0.2)):
            for number in range(INPUTS + 1):
                if installed is not None and installed.exports(number) and self.random.random() < share:
                    for trace in installed.traces(number):
                        trace.drop()
        for update in self.updates:
            self._put(parts, update)
        for part in parts:
            part.close()
        return guest

    def _count_import(self, guest: Installed) -> None:
        """Count what kind of guest this is."""
        if not guest.origins:
            self.happened["guest of its own inputs"] += 1
        for number, origin in guest.origins.items():
            changes = number in guest.live and any(number == other for _, other, *_ in self.to_come)
            kind = "import of an import" if number in origin.origins else "import"
            self.happened[kind] += 1
            self.happened[f"{kind}, then changes"] += changes
            self.happened["import of what has ended"] += number in origin.ended

    def _drop(self, dropped: Installed) -> None:
        """Drop a dataflow, one worker after the other; those that import from it keep what it has sealed."""
        importers = [other for other in self.installed if dropped in other.origins.values()]
        if importers:
            self._seal(dropped)
        self.happened["drop of the hosts" if dropped is self.hosts else "drop of a guest"] += 1
        self.happened["drop in the middle of a loop"] += _is_in_a_loop(dropped)
        self.happened["drop of an exporter"] += bool(importers)
        self.watched = [(watched, installed) for watched, installed in self.watched if installed is not dropped]
        self.installed.remove(dropped)
        if dropped is self.hosts:
            self.hosts = None
        traces_first = self.random.random() < 0.5
        for part in dropped.parts:
            if traces_first:
                part.drop_traces()
            part.worker.drop_dataflow(part.dataflow)
            part.drop_traces()
            self._steps(self.random.choice((0, 3)))
        for number in dropped.live:
            self._end(number, dropped)

    def _end(self, number: int, origin: Installed) -> None:
        """Note that everything imported from a dataflow, directly or not, no longer changes."""
        for other in self.installed:
            if other.origins.get(number) is origin:
                assert self.least is not None
                changes = any(number == each for _, each, *_ in self.to_come)
                self.happened["drop of an exporter before changes"] += changes
                other.live.discard(number)
                other.ended[number] = self.least
                self._end(number, other)

    def _seal(self, installed: Installed) -> None:
        """Step until all workers have sealed the inputs of a dataflow as far as they can be."""
        for _ in range(STEPS):
            if all(
                trace.upper == (self._present if number in installed.live else Antichain())
                for part in installed.parts
                for number, trace in enumerate(part.traces)
            ):
                return
            self._step()
        raise AssertionError("\n".join(worker.explain() for worker in self.workers))

    @property
    def _present(self) -> Antichain:
        return Antichain([(0,) * self.scenario.outer if self.least is None else self.least])

    def _common_time(self, exporter: Installed) -> Time | None:
        """Return some time at which all traces of a dataflow can be read, now or later."""
        traces = [t for number in range(INPUTS + 1) if exporter.exports(number) for t in exporter.traces(number)]
        possible = [time for time in self.grid if all(trace.logical.less_equal(time) for trace in traces)]
        return min(self.random.choices(possible, k=2)) if possible else None

    def _step(self) -> None:
        if self.posts and self.random.random() < 0.3:
            self.random.choice(self.posts).carry()
            _move(self.readers_network, self.readers, self.random)
        _move(self.network, self.workers, self.random)

    def _steps(self, number: int) -> None:
        for _ in range(number):
            self._step()

    def _finish(self) -> None:
        workers = [*self.workers, *self.readers] if self.posts else self.workers
        for _ in range(STEPS):
            if not any(worker.dataflows for worker in workers):
                assert all(part.probe.done() for installed in self.installed for part in installed.parts)
                return
            self._step()
        raise AssertionError("\n".join(worker.explain() for worker in workers))

    def _look(self) -> None:
        """Compare the final output with the meaning."""
        for watched, installed in self.watched:
            updates = watched.changes()
            for time in self.grid:
                if watched.is_final(time):
                    self._compare(watched.number, installed, updates, time)
        for installed in self.installed:
            for number in range(INPUTS + 1):
                if installed.exports(number):
                    self._look_into(installed, number)

    def _look_into(self, installed: Installed, number: int) -> None:
        traces = installed.traces(number)
        for trace in traces:
            check(trace._handle.spine)
            assert trace.statistics().rows == sum(map(len, trace.batches()))
        for time in self.grid:
            if all(trace.logical.less_equal(time) and not trace.upper.less_equal(time) for trace in traces):
                self.happened["contents read"] += 1
                found: Multiset = Counter()
                for trace in traces:
                    found.update(trace.contents(time).records())
                right = installed.contents(self.scenario, number, time)
                assert found == right, f"input {number} is held wrongly at {time}: {found}, not {right}"
                self._look_up(traces, time, found)

    def _look_up(self, traces: Sequence[Any], time: Time, held: Multiset) -> None:
        """Look some keys up, in a random order, and all that are less than one of them."""
        keys = self.random.sample(range(SIZE + 1), k=2)
        found: Multiset = Counter()
        for trace in traces:
            place, values, counts = trace.cursor(time)[keys]
            for at, *value, count in zip(place.tolist(), *(column.tolist() for column in values), counts.tolist()):
                found[keys[at], *value] += count
        right = {record: count for record, count in held.items() if record[0] in keys}
        assert found == right, f"keys {keys} of an input have {found} at {time}, not {right}"
        less: Multiset = Counter()
        for trace in traces:
            less.update(trace.cursor(time).below(keys[0]).records())
        right = {record: count for record, count in held.items() if record[0] < keys[0]}
        assert less == right, f"keys below {keys[0]} of an input have {less} at {time}, not {right}"
        asked = [*held, *[(keys[0], *record[1:]) for record in held]]
        if asked:
            columns = tuple(np.array(column) for column in zip(*asked))
            counted = sum(trace.cursor(time).counts(columns) for trace in traces)
            assert counted.tolist() == [held[record] for record in asked]

    def _compare(self, number: int, installed: Installed, updates: Sequence[Update], time: Time) -> None:
        found, right = contents(updates, time), self._meaning(number, installed, time)
        assert found == right, (
            f"program {number} at {time}\n  has emitted {dict(found)}\n  but means {dict(right)}\n  "
            f"where the inputs hold {[dict(each) for each in self._inputs(installed, time)]}"
        )

    def _inputs(self, installed: Installed, time: Time) -> list[Multiset]:
        return [installed.contents(self.scenario, number, time) for number in range(INPUTS + 2)]

    def _meaning(self, number: int, installed: Installed, time: Time) -> Pairs:
        what = number, time, tuple(sorted(installed.ended.items()))
        known = self.meanings.get(what)
        if known is None:
            inputs = Contents(lambda delay: self._inputs(installed, (time[0] - delay, *time[1:])))
            known = self.meanings[what] = Counter(
                {pair: n for pair, n in meaning(self.scenario.programs[number], inputs).items() if n}
            )
        return known


def _has_loops(program: Program) -> bool:
    return any(name in str(program) for name in LOOPS)


def _is_in_a_loop(installed: Installed) -> bool:
    """Return whether some worker holds a pointstamp in a round of a loop after the first."""
    return any(time[-1] > 0 for part in installed.parts for time in rounds(part.dataflow).values())


def _move(network: SimulatedNetwork, workers: Sequence[Worker], random: Random) -> None:
    """Deliver a message, or let a worker step."""
    if network.pending and random.random() < 0.6:
        network.deliver_one()
    else:
        random.choice(workers).step()
