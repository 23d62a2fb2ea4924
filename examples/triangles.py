"""Small patterns in a graph: triangles, or another motif.

    python examples/triangles.py rmat:12,8 --plot triangles.svg
    timely run -n 2 examples/triangles.py graph.tsv.gz changes.tsv --motif 0-1,1-2,2-3,3-0

A motif is a list of directed edges that connect the places 0, 1, 2, ...; `0-1,1-2,0-2` is a triangle. The answer has
the nodes at the places of each occurrence; different places may have the same node. The join that finds them is
worst-case optimal: it never makes more candidates than a graph of this size may have occurrences.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator

import numpy as np

from differential import Collection
from differential.graphs import motif
from differential.jobs import AddOption, Field, Inputs, Job, Options, Shown, counted, picture, run, scratch

TRIANGLE = [(0, 1), (1, 2), (0, 2)]


def motifs(inputs: Inputs, options: Options) -> Collection:
    """Return the nodes of each occurrence."""
    return motif(inputs.edges, options.motif)


def fields(options: Options) -> tuple[Field, ...]:
    """Return the names of the columns."""
    return tuple(Field(f"node{place}", is_node=True) for place in range(1 + max(map(max, options.motif))))


def summary(shown: Shown) -> Iterator[str]:
    """Yield the number of occurrences, and the node that is in most of them."""
    if not len(shown.answer):
        yield "no occurrence"
        return
    nodes, numbers = np.unique(np.concatenate(shown.answer.columns), return_counts=True)
    edges = ",".join(f"{source}-{target}" for source, target in shown.options.motif)
    yield f"{counted(shown.answer.counts.sum(), 'occurrence')} of {edges}"
    yield f"the most are at {shown.name(nodes[numbers.argmax()])}: {numbers.max():,}"


def pattern(text: str) -> list[tuple[int, int]]:
    """Return the edges of a motif."""
    if not re.fullmatch(r"\d+-\d+(,\d+-\d+)*", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not like 0-1,1-2,0-2")
    edges = [tuple(map(int, edge.split("-"))) for edge in text.split(",")]
    if any(source == target for source, target in edges):
        raise argparse.ArgumentTypeError(f"{text!r} has an edge from a place to itself")
    joined = set(edges[0])
    for _ in edges:
        joined.update(*(edge for edge in edges if joined & set(edge)))
    if joined != set(range(1 + max(map(max, edges)))):
        raise argparse.ArgumentTypeError(f"{text!r} is not connected, or leaves out a number: places are 0, 1, 2, ...")
    return [(edge[0], edge[1]) for edge in edges]


def add_options(add: AddOption) -> None:
    """Add the options of this job."""
    add("--motif", type=pattern, default=TRIANGLE, metavar="EDGES", help="the motif to find (default 0-1,1-2,0-2)")


JOB = Job(
    name="triangles",
    about=__doc__,
    fields=fields,
    question=motifs,
    summary=summary,
    check=scratch.motifs,
    picture=picture.occurrences,
    add_options=add_options,
    is_multiset=True,
)

if __name__ == "__main__":
    sys.exit(run(JOB))
