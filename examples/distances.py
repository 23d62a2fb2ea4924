"""How far nodes are: the least number of edges, or the least length, from some nodes to others.

    python examples/distances.py random:100000,1000000 --plot distances.svg
    python examples/distances.py roads.csv --weighted --from Oslo
    timely run -n 2 examples/distances.py graph.tsv.gz changes.tsv --from a --to z --to y

Without `--to` the answer has every node that can be reached (breadth-first search, or the method of Bellman and Ford
with `--weighted`). With `--to` a search from both ends finds the distance of each pair, and visits only a small part of
the graph.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np

from differential import Collection
from differential.graphs import bfs, bidirectional_search, shortest_distances
from differential.jobs import AddOption, Field, Inputs, Job, Nodes, Options, Shown, counted, picture, run, scratch


def distances(inputs: Inputs, options: Options) -> Collection:
    """Return (source, target, distance), or (node, distance) from the nearest source."""
    sources, targets = inputs.nodes["from"], inputs.nodes["to"]
    if options.weighted:
        return shortest_distances(inputs.edges, sources)
    if not options.to:
        return bfs(inputs.edges, sources)
    pairs = sources.map(lambda node: (0, node)).join_map(
        targets.map(lambda node: (0, node)), lambda _, source, target: (source, target)
    )
    return bidirectional_search(inputs.edges, pairs)


def fields(options: Options) -> tuple[Field, ...]:
    """Return the names of the columns."""
    nodes = ("source", "target") if options.to else ("node",)
    return (*(Field(name, is_node=True) for name in nodes), Field("distance"))


def summary(shown: Shown) -> Iterator[str]:
    """Yield the distances of pairs, or how many nodes there are at each distance."""
    if not len(shown.answer):
        yield "no path"
        return
    *nodes, distance = shown.answer.columns
    if len(nodes) == 2:
        for source, target, length in zip(*nodes, distance):
            yield f"{shown.name(source)} to {shown.name(target)}: {length:,}"
        return
    yield f"{counted(len(distance), 'node')} can be reached; the farthest is {shown.name(nodes[0][distance.argmax()])}"
    # Divided first: the sum of lengths near the largest float would be infinite.
    mean, median = (distance / len(distance)).sum(), 2 * np.median(distance / 2)
    yield f"distances: mean {mean:.4g}, median {median:.4g}, largest {distance.max():,}"


def add_options(add: AddOption) -> None:
    """Add the options of this job."""
    add(
        "--weighted",
        action="store_true",
        help="edges have lengths, none of them negative, in the third column or the one that --weight names",
    )


def settle(options: Options) -> None:
    """Refuse options that contradict each other."""
    if options.weighted and options.to:
        raise ValueError("--to searches from both ends, which is for edges without lengths: leave out --weighted")


JOB = Job(
    name="distances",
    about=__doc__,
    fields=fields,
    question=distances,
    summary=summary,
    check=scratch.distances,
    picture=picture.histogram(-1, "Distances", "distance"),
    nodes=(
        Nodes("from", "measure from this node; may be repeated (default: the source of the first edge)", True),
        Nodes("to", "measure to this node only; may be repeated"),
    ),
    is_weighted=lambda options: bool(options.weighted),
    add_options=add_options,
    settle=settle,
)

if __name__ == "__main__":
    sys.exit(run(JOB))
