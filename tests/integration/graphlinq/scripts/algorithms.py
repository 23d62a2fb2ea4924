"""All graph algorithms, and operators on nodes, on one graph. As a script, it prints each worker's records by name."""

import sys

import numpy as np

from timely import execute, new_input
from timely.data.container import records
from timely.graphlinq import (
    Graph,
    aggregate,
    binary_state_machine,
    count_nodes,
    dense_renaming,
    distinct_nodes,
    filter_by,
    landmark_distances,
    node_join,
    pagerank,
    renamed,
    state_machine,
    strongly_connected_components,
    weakly_connected_components,
)

NODES, EDGES = 300, 450
LANDMARKS = [0, 1, 2, 1000]


def graph():
    """The sources and targets of all edges, the last of which is one from node 0 to itself."""
    random = np.random.default_rng(5)
    return tuple(np.append(random.integers(0, NODES, EDGES), 0) for _ in range(2))


def counted(state, value):
    return state + value, state + value


def named(edges):
    return edges.map(lambda source, target: (source.astype(str), target.astype(str)))


PROGRAMS = {
    "pagerank": lambda edges: pagerank(Graph(edges)).map(lambda node, rank: (node, rank.round(9))),
    "wcc": lambda edges: weakly_connected_components(Graph(edges)),
    "scc": lambda edges: strongly_connected_components(Graph(edges)),
    "asp": lambda edges: landmark_distances(Graph(edges), LANDMARKS),
    "asp, by edge": lambda edges: landmark_distances(Graph(edges, partition="edge"), LANDMARKS),
    "degrees": lambda edges: Graph(edges).degrees(),
    "join": lambda edges: Graph(edges).join(distinct_nodes(edges), lambda source, target: (target, source)),
    "aggregate": lambda edges: aggregate(edges, np.maximum),
    "count_nodes": count_nodes,
    "distinct_nodes": distinct_nodes,
    "filter_by": lambda edges: filter_by(edges, edges.map(lambda source, target: target)),
    "node_join": lambda edges: node_join(count_nodes(edges), Graph(edges).degrees()),
    "state_machine": lambda edges: state_machine(aggregate(edges, np.add), lambda node: node, counted),
    "binary_state_machine": lambda edges: binary_state_machine(
        count_nodes(edges), aggregate(edges, np.add), lambda node: 0, counted, counted
    ),
    "dense_renaming": lambda edges: dense_renaming(named(edges)),
    "renamed": lambda edges: renamed(named(edges))[0],
}


def everything(worker):
    """Return lines of name, epoch and record, for the records on this worker.

    All workers have edges at first. Then one of them has the last edge, so that at that time no other node has any.
    """
    lines = []
    edges = graph()
    first = [column[:-1][worker.index :: worker.peers] for column in edges]
    last = [column[-1:] for column in edges]
    for name, program in PROGRAMS.items():
        with worker.dataflow(name) as scope:
            session, stream = new_input(scope)
            program(stream).inspect_batch(
                lambda time, batch, name=name: lines.extend(
                    f"{name}, epoch {time[0]}: {record!r}" for record in records(batch)
                )
            )
        session.send(*first)
        session.advance_to(1)
        if worker.index == 0:
            session.send(*last)
        session.close()
        while worker.step_or_park():
            pass
    return lines


if __name__ == "__main__":
    for lines in execute(everything):
        sys.stdout.write("".join(f"{line}\n" for line in lines))
