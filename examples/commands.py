"""Install and drop dataflows while others run, by commands that any worker may give.

    timely run -n 2 examples/commands.py
    timely run -n 2 examples/commands.py "0 install thirds 3" "1 feed 30" "1 drop thirds" "0 feed 30"

Each argument is a worker, by its number modulo how many there are, and what it commands: `install NAME K` counts the
multiples of K among the numbers fed from then on, `feed N` feeds the numbers below N, a share on each worker, to what
is installed, and `drop NAME` drops a dataflow. A sequencer gives all commands to all workers in one order, so that all
build the same. Here, for the same output each time, a worker gives a command when it has seen all commands before it.
"""

from __future__ import annotations

import argparse
import re
import shlex
from typing import NamedTuple

import numpy as np

from timely import Input, Probe, Sequencer, Worker, execute, new_input

SCRIPT = [
    "0 install evens 2",
    "1 feed 10",
    "1 install thirds 3",
    "0 feed 100",
    "1 drop evens",
    "0 feed 1000",
]


class Query(NamedTuple):
    """A dataflow that was installed, and how to feed it."""

    dataflow: int
    numbers: Input
    probe: Probe


def install(worker: Worker, name: str, factor: int) -> Query:
    """Build a dataflow that prints, for each epoch, how many multiples of `factor` there were on all workers."""
    with worker.dataflow(name) as scope:
        numbers, stream = new_input(scope, name=name)
        counts = stream.filter(lambda number: number % factor == 0).count()
        total = counts.exchange(lambda _: 0).accumulate(0, lambda so_far, count: so_far + int(np.sum(count)))
        probe = total.inspect(lambda count: print(f"{name}: {count} multiples of {factor}", flush=True)).probe()
    return Query(scope.dataflow.index, numbers, probe)


def feed(worker: Worker, queries: dict[str, Query], size: int) -> None:
    """Feed this worker's share of the numbers below `size` to all queries, and wait until they have answered."""
    for query in queries.values():
        query.numbers.send(np.arange(worker.index, size, worker.peers))
        query.numbers.advance_to(query.numbers.epoch + 1)
    worker.step_while(lambda: any(query.probe.less_than(query.numbers.time) for query in queries.values()))


def program(worker: Worker, script: list[str]) -> list[str]:
    """Give this worker's commands, and do what all workers' commands say. Return them as they were seen."""
    commands, queries = Sequencer(worker), dict[str, Query]()
    seen: list[str] = []
    while len(seen) < len(script):
        giver, _, command = script[len(seen)].partition(" ")
        if int(giver) % worker.peers == worker.index:
            commands.push(command)
        worker.step_while(lambda: not commands.has_arrived)
        for command in commands:
            seen.append(command)
            match command.split():
                case ["install", name, factor] if name not in queries:
                    queries[name] = install(worker, name, int(factor))
                case ["feed", size]:
                    feed(worker, queries, int(size))
                case ["drop", name] if name in queries:
                    worker.drop_dataflow(queries.pop(name).dataflow)
                case _:
                    raise ValueError(f"{command!r} cannot be done where {sorted(queries) or 'nothing'} is installed")
    return seen


def checked(line: str) -> str:
    """Return a worker and its command as they are, or raise what a command line reports."""
    if re.fullmatch(r"\d+ (install \S+ 0*[1-9]\d*|feed \d+|drop \S+)", line):
        return line
    raise argparse.ArgumentTypeError(
        f"{line!r} is none of 'WORKER install NAME K', 'WORKER feed N', 'WORKER drop NAME'"
    )


def main() -> None:
    """Run the commands that are given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "script", nargs="*", type=checked, default=SCRIPT, metavar="COMMAND", help=f"default: {shlex.join(SCRIPT)}"
    )
    options = parser.parse_args()
    execute(lambda worker: program(worker, options.script))


if __name__ == "__main__":
    main()
