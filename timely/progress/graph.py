"""The part of a dataflow that progress sees: locations, and edges with path summaries.

A location is an operator's input or output port, numbered from 0. An edge says what becomes of a time between
two of them: nothing along a channel, a counter more into a loop, one less out of it, one round more at its
feedback. Between two locations only the minimal summaries matter, an antichain of them: whatever another path
results in, one of these results in something at or before it.

`contract` removes the locations that nobody asks about, so that tracking costs what the others cost.

>>> one, two = PathSummary.identity(1), PathSummary.identity(2)
>>> loop = [Edge(0, 1, PathSummary.enter(1)), Edge(1, 2, two), Edge(2, 1, PathSummary.feedback(2))]
>>> contract([*loop, Edge(2, 3, PathSummary.leave(2))], keep={0, 3}) == [Edge(0, 3, one)]
True
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import NamedTuple

from timely.progress.summary import PathSummary


class Edge(NamedTuple):
    """What is at `source` at a time may result in something at `target` at the time the summary makes of it."""

    source: int
    target: int
    summary: PathSummary


def insert_minimal(summaries: list[PathSummary], summary: PathSummary) -> bool:
    """Insert `summary` into an antichain unless one of it is at or before it; whether it was inserted."""
    if any(known.less_equal(summary) for known in summaries):
        return False
    summaries[:] = [known for known in summaries if not summary.less_equal(known)]
    summaries.append(summary)
    return True


def summaries_to(target: int, length: int, edges: Iterable[Edge]) -> dict[int, list[PathSummary]]:
    """The minimal path summaries to `target` from each location that reaches it.

    The target's times have `length` coordinates. The target itself has the identity, and what cycles through
    it add. Paths are extended backwards while they yield a summary that no known one is at or before. That
    ends: summaries cannot be pairwise not at or before an earlier one forever (Dickson's lemma).
    """
    incoming: defaultdict[int, list[Edge]] = defaultdict(list)
    for edge in edges:
        incoming[edge.target].append(edge)
    start = PathSummary.identity(length)
    found: defaultdict[int, list[PathSummary]] = defaultdict(list, {target: [start]})
    pending = [(target, start)]
    while pending:
        location, onward = pending.pop()
        if onward not in found[location]:
            continue
        for edge in incoming[location]:
            summary = edge.summary.followed_by(onward)
            if insert_minimal(found[edge.source], summary):
                pending.append((edge.source, summary))
    return dict(found)


def contract(edges: Iterable[Edge], keep: Collection[int], *, most: int | None = None) -> list[Edge]:
    """The edges between the locations in `keep` that stand for all paths through the others.

    A location is removed by joining each edge into it to each edge out of it, with any number of turns of its
    own loops in between. Could-result-in among the locations kept is what it was. A loop at one location that
    never results in less than the time it started with says nothing and is left out. Costs in-degree times
    out-degree per location removed, those with few neighbours first. With `most`, a location whose removal would
    leave more than so many edges more stays too: a hub between many locations and many others costs less than an
    edge between each two of them.
    """
    paths: defaultdict[int, dict[int, list[PathSummary]]] = defaultdict(dict)
    sources: defaultdict[int, set[int]] = defaultdict(set)

    def insert(source: int, target: int, summary: PathSummary) -> None:
        between = paths[source].get(target)
        if between is None:
            between = paths[source][target] = [PathSummary.identity(summary.length)] if source == target else []
            sources[target].add(source)
        insert_minimal(between, summary)

    for edge in edges:
        insert(*edge)
    removed = (set(paths) | set(sources)).difference(keep)
    for location in sorted(removed, key=lambda location: (len(paths[location]) * len(sources[location]), location)):
        into, out = len(sources[location]), len(paths[location])
        if most is not None and into * out - into - out > most:
            continue
        turns = paths[location].pop(location, None)
        sources[location].discard(location)
        onward = paths.pop(location, {})
        for source in sources.pop(location):
            for arriving in _then_any_number_of(paths[source].pop(location), turns):
                for target, leaving in onward.items():
                    for summary in leaving:
                        insert(source, target, arriving.followed_by(summary))
        for target in onward:
            sources[target].discard(location)
    return [
        Edge(source, target, summary)
        for source, targets in sorted(paths.items())
        for target, summaries in sorted(targets.items())
        for summary in sorted(summaries)
        if source != target or summary != PathSummary.identity(summary.length)
    ]


def _then_any_number_of(arriving: list[PathSummary], turns: list[PathSummary] | None) -> list[PathSummary]:
    """The minimal summaries of one of `arriving` followed by any sequence of `turns`, none included."""
    found = list(arriving)
    pending = list(arriving) if turns else []
    while pending:
        summary = pending.pop()
        for turn in turns or ():
            further = summary.followed_by(turn)
            if insert_minimal(found, further):
                pending.append(further)
    return found
