"""How far apart nodes are, approximately: shortest paths by way of a few landmarks.

    python examples/asp.py rmat:14,8 --from 0 --to 77
    timely run -n 2 examples/asp.py graph.tsv.gz changes.tsv --landmarks 16 --from a --from b --to y --to z

The landmarks are the nodes with the most edges; they change when the graph does. The distance of a pair is the least
number of edges on a path through a landmark: never too small, and exact if a shortest path passes one. Without `--from`
and `--to` the answer has the distances between the landmarks.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from differential import Collection
from differential.graphs import approximate_distances
from differential.jobs import AddOption, Field, Inputs, Job, Nodes, Options, Shown, at_least, picture, run, scratch


def asp(inputs: Inputs, options: Options) -> Collection:
    """Return (source, target, distance by way of a landmark)."""
    ends = inputs.edges.map(lambda source, target: source).concat(inputs.edges.map(lambda source, target: target))
    degrees = ends.count()
    landmarks = degrees.map(lambda node, degree: (0, degree, ~node)).top_k(options.landmarks)
    chosen = landmarks.map(lambda _, degree, other: ~other)
    sources, targets = (inputs.nodes["from"], inputs.nodes["to"]) if options.pairs else (chosen, chosen)
    pairs = sources.map(lambda node: (0, node)).join_map(
        targets.map(lambda node: (0, node)), lambda _, source, target: (source, target)
    )
    return approximate_distances(inputs.edges, chosen, pairs)


def summary(shown: Shown) -> Iterator[str]:
    """Yield the distances."""
    if not len(shown.answer):
        yield "no paths through a landmark"
        return
    source, target, distance = shown.answer.columns
    yield f"{len(distance):,} pairs are joined through a landmark; the mean distance is {distance.mean():.3g}"
    if shown.options.pairs:
        for ends in zip(source, target, distance):
            yield f"{shown.name(ends[0])} to {shown.name(ends[1])}: {ends[2]:,}"


def add_options(add: AddOption) -> None:
    """Add the options of this job."""
    add("--landmarks", type=at_least(1), default=8, metavar="N", help="how many landmarks there are (default 8)")


def settle(options: Options) -> None:
    """Refuse half a pair."""
    if bool(getattr(options, "from")) != bool(options.to):
        raise ValueError("--from and --to belong together: give both or neither")
    options.pairs = bool(options.to)


JOB = Job(
    name="asp",
    about=__doc__,
    fields=(Field("source", is_node=True), Field("target", is_node=True), Field("distance")),
    question=asp,
    summary=summary,
    check=scratch.asp,
    picture=picture.histogram(2, "Distances by way of a landmark", "distance", "pairs"),
    nodes=(
        Nodes("from", "measure from this node; may be repeated"),
        Nodes("to", "measure to this node; may be repeated"),
    ),
    add_options=add_options,
    settle=settle,
)

if __name__ == "__main__":
    sys.exit(run(JOB))
