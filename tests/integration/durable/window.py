"""A program with a window, to be killed: the components of random edges of the last epochs, kept durable.

A window looks at the times of changes, so all that the inputs retain happens again at its own times.
"""

from __future__ import annotations

import sys

import numpy as np

from differential.durable import State, durable_input, persist
from differential.graphs import weakly_connected_components
from timely import Worker, execute

WINDOW, NODES, EACH = 20, 60, 8


def program(worker: Worker, steps: int) -> None:
    """Make the epochs that are not durable yet, this worker's share of each."""
    state = State.open(worker, replay=True)
    with worker.dataflow("window") as scope:
        edges, graph = durable_input(scope, state.shard("edges"), ahead=True)
        sizes = weakly_connected_components(graph.window(WINDOW)).map(lambda node, label: label).count()
        answer = persist(sizes.map(lambda label, size: size).count(), state.shard("components"))
    if worker.index == 0:
        print(f"step {edges.epoch} is the first that is not durable", flush=True)
    for step in range(edges.epoch, steps + 1):
        source, target = np.random.default_rng(step).integers(0, NODES, (2, EACH))
        edges.insert(source[worker.index :: worker.peers], target[worker.index :: worker.peers])
        edges.advance_to(step + 1)
        worker.step()
        if step % 10 == 0:
            worker.step_while(lambda: not edges.is_durable(edges.epoch))
    edges.close()
    worker.step_while(lambda: not answer.done())


if __name__ == "__main__":
    execute(lambda worker: program(worker, int(sys.argv[2])))
