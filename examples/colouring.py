"""How few colours a graph needs, at most: a colouring in which neighbours differ.

    python examples/colouring.py random:10000,30000 --plot colours.svg
    timely run -n 2 examples/colouring.py graph.tsv.gz changes.tsv

Nodes are coloured in ascending order, each with the least colour that no lesser neighbour has. A change recolours only
the nodes whose colours depend on it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from differential import Collection
from differential.graphs import colouring
from differential.jobs import Field, Inputs, Job, Options, Shown, counted, picture, run, scratch


def colours(inputs: Inputs, options: Options) -> Collection:
    """Return (node, colour)."""
    return colouring(inputs.edges)


def summary(shown: Shown) -> Iterator[str]:
    """Yield the number of colours."""
    if not len(shown.answer):
        yield "no nodes to colour"
        return
    _, colour = shown.answer.columns
    first = counted((colour == 0).sum(), "node")
    yield f"{counted(len(colour), 'node')} in {counted(colour.max() + 1, 'colour')}; the first colour has {first}"


JOB = Job(
    name="colouring",
    about=__doc__,
    fields=(Field("node", is_node=True), Field("colour")),
    question=colours,
    summary=summary,
    check=scratch.colours,
    picture=picture.histogram(1, "Sizes of colours", "colour"),
)

if __name__ == "__main__":
    sys.exit(run(JOB))
