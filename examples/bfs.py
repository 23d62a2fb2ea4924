"""Keep distances from node 0 in a random graph up to date while its edges change.

    python examples/bfs.py --nodes 100000 --edges 1000000 --changes 200
    timely run -n 2 examples/bfs.py

A change removes the oldest edge and adds a new one. The graph and its changes are the same in every run and for any
number of workers: the k-th random number is a function of k (SplitMix64).
"""

from __future__ import annotations

import argparse
import time as clock

import numpy as np
from numpy.typing import NDArray
from splitmix import splitmix

from differential import Collection, InputSession, Output, new_input
from differential.graphs import bfs
from differential.jobs import at_least
from timely import Worker, execute


def random_edges(first: int, count: int, nodes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the sources and targets of `count` edges, starting with edge number `first`."""
    ends = (splitmix(np.arange(2 * first, 2 * (first + count))) % np.uint64(nodes)).astype(np.int64)
    ends.setflags(write=False)  # so that views of it are sent without a copy (`Input.send_batch`)
    return ends[0::2], ends[1::2]


def program(worker: Worker, nodes: int, edges: int, changes: int) -> None:
    """Compute the number of nodes at each distance; then make changes, one in each epoch."""
    with worker.dataflow("bfs") as scope:
        session, graph = new_input(scope, name="edges")
        distances = bfs(graph, Collection.of(scope, 0))
        numbers = distances.map(lambda node, distance: distance).count().output()

    latencies = follow(worker, session, numbers, nodes, edges, changes)
    if worker.index == 0:
        for distance, number in sorted(numbers.contents()):
            print(f"distance {distance}: {number:,} nodes")
        print(described(latencies))


def follow(worker: Worker, session: InputSession, answer: Output, nodes: int, edges: int, changes: int) -> list[float]:
    """Insert the graph, then make one change in each epoch; return the milliseconds that each epoch took."""

    def finish() -> float:
        begun = clock.perf_counter()
        epoch = session.epoch + 1
        session.advance_to(epoch)
        worker.step_while(lambda: answer.less_than(epoch))
        return 1000 * (clock.perf_counter() - begun)

    source, target = random_edges(0, edges, nodes)
    session.insert(source[worker.index :: worker.peers], target[worker.index :: worker.peers])
    latencies = [finish()]
    for change in range(changes):
        if change % worker.peers == worker.index:
            session.remove(*random_edges(change, 1, nodes))
            session.insert(*random_edges(edges + change, 1, nodes))
        latencies.append(finish())
    return latencies


def described(latencies: list[float]) -> str:
    """Return a short text with the times of the first answer and of the changes."""
    initial, *rest = latencies
    text = f"initially {initial:,.0f} ms"
    if rest:
        median, p99 = np.percentile(rest, (50, 99))
        text += f"; a change: median {median:.2f} ms, p99 {p99:.2f} ms"
    return text


def main() -> None:
    """Run the program with the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=at_least(1), default=10_000, help="nodes of the graph (default 10,000)")
    parser.add_argument(
        "--edges", type=at_least(0), default=100_000, help="random edges between them (default 100,000)"
    )
    parser.add_argument(
        "--changes", type=at_least(0), default=100, help="edges to replace, one at a time (default 100)"
    )
    options = parser.parse_args()
    execute(lambda worker: program(worker, options.nodes, options.edges, options.changes))


if __name__ == "__main__":
    main()
