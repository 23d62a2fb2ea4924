"""Which nodes can be reached from which: the transitive closure, or nodes of the same generation.

    python examples/closure.py random:1000,1200 --plot reach.svg
    timely run -n 2 examples/closure.py family.tsv changes.tsv --same-generation

With `--same-generation` the edges lead from parent to child, and the answer has the pairs of nodes that have a common
ancestor equally many generations back, the textbook example of a recursive query. Both answers can have as many records
as there are pairs of nodes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np

from differential import Collection
from differential.graphs import transitive_closure
from differential.jobs import AddOption, Field, Inputs, Job, Options, Shown, counted, picture, run, scratch


def closure(inputs: Inputs, options: Options) -> Collection:
    """Return (node, other) for each path, or for each two nodes of one generation."""
    return same_generation(inputs.edges) if options.same_generation else transitive_closure(inputs.edges)


def same_generation(edges: Collection) -> Collection:
    """Return (node, other) for different nodes with a common ancestor equally many edges above them."""
    parents = edges.distinct()
    siblings = parents.join_map(parents, lambda _, node, other: (node, other)).filter(lambda node, other: node != other)
    return siblings.iterate(
        lambda pairs: (
            pairs.join_map(parents, lambda _, other, child: (other, child))
            .join_map(parents, lambda _, child, other_child: (child, other_child))
            .filter(lambda node, other: node != other)
            .concat(siblings)
            .distinct()
        )
    )


def summary(shown: Shown) -> Iterator[str]:
    """Yield the number of pairs, and the node that is in most."""
    if not len(shown.answer):
        yield "no pairs"
        return
    nodes, numbers = np.unique(shown.answer.columns[0], return_counts=True)
    what = "of one generation" if shown.options.same_generation else "joined by a path"
    yield f"{counted(len(shown.answer), 'pair')} {what}"
    yield f"most are of {shown.name(nodes[numbers.argmax()])}: {numbers.max():,}"


def add_options(add: AddOption) -> None:
    """Add the options of this job."""
    add("--same-generation", action="store_true", help="pairs with a common ancestor equally many edges above them")


JOB = Job(
    name="closure",
    about=__doc__,
    fields=(Field("node", is_node=True), Field("other", is_node=True)),
    question=closure,
    summary=summary,
    check=scratch.closure,
    picture=picture.group_sizes(0, "Nodes reached from each node", "nodes reached"),
    add_options=add_options,
)

if __name__ == "__main__":
    sys.exit(run(JOB))
