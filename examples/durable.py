"""Keep answers about a changing graph on disk, and go on after a crash.

    timely run --state upgrade.state --restart 10 -n 2 examples/durable.py

The program replays the upgrade of a Linux distribution (`examples/upgrade.py`). The dependencies are durable, and so
are two answers: the number of dependency cycles of each size, and the number of packages with each number of
dependants. Kill any process, at any time: all processes are started again, and go on with the first step that is not
durable. Run the program once more with another `-n`, or with more `--steps`: it goes on from there. Other programs read
the answers, now and as they were:

    timely state upgrade.state
    python examples/durable.py --read upgrade.state --as-of 100
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import debian
from debian import Upgrade

from differential import Collection
from differential.durable import Directory, Shard, State, durable_input, persist
from differential.graphs import strongly_connected_components
from differential.jobs import at_least
from timely import Worker, execute, fail
from timely.errors import DataError, StateError


def cycles(edges: Collection) -> Collection:
    """Return (size, number of dependency cycles of that size)."""
    sizes = strongly_connected_components(edges).map(lambda package, label: label).count()
    return sizes.map(lambda label, size: size).count()


def dependants(edges: Collection) -> Collection:
    """Return (number of dependants, number of packages with so many)."""
    degrees = edges.map(lambda package, needed: needed).count()
    return degrees.map(lambda needed, count: count).count()


def program(worker: Worker, upgrade: Upgrade, options: argparse.Namespace) -> None:
    """Replay the steps that are not durable yet, each as an epoch."""
    state = State.open(worker, options.state)
    with worker.dataflow("upgrade") as scope:
        edges, graph = durable_input(scope, state.shard("edges", fields=["package", "needed"], keep=0))
        answers = [
            persist(cycles(graph), state.shard("cycles", fields=["size", "cycles"], keep=options.keep)),
            persist(dependants(graph), state.shard("dependants", fields=["dependants", "packages"], keep=options.keep)),
        ]
    if worker.index == 0:
        print(f"step {edges.epoch} is the first that is not durable", flush=True)
    for step in range(edges.epoch, options.steps + 1):
        package, needed, diff = upgrade.changes(step, worker.index, worker.peers)
        if len(package):
            edges.update(package, needed, diff=diff)
        edges.advance_to(step + 1)
        worker.step()
        worker.step_while(lambda: edges.is_congested)
    edges.close()
    worker.step_while(lambda: not all(answer.done() for answer in answers))


def show(directory: str, as_of: int | None) -> None:
    """Print the answers in a directory, as of a step, or the last that is final."""
    cycles, dependants = (Shard(name, Directory(directory).store(name)) for name in ("cycles", "dependants"))
    manifest = cycles.manifest()
    print(f"final before step {manifest.upper}, readable as of {manifest.since} and later")
    for size, count in sorted(cycles.read(as_of)):
        print(f"{count} cycle(s) of {size} packages")
    most, _ = max(dependants.read(as_of))
    print(f"{most} packages depend on the most needed one")


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return the options of the command line, or those in `arguments`."""
    parser = argparse.ArgumentParser(description="Keep answers about a changing graph on disk.")
    parser.add_argument("--state", metavar="DIR", help="where to (default: that of 'timely run --state DIR')")
    parser.add_argument(
        "--steps", type=at_least(0), default=300, help="how far to replay (default: 300; at most 19,521)"
    )
    parser.add_argument("--keep", type=at_least(0), metavar="STEPS", help="how many old answers to keep (default: all)")
    parser.add_argument("--initial", type=Path, default=debian.INITIAL, metavar="FILE", help="the initial graph")
    parser.add_argument("--upgrade", type=Path, default=debian.CHANGES, metavar="FILE", help="the changes to it")
    parser.add_argument("--read", metavar="DIR", help="print the answer in a directory, and end")
    parser.add_argument(
        "--as-of", type=at_least(0), metavar="STEP", help="as of a step (default: the last that is final)"
    )
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run the program; return the exit status."""
    options = parse(arguments)
    try:
        if options.read is not None:
            show(options.read, options.as_of)
            return 0
        upgrade = debian.load(options.initial, options.upgrade)
    except (DataError, StateError) as error:
        return fail(f"durable: {error}")
    options.steps = min(options.steps, upgrade.steps)
    execute(lambda worker: program(worker, upgrade, options))
    return 0


if __name__ == "__main__":
    sys.exit(main())
