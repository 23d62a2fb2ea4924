"""Ask questions about one changing graph: each is a dataflow on the arrangement that all of them share.

    python examples/interactive.py --nodes 100000 --edges 1000000
    timely run -n 2 examples/interactive.py --private

A question asks how many nodes are within some hops of a node, and its answer is kept up to date until it is dropped.
Meanwhile the graph loses its oldest edges and gains new ones. The output shows the time from installing a question to
its first answer, which depends on the answer and not on the graph, and the memory of the indexes for all questions.
With `--private` each question indexes the graph for itself, for comparison.

The idea is that of shared arrangements (McSherry, Lattuada, Schwarzkopf, Roscoe: Shared Arrangements, VLDB 2020).
"""

from __future__ import annotations

import argparse
import time as clock
from collections import deque
from typing import NamedTuple

import numpy as np
from bfs import random_edges
from splitmix import splitmix

from differential import Arrangement, Collection, InputSession, Output, Trace, new_input
from differential.jobs import at_least
from timely import Worker, execute


class Query(NamedTuple):
    """An installed question, its answer, and the index of edges that it uses."""

    node: int
    dataflow: int
    answer: Output
    edges: Trace


class Report(NamedTuple):
    """Milliseconds, bytes of indexes on this worker and, on worker 0, the nodes asked about with their answers."""

    installs: list[float]
    epochs: list[float]
    nbytes: int
    answers: list[tuple[int, int]]


class Shared:
    """The graph, in a dataflow of its own, and the questions about it."""

    def __init__(self, worker: Worker, hops: int, private: bool) -> None:
        self.worker = worker
        self.hops = hops
        self.private = private
        self.queries: deque[Query] = deque()
        with worker.dataflow("graph") as scope:
            self.session: InputSession
            self.session, graph = new_input(scope, name="edges")
            self.trace = graph.arrange_by_key().trace()

    def settle(self) -> None:
        """End the epoch, and wait until the graph and all answers are complete for it."""
        epoch = self.session.epoch
        self.session.advance_to(epoch + 1)
        self.worker.step_while(lambda: self.trace.upper.less_equal((epoch,)))
        self.worker.step_while(lambda: any(query.answer.less_than(epoch + 1) for query in self.queries))
        for query in self.queries:
            query.edges.allow_compaction_to(epoch)
        self.trace.allow_compaction_to(epoch)

    def install(self, node: int) -> None:
        """Ask how many nodes are within `hops` hops of `node`, and wait for the answer."""
        with self.worker.dataflow(f"from {node}") as scope:
            index = self.trace.import_into(scope)
            if self.private:
                index = index.as_collection().map(lambda source, target: (source, target)).arrange_by_key()
            number = within(index, Collection.of(scope, node), self.hops).map(lambda _: 0).count().output()
            query = Query(node, scope.dataflow.index, number, index.trace())
        self.queries.append(query)
        self.worker.step_while(lambda: query.answer.less_than(self.session.epoch))

    def drop_oldest(self) -> None:
        """Drop the oldest question."""
        query = self.queries.popleft()
        self.worker.drop_dataflow(query.dataflow)
        query.edges.drop()

    @property
    def nbytes(self) -> int:
        """The bytes of all indexes of edges on this worker, each counted once."""
        own = sum(query.edges.statistics().nbytes for query in self.queries) if self.private else 0
        return own + self.trace.statistics().nbytes


def within(graph: Arrangement, start: Collection, hops: int) -> Collection:
    """Return the nodes reachable by a path of at most `hops` edges."""
    nodes = start
    for _ in range(hops):
        nodes = nodes.join_map(graph, lambda source, target: target).concat(nodes).distinct()
    return nodes


def program(
    worker: Worker, nodes: int, edges: int, changes: int, rounds: int, keep: int, hops: int, private: bool
) -> Report:
    """In each round, ask a question, drop the oldest of more than `keep`, and change the graph."""
    shared = Shared(worker, hops, private)
    source, target = random_edges(0, edges, nodes)
    shared.session.insert(source[worker.index :: worker.peers], target[worker.index :: worker.peers])
    shared.settle()
    installs, epochs = [], []
    for number in range(rounds):
        begun = clock.perf_counter()
        shared.install(int(splitmix(np.array([number]))[0] % np.uint64(nodes)))
        installs.append(1000 * (clock.perf_counter() - begun))
        if len(shared.queries) > keep:
            shared.drop_oldest()
        begun = clock.perf_counter()
        if number % worker.peers == worker.index:
            shared.session.remove(*random_edges(number * changes, changes, nodes))
            shared.session.insert(*random_edges(edges + number * changes, changes, nodes))
        shared.settle()
        epochs.append(1000 * (clock.perf_counter() - begun))
    answers = [(query.node, count) for query in shared.queries for _, count in query.answer.contents()]
    nbytes = shared.nbytes
    for query in shared.queries:
        query.edges.drop()
    return Report(installs, epochs, nbytes, answers)


def main() -> None:
    """Run the program with the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=at_least(1), default=10_000, help="nodes of the graph (default 10,000)")
    parser.add_argument(
        "--edges", type=at_least(0), default=100_000, help="random edges between them (default 100,000)"
    )
    parser.add_argument("--changes", type=at_least(0), default=10, help="edges to replace in each round (default 10)")
    parser.add_argument(
        "--rounds", type=at_least(1), default=100, help="number of rounds, with one question in each (default 100)"
    )
    parser.add_argument(
        "--keep", type=at_least(0), default=10, help="number of questions that stay installed (default 10)"
    )
    parser.add_argument("--hops", type=at_least(0), default=2, help="hops of a question (default 2)")
    parser.add_argument("--private", action="store_true", help="index the graph separately for each question")
    options = parser.parse_args()

    def run(worker: Worker) -> None:
        report = program(worker, **vars(options))
        if worker.index == 0:
            for node, found in report.answers:
                print(f"within {options.hops} hops of {node}: {found:,} nodes")
            for what, times in (("installing a question", report.installs), ("a round", report.epochs)):
                # The first one loads code that all use.
                median, p99 = np.percentile(times[1:] or times, (50, 99))
                print(f"{what}: median {median:.2f} ms, p99 {p99:.2f} ms")
            print(f"indexes of edges for {len(report.answers)} questions: {report.nbytes / 1e6:.1f} MB on worker 0")

    execute(run)


if __name__ == "__main__":
    main()
