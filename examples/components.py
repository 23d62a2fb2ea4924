"""Which nodes are connected: the weakly connected components of a graph.

    python examples/components.py random:100000,150000 --plot sizes.svg
    timely run -n 2 examples/components.py graph.tsv.gz changes.tsv --check

Two nodes are in one component if edges lead from one to the other, whatever their directions. A component is named
after its least node, and nodes without edges are in none.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np

from differential import Collection
from differential.graphs import weakly_connected_components
from differential.jobs import Field, Inputs, Job, Options, Shown, counted, picture, run, scratch


def components(inputs: Inputs, options: Options) -> Collection:
    """Return (node, least node of its component)."""
    return weakly_connected_components(inputs.edges)


def summary(shown: Shown) -> Iterator[str]:
    """Yield the number of components, and the size of the largest."""
    if not len(shown.answer):
        yield "no components"
        return
    labels, sizes = np.unique(shown.answer.columns[1], return_counts=True)
    largest = int(sizes.argmax())
    share = sizes[largest] / sizes.sum()
    yield f"{counted(len(labels), 'component')} of {counted(sizes.sum(), 'node')}"
    yield f"the largest, of {shown.name(labels[largest])}, has {counted(sizes[largest], 'node')} ({share:.1%})"


JOB = Job(
    name="components",
    about=__doc__,
    fields=(Field("node", is_node=True), Field("component", is_node=True)),
    question=components,
    summary=summary,
    check=scratch.components,
    picture=picture.group_sizes(1, "Sizes of components"),
)

if __name__ == "__main__":
    sys.exit(run(JOB))
