"""Which nodes matter: PageRank, exact and in whole numbers.

    python examples/pagerank.py rmat:14,8 --plot ranks.svg
    timely run -n 2 examples/pagerank.py graph.tsv.gz changes.tsv --tolerance 0.01

Ranks are in millionths of the mean rank. A changed edge moves a millionth or two of nearly every node's rank, so an
exact answer costs much for each change; with a tolerance, smaller changes are not passed on.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from differential import Collection
from differential.graphs import pagerank
from differential.jobs import AddOption, Field, Inputs, Job, Options, Shown, at_least, counted, picture, run, scratch

UNIT = 1_000_000


def ranks(inputs: Inputs, options: Options) -> Collection:
    """Return (node, rank)."""
    return pagerank(
        inputs.edges, damping=options.damping, rounds=options.rounds, unit=UNIT, tolerance=options.tolerance
    )


def summary(shown: Shown) -> Iterator[str]:
    """Yield the nodes of the highest ranks."""
    if not len(shown.answer):
        yield "no ranks"
        return
    nodes, rank = shown.answer.columns
    yield f"{counted(len(nodes), 'node')}; the highest ranks, where the mean is 1:"
    for place in (-rank).argsort(kind="stable")[: shown.options.top]:
        yield f"  {rank[place] / UNIT:10.3f}  {shown.name(nodes[place])}"


def damping(text: str) -> float:
    """Return the share of rank that edges pass on."""
    share = at_least(0.0)(text)
    if share > 0.999:
        raise argparse.ArgumentTypeError(f"{text!r} is more than 0.999: some rank must jump to any node")
    return share


def tolerance(text: str) -> float:
    """Return the share of the mean rank to which ranks are rounded."""
    share = at_least(0.0)(text)
    if share > 1:
        raise argparse.ArgumentTypeError(f"{text!r} is more than 1, the mean rank")
    return share


def add_options(add: AddOption) -> None:
    """Add the options of this job."""
    add(
        "--damping",
        type=damping,
        default=0.85,
        metavar="SHARE",
        help="the share of rank that edges pass on (default 0.85)",
    )
    add("--rounds", type=at_least(0), default=20, metavar="N", help="rounds of passing on (default 20)")
    add(
        "--tolerance",
        type=tolerance,
        default=0.0,
        metavar="SHARE",
        help="pass on ranks rounded to this share of the mean rank, such as 0.01 (default a millionth)",
    )
    add("--top", type=at_least(1), default=10, metavar="N", help="print the N highest ranks (default 10)")


JOB = Job(
    name="pagerank",
    about=__doc__,
    fields=(Field("node", is_node=True), Field("rank")),
    question=ranks,
    summary=summary,
    check=scratch.pagerank,
    picture=picture.ranked(1, "PageRank", "rank (the mean is 1)", 1 / UNIT),
    add_options=add_options,
)

if __name__ == "__main__":
    sys.exit(run(JOB))
