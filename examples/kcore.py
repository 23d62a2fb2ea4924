"""How deep nodes are inside a graph: core numbers, or the members of one core.

    python examples/kcore.py rmat:14,8 --plot cores.svg
    timely run -n 2 examples/kcore.py graph.tsv.gz changes.tsv --core 5

The k-core is the largest part of a graph in which each node has k neighbours; a node's core number is the largest k
whose core it is in. Edges count in both directions, once.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np

from differential import Collection
from differential.graphs import core_numbers, k_core
from differential.jobs import AddOption, Field, Inputs, Job, Options, Shown, at_least, picture, run, scratch


def cores(inputs: Inputs, options: Options) -> Collection:
    """Return (node, core number), or (node, neighbour) in one core, both ways."""
    return core_numbers(inputs.edges) if options.core is None else k_core(inputs.edges, options.core)


def fields(options: Options) -> tuple[Field, ...]:
    """Return the names of the columns."""
    other = Field("core") if options.core is None else Field("neighbour", is_node=True)
    return (Field("node", is_node=True), other)


def summary(shown: Shown) -> Iterator[str]:
    """Yield the number of nodes of the innermost core, or of the one that was asked for."""
    core = shown.options.core
    if not len(shown.answer):
        yield "no nodes" if core is None else f"the {core}-core is empty"
        return
    nodes, other = shown.answer.columns
    if core is not None:
        yield f"the {core}-core has {len(np.unique(nodes)):,} nodes and {len(nodes) // 2:,} edges"
        return
    deepest = int(other.max())
    yield f"{len(nodes):,} nodes; core numbers up to {deepest}"
    yield f"the {deepest}-core has {(other == deepest).sum():,} nodes"


def add_options(add: AddOption) -> None:
    """Add the options of this job."""
    add("--core", type=at_least(1), metavar="K", help="the edges of the K-core instead of all core numbers")


JOB = Job(
    name="kcore",
    about=__doc__,
    fields=fields,
    question=cores,
    summary=summary,
    check=scratch.cores,
    picture=picture.core_sizes,
    add_options=add_options,
)

if __name__ == "__main__":
    sys.exit(run(JOB))
