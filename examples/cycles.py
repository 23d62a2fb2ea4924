"""Which nodes lie on cycles together: the strongly connected components of a graph.

    python examples/cycles.py random:10000,15000 --plot cycles.svg
    timely run -n 2 examples/cycles.py graph.tsv.gz changes.tsv --changes - --quiet

Two nodes are in one component if directed paths lead from each to the other. A component is named after its least node.
Nodes that lie on no cycle are in none; an edge from a node to itself is not a cycle.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np

from differential import Collection
from differential.graphs import strongly_connected_components
from differential.jobs import Field, Inputs, Job, Options, Shown, counted, picture, run, scratch


def cycles(inputs: Inputs, options: Options) -> Collection:
    """Return (node, least node of its component) for every node of a component of more than one node."""
    return strongly_connected_components(inputs.edges)


def summary(shown: Shown) -> Iterator[str]:
    """Yield the number of components, and the size and some members of the largest."""
    if not len(shown.answer):
        yield "no cycles"
        return
    nodes, component = shown.answer.columns
    labels, sizes = np.unique(component, return_counts=True)
    largest = int(sizes.argmax())
    members = [shown.name(node) for node in nodes[component == labels[largest]][:5]]
    yield f"{counted(sizes.sum(), 'node')} on cycles, in {counted(len(labels), 'component')}"
    yield f"the largest has {sizes[largest]:,} nodes: {', '.join(members)}{', ...' if sizes[largest] > 5 else ''}"


JOB = Job(
    name="cycles",
    about=__doc__,
    fields=(Field("node", is_node=True), Field("component", is_node=True)),
    question=cycles,
    summary=summary,
    check=scratch.cycles,
    picture=picture.group_sizes(1, "Sizes of strongly connected components"),
)

if __name__ == "__main__":
    sys.exit(run(JOB))
