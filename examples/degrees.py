"""How many edges nodes have: degrees, or their distribution.

    python examples/degrees.py rmat:16,16 --distribution --plot degrees.svg
    timely run -n 2 examples/degrees.py graph.tsv.gz changes.tsv --incoming

The distribution is a count of counts: how many nodes have how many edges.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from differential import Collection
from differential.jobs import AddOption, Field, Inputs, Job, Options, Shown, counted, picture, run, scratch


def degrees(inputs: Inputs, options: Options) -> Collection:
    """Return (node, number of its edges), or (number of edges, number of nodes that have so many)."""
    end = (lambda source, target: target) if options.incoming else (lambda source, target: source)
    counts = inputs.edges.map(end).count()
    return counts.map(lambda node, degree: degree).count() if options.distribution else counts


def fields(options: Options) -> tuple[Field, ...]:
    """Return the names of the columns."""
    return (Field("degree"), Field("nodes")) if options.distribution else (Field("node", is_node=True), Field("degree"))


def summary(shown: Shown) -> Iterator[str]:
    """Yield the mean degree, and the largest."""
    if not len(shown.answer):
        yield "no nodes with edges"
        return
    first, second = shown.answer.columns
    if shown.options.distribution:
        edges = (first * second).sum()
        yield f"{counted(second.sum(), 'node')} with {counted(edges, 'edge')}: {edges / second.sum():.3g} in the mean"
        yield f"the largest degree is {first.max():,}"
        return
    direction = "incoming" if shown.options.incoming else "outgoing"
    yield f"{counted(len(first), 'node')} with {direction} edges, {second.mean():.3g} in the mean"
    for place in (-second).argsort(kind="stable")[:5]:
        yield f"  {second[place]:8,}  {shown.name(first[place])}"


def add_options(add: AddOption) -> None:
    """Add the options of this job."""
    add("--incoming", action="store_true", help="count incoming edges instead of outgoing ones")
    add("--distribution", action="store_true", help="count how many nodes have each degree")


JOB = Job(
    name="degrees",
    about=__doc__,
    fields=fields,
    question=degrees,
    summary=summary,
    check=scratch.degrees,
    picture=picture.degrees,
    add_options=add_options,
)

if __name__ == "__main__":
    sys.exit(run(JOB))
