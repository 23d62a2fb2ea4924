"""Four questions about a random graph, answered again after every change: ranks, components, cycles, distances.

    python examples/graph_jobs.py pagerank --nodes 10000 --edges 100000 --tolerance 10000
    timely run -n 2 examples/graph_jobs.py components
    python examples/graph_jobs.py asp --landmarks 16

`pagerank` tells the nodes of highest rank, `components` and `cycles` the largest weakly and strongly connected
components, `asp` (approximate shortest paths) how far it is, by way of a few landmarks, between some nodes. A change
removes the oldest edge and adds a new one; the graph and its changes are those of `bfs.py`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from bfs import described, follow
from options import at_least

from differential import Collection, new_input
from differential.graphs import (
    approximate_distances,
    pagerank,
    strongly_connected_components,
    weakly_connected_components,
)
from timely import Worker, execute

SHOWN = 5

Question = Callable[[Collection], Collection]
Answer = dict[tuple[int, ...], int]


def highest(numbers: Collection) -> Collection:
    """Return (name, number) for the highest of numbers with names."""
    ranked = numbers.map(lambda name, number: (0, number, name)).top_k(SHOWN)
    return ranked.map(lambda _, number, name: (name, number))


def sizes(labels: Collection) -> Collection:
    """Return (label, nodes that have it) for the most frequent labels."""
    return highest(labels.map(lambda node, label: label).count())


def question(options: argparse.Namespace) -> Question:
    """Return the definition of what is asked."""
    if options.job == "pagerank":
        return lambda edges: highest(pagerank(edges, tolerance=options.tolerance))
    if options.job == "components":
        return lambda edges: sizes(weakly_connected_components(edges))
    if options.job == "cycles":
        return lambda edges: sizes(strongly_connected_components(edges))

    def asp(edges: Collection) -> Collection:
        last = options.nodes - 1
        landmarks = Collection.of(edges.scope, np.linspace(0, last, options.landmarks, dtype=np.int64))
        places = np.linspace(0, last, 2 * SHOWN, dtype=np.int64)
        return approximate_distances(edges, landmarks, Collection.of(edges.scope, places[:SHOWN], places[SHOWN:]))

    return asp


def program(worker: Worker, options: argparse.Namespace) -> Answer:
    """Answer, then make changes, one an epoch; return the last answer, on worker 0."""
    with worker.dataflow(options.job) as scope:
        session, graph = new_input(scope, name="edges")
        answer = question(options)(graph).output()
    latencies = follow(worker, session, answer, options.nodes, options.edges, options.changes)
    if worker.index == 0:
        for record in sorted(answer.contents(), key=lambda record: (-record[-1], record)):
            print(*record, sep="\t")
        print(described(latencies))
    return dict(answer.contents())


def arguments() -> argparse.ArgumentParser:
    """Return the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job", choices=("pagerank", "components", "cycles", "asp"))
    parser.add_argument("--nodes", type=at_least(1), default=2_000, help="nodes of the graph (default 2,000)")
    parser.add_argument(
        "--edges", type=at_least(0), default=10_000, help="edges between them, at random (default 10,000)"
    )
    parser.add_argument(
        "--changes", type=at_least(0), default=50, help="edges replaced, one after the other (default 50)"
    )
    parser.add_argument(
        "--tolerance",
        type=at_least(1),
        default=10_000,
        help="of pagerank, which ranks are rounded to, in millionths (default 10,000)",
    )
    parser.add_argument("--landmarks", type=at_least(1), default=8, help="of asp, how many there are (default 8)")
    return parser


def main() -> None:
    """Run what the command line asks for."""
    options = arguments().parse_args()
    execute(lambda worker: program(worker, options))


if __name__ == "__main__":
    main()
