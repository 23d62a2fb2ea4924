"""Install and drop dataflows while others run, by commands from any worker.

    timely run -n 2 examples/commands.py
    timely run -n 2 examples/commands.py "0 install thirds 3" "1 feed 30" "1 drop thirds" "0 feed 30"

Each argument is the number of a worker, modulo the number of workers, and its command. `install NAME K` counts the
multiples of K among the numbers fed from then on. `feed N` feeds the numbers below N, a share on each worker, to the
installed dataflows. `drop NAME` drops a dataflow. A sequencer delivers all commands to all workers in one order, so all
workers build the same dataflows. To make the output reproducible, a worker here issues a command only after it has
received all commands before it.
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
    """An installed dataflow, with its input and its probe."""

    dataflow: int
    numbers: Input
    probe: Probe


def install(worker: Worker, name: str, factor: int) -> Query:
    """Build a dataflow that prints the number of multiples of `factor` on all workers, for each epoch."""
    with worker.dataflow(name) as scope:
        numbers, stream = new_input(scope, name=name)
        counts = stream.filter(lambda number: number % factor == 0).count()
        total = counts.exchange(lambda _: 0).accumulate(0, lambda so_far, count: so_far + int(np.sum(count)))
        probe = total.inspect(lambda count: print(f"{name}: {count} multiples of {factor}", flush=True)).probe()
    return Query(scope.dataflow.index, numbers, probe)


def feed(worker: Worker, queries: dict[str, Query], size: int) -> None:
    """Feed this worker's share of the numbers below `size` to all queries, and wait for the answers."""
    for query in queries.values():
        query.numbers.send(np.arange(worker.index, size, worker.peers))
        query.numbers.advance_to(query.numbers.epoch + 1)
    worker.step_while(lambda: any(query.probe.less_than(query.numbers.time) for query in queries.values()))


def program(worker: Worker, script: list[str]) -> list[str]:
    """Issue this worker's commands, and run those of all workers. Return the commands in the order received."""
    commands, queries = Sequencer(worker), dict[str, Query]()
    seen: list[str] = []
    while len(seen) < len(script):
        issuer, _, command = script[len(seen)].partition(" ")
        if int(issuer) % worker.peers == worker.index:
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
                    raise ValueError(
                        f"{command!r} cannot run: installed are {', '.join(sorted(queries)) or 'no dataflows'}"
                    )
    return seen


def checked(line: str) -> str:
    """Return the argument if it is a worker and a command; raise `ArgumentTypeError` otherwise."""
    if re.fullmatch(r"\d+ (install \S+ 0*[1-9]\d*|feed \d+|drop \S+)", line):
        return line
    raise argparse.ArgumentTypeError(
        f"{line!r} is not one of 'WORKER install NAME K', 'WORKER feed N', 'WORKER drop NAME'"
    )


def main() -> None:
    """Run the commands of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "script", nargs="*", type=checked, default=SCRIPT, metavar="COMMAND", help=f"default: {shlex.join(SCRIPT)}"
    )
    options = parser.parse_args()
    execute(lambda worker: program(worker, options.script))


if __name__ == "__main__":
    main()
