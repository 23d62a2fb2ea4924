"""Random programs, one after the other, for a number of events; everything is checked after each event.

There are two simulations: `tokens` (the progress protocol alone, over random graphs with up to three nested loops) and
`workers` (whole workers that run random dataflows). Programs have 2 to 8 workers, in either progress mode, in one or
several processes, with every way to accumulate progress.
"""

from __future__ import annotations

import time as clock
from dataclasses import dataclass, field
from random import Random

from tests.simulation.dataflow import model as workers
from tests.simulation.protocol import model as tokens
from tests.simulation.protocol.test_random_programs import random_graph
from tests.simulation.trace import Trace
from timely.config import ACCUMULATIONS, PROGRESS_MODES
from timely.progress.accumulation import Route

SIMULATIONS = ("tokens", "workers")
FEWEST, MOST = 2, 8


@dataclass
class LongRun:
    """The result: the digest is of all events of all programs."""

    events: int = 0
    programs: int = 0
    checks: int = 0
    seconds: float = 0.0
    trace: Trace = field(default_factory=Trace)

    @property
    def digest(self) -> str:
        return self.trace.digest

    def __str__(self) -> str:
        return (
            f"{self.events:,} events in {self.programs:,} programs of {FEWEST} to {MOST} workers, "
            f"{self.checks:,} comparisons with the truth, {self.seconds:.1f} s, digest {self.digest}"
        )


def long_run(simulation: str, steps: int, seed: int) -> LongRun:
    """Simulate programs from a seed on until `steps` events have happened in all; every program runs to its end."""
    run, begun = LongRun(), clock.perf_counter()
    while run.events < steps:
        number = seed * 1_000_000 + run.programs
        peers = FEWEST + number % (MOST - FEWEST + 1)
        rng = Random(number)
        mode, accumulation = rng.choice(PROGRESS_MODES), rng.choice(ACCUMULATIONS)
        processes = rng.choice([count for count in range(1, peers + 1) if peers % count == 0])
        if simulation == "tokens":
            routes = [Route.of(worker, processes, peers // processes, accumulation) for worker in range(peers)]
            ended = tokens.run(random_graph(number), peers, mode, number, routes)
            run.events += ended.steps
            run.checks += ended.checks
            run.trace.add(number, ended.trace.digest)
        else:
            cluster = workers.simulate(peers, mode, number, number, peers // processes, accumulation)
            run.events += cluster.events
            run.checks += cluster.checks
            run.trace.add(number, cluster.trace.digest)
        run.programs += 1
    run.seconds = clock.perf_counter() - begun
    return run
