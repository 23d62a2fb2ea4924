"""Count the connected components of a graph from a stream of its edges, with timely alone.

    python examples/union_find.py --nodes 1000000 --edges 10000000
    timely run -n 2 examples/union_find.py

Edges are only added, so the only state is a union-find forest: for each node, a parent nearer to the root of its
component. An operator emits the edges that join two components, and drops the rest. Each worker does this for its own
edges. The remaining edges, fewer than nodes, are sent to worker 0, which does the same again. If edges are removed as
well, use `differential.graphs.weakly_connected_components`.

An operator need not process a batch in Python: here a loop over its columns is compiled by Numba, as is usual if each
row depends on the rows before. `pip install numba` installs it.
"""

from __future__ import annotations

import argparse
import time as clock

import numpy as np
from bfs import random_edges
from numba import njit, types
from numpy.typing import NDArray

from differential.jobs import at_least
from timely import Columns, Gather, InputPort, OutputPort, Pipeline, Stream, Worker, execute, new_input
from timely.data.container import of_columns
from timely.dataflow.pact import Pact

Ints = NDArray[np.int64]

_WRITTEN = types.int64[::1]
_READ = types.Array(types.int64, 1, "A", readonly=True)  # any column of integers, also from another process


@njit(types.int64(_WRITTEN, _READ, _READ, _WRITTEN), cache=True)  # type: ignore[untyped-decorator]
def join_ends(parent: Ints, source: Ints, target: Ints, joined: Ints) -> int:
    """Join the ends of edges, and write the rows of those that joined two components to `joined`; return their number.

    This is Rem's algorithm (E. W. Dijkstra, A Discipline of Programming, 1976). Both ends climb towards their roots;
    the one with the larger parent climbs next, and its parent becomes that of the other.
    """
    found = 0
    for row in range(len(source)):
        low, high = source[row], target[row]
        below, above = parent[low], parent[high]
        while below != above:
            if below > above:
                low, below, high, above = high, above, low, below
            parent[high] = below
            if above == high:
                joined[found] = row
                found += 1
                break
            high, above = above, parent[above]
    return found


class Forest:
    """A union-find forest over the integers from 0 on.

    Invariant: parent[node] <= node, so the forest has no cycles. A node that is its own parent is the root of its
    component, and the smallest node in it.
    """

    def __init__(self) -> None:
        self.parent: Ints = np.empty(0, np.int64)

    def join(self, source: Ints, target: Ints) -> Ints:
        """Join the ends of edges; return the positions of the edges that joined two components."""
        joined = np.empty(len(source), np.int64)
        if len(source):
            self._grow(int(max(source.max(), target.max())) + 1)
        return joined[: join_ends(self.parent, source, target, joined)]

    def _grow(self, size: int) -> None:
        if size > len(self.parent):
            size = max(size, 2 * len(self.parent))
            former, self.parent = self.parent, np.arange(size)
            self.parent[: len(former)] = former


def union_find(edges: Stream, pact: Pact, name: str = "union_find") -> Stream:
    """Return the edges that join two components of the edges received before them on the same worker."""
    forest = Forest()

    def logic(input: InputPort, output: OutputPort) -> None:
        for capability, batch in input:
            source, target = of_columns(batch)
            joined = forest.join(source, target)
            output.give(capability, Columns((source[joined], target[joined])))

    return edges.unary(pact, logic, name=name)


def spanning_forest(edges: Stream) -> Stream:
    """Return, on worker 0, edges without cycles that connect the same nodes as all edges of all workers."""
    local = union_find(edges, Pipeline(), "union_find locally")
    return local if edges.scope.peers == 1 else union_find(local, Gather(0))


def program(worker: Worker, nodes: int, edges: int, batch: int, progress: bool = False) -> tuple[Ints, Ints, float]:
    """Send the worker's share of the edges; return, on worker 0, a spanning forest; and the seconds it took."""
    found: list[tuple[Ints, ...]] = [(np.empty(0, np.int64), np.empty(0, np.int64))]
    with worker.dataflow("components") as scope:
        session, stream = new_input(scope, name="edges")
        forest = spanning_forest(stream)
        probe = forest.inspect_batch(lambda _, batch: found.append(of_columns(batch))).probe()

    first, last = (edges * place // worker.peers for place in (worker.index, worker.index + 1))
    source, target = random_edges(first, last - first, nodes)
    begun = clock.perf_counter()
    for number, start in enumerate(range(0, len(source), batch)):
        session.send_batch(Columns((source[start : start + batch], target[start : start + batch])))
        session.advance_to(number + 1)
        worker.step()
        if progress and worker.index == 0 and number % 16 == 15:
            sent, seconds = min(start + batch, len(source)), clock.perf_counter() - begun
            print(f"{sent:,} of {len(source):,} edges after {seconds:.2f} s", flush=True)
    session.close()
    worker.step_while(lambda: not probe.done())
    seconds = clock.perf_counter() - begun
    sources, targets = (np.concatenate(column) for column in zip(*found))
    return sources, targets, seconds


def main() -> None:
    """Run the program with the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=at_least(1), default=100_000, help="nodes of the graph (default 100,000)")
    parser.add_argument(
        "--edges", type=at_least(0), default=1_000_000, help="random edges between them (default 1,000,000)"
    )
    parser.add_argument("--batch", type=at_least(1), default=100_000, help="edges in each batch (default 100,000)")
    options = parser.parse_args()

    def run(worker: Worker) -> None:
        source, _, seconds = program(worker, options.nodes, options.edges, options.batch, progress=True)
        if worker.index == 0:
            print(f"{options.nodes - len(source):,} components")
            print(f"{options.edges:,} edges in {seconds:.2f} s: {1e-6 * options.edges / seconds:.1f} million a second")

    execute(run)


if __name__ == "__main__":
    main()
