"""Real workers on a simulated network, in one thread: an arbitrary order of events, and the truth after each.

An event is: a message of one worker reaches another, a worker takes a step, builds the dataflow, or its user sends a
record, moves the input on, or closes it. Workers build at different moments, and messages overtake those of others.

The truth is every capability that some worker holds, every message in some queue or on its way, and the capabilities
that workers will start with once they build. No worker's frontier may be ahead of it:

    for each such (location, time) and each worker: the worker's frontier at the location has an element at or before it

and no message may reach an input whose frontier has passed its time.

Time is virtual: the clock that workers see is the number of events, and while a worker waits by the clock the others go
on. So the seeds decide everything, and `Cluster.trace` is the same whenever they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from random import Random
from unittest.mock import patch

from benchmarks.simulated import SimulatedNetwork
from tests.invariants import check
from tests.simulation.dataflow.programs import FUEL, NUMBERS, Step, as_columns, build
from tests.simulation.trace import Trace, TracedNetwork
from timely import Config, Input, Time, Worker, new_input
from timely.communication.message import Data
from timely.data.container import records
from timely.dataflow.dataflow import Dataflow
from timely.dataflow.ports import InputPort

EPOCHS = 3
Found = list[tuple[Time, tuple[int, int]]]
Task = tuple[int, int, int]


class Site:
    """One worker, its user, and its output."""

    def __init__(
        self,
        network: SimulatedNetwork,
        index: int,
        config: Config,
        program: int,
        tasks: list[Task],
        more: Sequence[Step] = (),
    ) -> None:
        self.worker = Worker(network.allocators[index], config)
        self.dataflow: Dataflow | None = None
        self.found: Found = []
        self.input: Input | None = None
        self._program = program
        self._tasks = tasks
        self._more = more

    def build(self) -> None:
        with self.worker.dataflow() as scope:
            self.input, stream = new_input(scope)
            result = build(scope, stream, Random(self._program), self._more)
            result.inspect_batch(lambda time, batch: self.found.extend((time, each) for each in records(batch)))
            self.probe = result.probe()
        self.dataflow = scope.dataflow

    @property
    def is_open(self) -> bool:
        return self.input is None or not self.input_closed

    @property
    def input_closed(self) -> bool:
        assert self.input is not None
        capability = self.input._capability
        return capability is None or capability.output is None

    def act(self) -> None:
        """Do the user's next thing: build, send, move on, or close."""
        if self.input is None:
            self.build()
        elif not self._tasks:
            self.input.close()
        elif self._tasks[0][0] > self.input.epoch:
            self.input.advance_to(self.input.epoch + 1)
        else:
            _, number, fuel = self._tasks.pop(0)
            self.input.send_batch(as_columns([(number, fuel)]))


class VirtualClock:
    """Shows how many events there have been. At each look of a worker that waits one more happens, elsewhere."""

    def __init__(self, cluster: Cluster, waiting: Site | None = None) -> None:
        self._cluster = cluster
        self._waiting = waiting

    def monotonic(self) -> float:
        if self._waiting is not None:
            self._cluster.happen_beside(self._waiting)
        return 1e-3 * self._cluster.events


