"""How fast do workers agree that a time is complete? An empty loop of notifications.

    timely run -n 2 examples/barrier.py --rounds 20000 --plot barrier.svg
    timely run -w 2 examples/barrier.py

Each worker moves on to the next time only when no worker can return to the current one, which is what a barrier is. No
record ever travels; the workers exchange only the changes of their counts of capabilities. So the time of a round is
the least latency of anything that waits for a frontier: a round of a loop, or the end of an epoch.
"""

from __future__ import annotations

import argparse
import sys
import time as clock
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from differential.jobs import at_least, counted
from differential.jobs.command_line import add_output, options_from, parser_of
from differential.jobs.outputs import Result, reporting
from differential.jobs.picture import latency_panels
from differential.jobs.report import percentiles
from differential.jobs.status import CheckError, status_of
from timely import Gather, InputPort, OutputPort, Pipeline, Worker, execute, new_input
from timely.data.container import records
from timely.dataflow.notificator import Notificator

EPILOG = """\
The answer has a record (round, microseconds) for each round on worker 0.

examples:
  {program} --rounds 100000
  timely run -n 2 {script} --check --csv rounds.csv    (two processes)
  timely run -w 2 {script} --plot barrier.svg        (two threads)
"""

WITHOUT_CHANGES = "its answer is how long rounds took, and does not change; --csv FILE writes it"

WARM_UP = 200
"""Rounds before the first one that is measured."""


class Barrier:
    """The loop of one worker, and when it was notified of each time."""

    def __init__(self, worker: Worker, rounds: int) -> None:
        self.times: list[int] = []
        """The round of each notification."""
        self.marks: list[int] = []
        """The nanosecond of each notification, by a clock of this process."""

        def logic(input: InputPort, output: OutputPort, notificator: Notificator) -> None:
            for (number,), capability in notificator:
                self.times.append(number)
                self.marks.append(clock.perf_counter_ns())
                if capability is not None and number + 1 < rounds:
                    notificator.notify_at(capability.delayed((number + 1,)))

        with worker.dataflow("barrier") as scope:
            handle, again = scope.feedback()
            again.unary_notify(Pipeline(), logic, init=[0], name="barrier").connect_loop(handle)

    def microseconds(self) -> NDArray[np.float64]:
        """Return the time of each round after the first ones, which load code."""
        return np.diff(self.marks)[WARM_UP - 1 :] / 1000


def program(worker: Worker, rounds: int, shown: Callable[[int], None] = lambda _: None) -> Barrier:
    """Return the loop at its end, after `rounds` rounds and `WARM_UP` before; `shown` is called with their number."""
    barrier = Barrier(worker, rounds + WARM_UP)
    while worker.step_or_park():
        shown(len(barrier.times))
    return barrier


def agreed(worker: Worker, barrier: Barrier, rounds: int) -> list[tuple[int, int]]:
    """Return, on worker 0, (worker, notifications in order) of all workers, which a dataflow of its own gathers."""
    expected = list(range(rounds + WARM_UP))
    in_order = len(expected) if barrier.times == expected else -1
    found: list[tuple[int, int]] = []

    def keep(input: InputPort) -> None:
        for _, batch in input:
            found.extend(records(batch))

    with worker.dataflow("agreement") as scope:
        session, counts = new_input(scope, name="counts")
        counts.sink(Gather(0), keep)
    session.send(worker.index, in_order)
    session.close()
    while worker.step_or_park():
        pass
    return sorted(found)


def run(worker: Worker, options: argparse.Namespace) -> None:
    """Run the loop on one worker; worker 0 prints and writes the answer."""
    is_first = worker.index == 0
    with reporting("barrier", worker, options) as (outputs, display):
        display.begin("notifying", options.rounds + WARM_UP)
        barrier = program(worker, options.rounds, lambda number: display.advance(number, number, "rounds"))
        counts = agreed(worker, barrier, options.rounds) if options.check else []
        if is_first:
            expected = [(index, options.rounds + WARM_UP) for index in range(worker.peers)]
            if options.check and counts != expected:
                raise CheckError(f"notifications in order, by worker, are {counts}; there should be {expected}")
            outputs.finish(result(barrier.microseconds(), worker.peers))


def result(microseconds: NDArray[np.float64], workers: int) -> Result:
    """Return what is printed, written and drawn."""
    latency = percentiles(microseconds)
    rate = 1e6 * len(microseconds) / microseconds.sum()
    lines = [
        f"{counted(len(microseconds), 'round')} of {counted(workers, 'worker')}: {rate:,.0f} a second",
        f"a round: {', '.join(f'{name} {value:.1f}' for name, value in latency.items())} µs",
    ]
    figures: dict[str, Any] = {"workers": workers, "rounds": len(microseconds)}
    figures["latency_us"] = {name: round(value, 3) for name, value in latency.items()}
    rows = enumerate(microseconds.tolist(), start=1)
    title = f"Notifications of {counted(workers, 'worker')}"
    panels = latency_panels(microseconds / 1000, "round")
    return Result(lines, figures, ("round", "microseconds"), list(rows), title, panels)


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = parser_of(str(__doc__), EPILOG)
    add = parser.add_argument
    add("--rounds", type=at_least(1), default=10_000, metavar="N", help="rounds to measure (default 10,000)")
    add("--check", action="store_true", help="check that each worker is notified of each time once, in order")
    plot = "draw the time of each round, and their distribution (.svg, .png, .pdf)"
    add_output(parser, without={"--changes": WITHOUT_CHANGES}, csv="write the time of each round to FILE", plot=plot)
    return options_from(parser, arguments)


def main() -> int:
    """Run the program with the options of the command line; return the exit status."""
    options = options_of()
    return status_of("barrier", lambda: execute(lambda worker: run(worker, options)))


if __name__ == "__main__":
    sys.exit(main())
