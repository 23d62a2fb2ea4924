"""Which nodes belong together: communities by label propagation.

    python examples/communities.py random:10000,50000 --plot communities.svg
    timely run -n 2 examples/communities.py graph.tsv.gz changes.tsv --rounds 5

In each round every node takes the label that most of its neighbours have, the least of several. After a number of
rounds the nodes of one label are a community. The LDBC Graphalytics benchmark defines the same answer (CDLP).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np

from differential import Collection
from differential.graphs import label_propagation
from differential.jobs import AddOption, Field, Inputs, Job, Options, Shown, at_least, counted, picture, run, scratch


def communities(inputs: Inputs, options: Options) -> Collection:
    """Return (node, label of its community)."""
    return label_propagation(inputs.edges, rounds=options.rounds)


def summary(shown: Shown) -> Iterator[str]:
    """Yield the number of communities, and the sizes of the largest."""
    if not len(shown.answer):
        yield "no communities"
        return
    labels, sizes = np.unique(shown.answer.columns[1], return_counts=True)
    yield f"{counted(len(labels), 'community', 'communities')} of {counted(sizes.sum(), 'node')}; the largest:"
    for place in (-sizes).argsort(kind="stable")[:5]:
        nodes = "node, " if sizes[place] == 1 else "nodes,"
        yield f"  {sizes[place]:8,} {nodes} label {shown.name(labels[place])}"


def add_options(add: AddOption) -> None:
    """Add the options of this job."""
    add("--rounds", type=at_least(0), default=10, metavar="N", help="rounds of propagation (default 10)")


JOB = Job(
    name="communities",
    about=__doc__,
    fields=(Field("node", is_node=True), Field("label", is_node=True)),
    question=communities,
    summary=summary,
    check=scratch.communities,
    picture=picture.group_sizes(1, "Sizes of communities"),
    add_options=add_options,
)

if __name__ == "__main__":
    sys.exit(run(JOB))