class Cluster:
    """Some workers that run the random program of a seed on records of the same seed.

    `more` are steps that the program may take beside the usual ones, for each worker. `workers` share a process.
    """

    def __init__(
        self,
        peers: int,
        mode: str,
        program: int,
        schedule: int,
        more: Sequence[Sequence[Step]] | None = None,
        workers: int = 1,
        accumulation: str = "process",
    ) -> None:
        config = Config(workers=workers, progress=mode, accumulation=accumulation)
        self.trace = Trace()
        self.network = TracedNetwork(peers, schedule, self.trace)
        self.clock = VirtualClock(self)
        rng = Random(program)
        tasks: list[list[Task]] = [[] for _ in range(peers)]
        rows = [(rng.randrange(EPOCHS), rng.randrange(NUMBERS), rng.randint(0, FUEL)) for _ in range(rng.randint(1, 8))]
        deal = Random(schedule)
        for row in sorted(rows):
            deal.choice(tasks).append(row)
        self.sites = [
            Site(self.network, index, config, program, tasks[index], more[index] if more else ())
            for index in range(peers)
        ]
        self.events = 0
        self.checks = 0

    def live(self) -> Iterator[tuple[int, Time]]:
        """Every pointstamp that is really alive."""
        built = [site.dataflow for site in self.sites if site.dataflow is not None]
        for site in self.sites:
            for operator in (site.dataflow or built[0]).operators:
                if operator.inline is not None:
                    continue
                for output in operator.outputs:
                    if site.dataflow is None:
                        if output.initial:
                            yield output.location, operator.scope.minimum
                    else:
                        for capability in output.live:
                            yield output.location, capability.time
                if site.dataflow is not None:
                    for port in operator.inputs:
                        for time, _ in port.queue:
                            yield port.location, time
        for _, channel, time in self.flying():
            yield built[0].channels[channel].location, time

    def flying(self) -> Iterator[tuple[int, int, Time]]:
        """Every message in transit or not yet taken by its worker: receiver, channel, time."""
        waiting = [(receiver, message) for (_, receiver), each in self.network._in_flight.items() for message in each]
        for receiver, site in enumerate(self.sites):
            waiting += [(receiver, message) for _, message in self.network.allocators[receiver].arrived]
            waiting += [(receiver, message) for each in site.worker._intake.early.values() for _, message in each]
        for receiver, message in waiting:
            if isinstance(message, Data):
                yield receiver, message.channel, message.time

    def check(self) -> None:
        """Compare every frontier of every worker with the truth."""
        views = [(index, site.dataflow) for index, site in enumerate(self.sites) if site.dataflow is not None]
        if not views:
            return
        for location, time in set(self.live()):
            for index, view in views:
                self.checks += 1
                frontier = view.tracker.frontier(location)
                assert frontier.less_equal(time), (
                    f"worker {index} is ahead at {view.describe(location)}: {frontier}, {time} is alive"
                )
        for receiver, channel, time in self.flying():
            here = self.sites[receiver].dataflow
            if here is not None and here.channels[channel].interest:
                self._not_passed(receiver, here.channels[channel], time)

    def _not_passed(self, receiver: int, port: InputPort, time: Time) -> None:
        assert port.frontier.less_equal(time), (
            f"{time} is on its way to worker {receiver}, where {port} is at {port.frontier}"
        )

    def run(self, rng: Random) -> None:
        """Let events happen in an order of the generator's until nothing can, then check that all is over."""
        with patch("timely.worker.worker.clock", self.clock), patch("timely.worker.requests.clock", self.clock):
            self.go_on(rng)
        self.check_drained()

    def go_on(self, rng: Random) -> None:
        """Let events happen in an order of the generator's until nothing can."""
        haste = rng.choice([0.2, 0.5, 0.9])  # of the network against the workers
        while self._busy():
            self.events += 1
            assert self.events < 100_000, "the run does not end\n" + self.explain()
            choices = [site for site in self.sites if site.is_open]
            if choices and rng.random() < 0.2:
                site = rng.choice(choices)
                self.trace.add("act", self.sites.index(site))
                site.act()
            elif self.network.pending and rng.random() < haste:
                self.network.deliver_one()
            else:
                site = rng.choice(self.sites)
                self.trace.add("step", self.sites.index(site))
                site.worker.step()
            self.check()

    def check_drained(self) -> None:
        """Check that every worker knows that it is over, and that it is."""
        for site in self.sites:
            assert site.dataflow is not None
            assert site.dataflow.is_complete, f"not all is over\n{self.explain()}"
            assert not site.worker.dataflows
            assert not list(site.dataflow.tracker.pointstamps())
            check(site.dataflow.tracker)
            for output in chain.from_iterable(operator.outputs for operator in site.dataflow.operators):
                check(output)
            assert not site.worker.allocator.last_refusal
        assert not list(self.live())

    def _busy(self) -> bool:
        """Return whether anything can still happen. Where only workers can act, they all do, until none has to."""
        if self.network.pending or any(site.is_open for site in self.sites):
            return True
        if any(allocator.arrived for allocator in self.network.allocators):
            return True
        return any(not site.worker.is_stalled for site in self.sites)

    def happen_beside(self, waiting: Site) -> None:
        """Let something happen while a worker waits."""
        self.events += 1
        if not self.network.deliver_one():
            others = [site for site in self.sites if site is not waiting]
            others[self.events % len(others)].worker.step()

    def explained(self, site: Site) -> str:
        """A worker's explanation of what its result waits for, which includes the answers of the others."""
        assert site.dataflow is not None
        with (
            patch("timely.worker.worker.clock", self.clock),
            patch("timely.worker.requests.clock", self.clock),
            patch("timely.worker.explaining.clock", VirtualClock(self, site)),
        ):
            return site.probe.explain((EPOCHS,))

    def explain(self) -> str:
        return "\n".join(f"worker {index}: {site.worker.explain(patience=0)}" for index, site in enumerate(self.sites))

    @property
    def found(self) -> Found:
        return sorted(each for site in self.sites for each in site.found)


def simulate(
    peers: int, mode: str, program: int, schedule: int, workers: int = 1, accumulation: str = "process"
) -> Cluster:
    """Run a random program under a random schedule to its end; every failure names both seeds."""
    cluster = Cluster(peers, mode, program, schedule, None, workers, accumulation)
    try:
        cluster.run(Random(schedule))
    except AssertionError as failure:
        where = f"{peers} workers, {workers} a process, {mode}, accumulation by {accumulation}"
        raise AssertionError(f"program {program}, schedule {schedule}, {where}: {failure}") from failure
    return cluster
