"""The graph that progress tracking sees: locations, and edges with path summaries.

A location is an operator's input or output port, numbered from 0. The summary of an edge maps a time at its source to
the time at its target: the same time along a channel, one more counter into a loop, one fewer out of it, and one more
round at its feedback.

Among the summaries of all paths between two locations only the minimal ones matter, an antichain: for any other path,
one of these results in the same time or an earlier one.

`contract` removes locations whose frontier nobody reads, so that tracking costs nothing for them.

>>> one, two = PathSummary.identity(1), PathSummary.identity(2)
>>> loop = [Edge(0, 1, PathSummary.enter(1)), Edge(1, 2, two), Edge(2, 1, PathSummary.feedback(2))]
>>> contract([*loop, Edge(2, 3, PathSummary.leave(2))], keep={0, 3}) == [Edge(0, 3, one)]
True
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from timely.order import Time, less_equal
from timely.progress.summary import PathSummary


class Edge(NamedTuple):
    """A message at `source` at a time t may result in one at `target` at `summary.results_in(t)`, or later."""

    source: int
    target: int
    summary: PathSummary


def insert_minimal(summaries: list[PathSummary], summary: PathSummary) -> bool:
    """Insert `summary` into an antichain unless an element is at or before it; return whether it was inserted.

    Elements that it is before are removed.

    >>> antichain = [PathSummary.feedback(2)]
    >>> insert_minimal(antichain, PathSummary.feedback(2, 3)), insert_minimal(antichain, PathSummary.identity(2))
    (False, True)
    >>> antichain == [PathSummary.identity(2)]
    True
    """
    if any(known.less_equal(summary) for known in summaries):
        return False
    summaries[:] = [known for known in summaries if not summary.less_equal(known)]
    summaries.append(summary)
    return True


def summaries_to(target: int, length: int, edges: Iterable[Edge]) -> dict[int, list[PathSummary]]:
    """Return the minimal path summaries to `target` from each location that reaches it.

    The target's times have `length` coordinates. The target itself has the identity, and what cycles through it add.

    Paths are extended backwards as long as a new summary is not at or after a known one. This ends: there is no
    infinite sequence of summaries none of which is at or after an earlier one (Dickson's lemma).

    >>> around = Edge(1, 1, PathSummary.feedback(2))
    >>> paths = summaries_to(2, 1, [Edge(0, 1, PathSummary.enter(1)), around, Edge(1, 2, PathSummary.leave(2))])
    >>> paths[0] == [PathSummary.identity(1)], paths[1] == [PathSummary.leave(2)]
    (True, True)
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
            continue  # a smaller summary has replaced it, and covers all that matters
        for edge in incoming[location]:
            summary = edge.summary.followed_by(onward)
            if insert_minimal(found[edge.source], summary):
                pending.append((edge.source, summary))
    return dict(found)


def leads_within(path: PathSummary, time: Time, bound: Time) -> bool:
    """Return whether following `path` from `time` results in a time at or before `bound`."""
    result = path.results_in(time)
    return result is not None and less_equal(result, bound)


def could_result_in(edges: Iterable[Edge], source: tuple[int, Time], target: tuple[int, Time]) -> bool:
    """Return whether a message at `source`, a location and a time, could result in one at `target`.

    >>> loop = [Edge(0, 1, PathSummary.enter(1)), Edge(1, 1, PathSummary.feedback(2))]
    >>> could_result_in(loop, (0, (4,)), (1, (4, 2))), could_result_in(loop, (1, (4, 3)), (1, (4, 2)))
    (True, False)
    """
    location, time = target
    paths = summaries_to(location, len(time), edges).get(source[0], ())
    return any(leads_within(path, source[1], time) for path in paths)


def contract(edges: Iterable[Edge], keep: Collection[int], *, most: int | None = None) -> list[Edge]:
    """Return the edges among the locations in `keep` that stand for all paths through the other locations.

    Invariant: could-result-in among the kept locations does not change. A location is removed by joining each edge into
    it with each edge out of it, with any number of turns of its own loops in between. A loop at one location that never
    results in an earlier time than it started with adds nothing and is left out.

    Removing a location costs in-degree times out-degree; those with few neighbours go first. A location whose removal
    would add more than `most` edges stays: a hub between many locations and many others costs less than an edge between
    each two of them.
    """
    paths: defaultdict[int, dict[int, list[PathSummary]]] = defaultdict(dict)
    sources: defaultdict[int, set[int]] = defaultdict(set)

    def insert(source: int, target: int, summary: PathSummary) -> None:
        between = paths[source].get(target)
        if between is None:
            # A location always results in itself, so of its loops only summaries not at or after the identity count.
            between = paths[source][target] = [PathSummary.identity(summary.length)] if source == target else []
            sources[target].add(source)
        insert_minimal(between, summary)

    for edge in edges:
        insert(*edge)
    pending = [
        (len(paths[location]) * len(sources[location]), location)
        for location in (set(paths) | set(sources)).difference(keep)
    ]
    heapify(pending)
    while pending:
        expected, location = heappop(pending)
        into, out = len(sources[location]), len(paths[location])
        if into * out > expected:  # it has more neighbours since others were removed, so that its turn comes later
            heappush(pending, (into * out, location))
            continue
        if most is not None and into * out - into - out > most:  # the edges that are added, less those that are removed
            continue
        # Its own loop first, so that below the location is neither its own source nor its own target.
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
        if source != target or summary != PathSummary.identity(summary.length)  # which `insert` has put into each loop
    ]


def _then_any_number_of(arriving: list[PathSummary], turns: list[PathSummary] | None) -> list[PathSummary]:
    """Return the minimal summaries of one of `arriving` followed by any sequence of `turns`, including none."""
    found = list(arriving)
    pending = list(arriving) if turns else []
    while pending:
        summary = pending.pop()
        for turn in turns or ():
            further = summary.followed_by(turn)  # ends as in `summaries_to`: only what no known one is before goes on
            if insert_minimal(found, further):
                pending.append(further)
    return found
