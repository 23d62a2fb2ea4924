"""Four questions about a random graph, with answers that follow every change: ranks, components, cycles, distances.

    python examples/graph_jobs.py pagerank --nodes 10000 --edges 100000 --tolerance 10000
    timely run -n 2 examples/graph_jobs.py components
    python examples/graph_jobs.py asp --landmarks 16

`pagerank` prints the nodes with the highest ranks, `components` and `cycles` the largest weakly and strongly connected
components, and `asp` (approximate shortest paths) the distances between some nodes by way of a few landmarks. A change
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
    """Return (name, number) for the highest numbers."""
    ranked = numbers.map(lambda name, number: (0, number, name)).top_k(SHOWN)
    return ranked.map(lambda _, number, name: (name, number))


def sizes(labels: Collection) -> Collection:
    """Return (label, number of nodes) for the most frequent labels."""
    return highest(labels.map(lambda node, label: label).count())


def question(options: argparse.Namespace) -> Question:
    """Return the definition of the question."""
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
    """Compute the answer, then make one change in each epoch; return the last answer, on worker 0."""
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
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job", choices=("pagerank", "components", "cycles", "asp"))
    parser.add_argument("--nodes", type=at_least(1), default=2_000, help="nodes of the graph (default 2,000)")
    parser.add_argument("--edges", type=at_least(0), default=10_000, help="random edges between them (default 10,000)")
    parser.add_argument("--changes", type=at_least(0), default=50, help="edges to replace, one at a time (default 50)")
    parser.add_argument(
        "--tolerance",
        type=at_least(1),
        default=10_000,
        help="for pagerank: the unit to which ranks are rounded, in millionths (default 10,000)",
    )
    parser.add_argument("--landmarks", type=at_least(1), default=8, help="for asp: the number of landmarks (default 8)")
    return parser


def main() -> None:
    """Run the job of the command line."""
    options = arguments().parse_args()
    execute(lambda worker: program(worker, options))


if __name__ == "__main__":
    main()
