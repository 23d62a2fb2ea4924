"""How often the edges that changes remove occur, so that the removal of an absent edge is found before it is made.

A collection cannot hold a record a negative number of times, and a job names the line that would make it do so. Worker
0 reads the changes, but each edge lives on one of many workers. So worker 0 asks for the edges that it is about to
remove: it inserts them into a collection of their own, and a semijoin returns those that occur. From then on worker 0
keeps their counts itself, because all changes are its own. An edge is asked for once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from differential import Collection, new_input
from differential.jobs.gathered import Gathered
from differential.jobs.input.changes import EpochChange
from timely import Scope

Edge = tuple[Any, ...]


class EdgePresence:
    """The number of occurrences of each edge that a change removes, on worker 0."""

    def __init__(self, scope: Scope, edges: Collection, width: int) -> None:
        """Build the semijoin; an edge has `width` fields."""
        self.session, asked = new_input(scope, keys=width, name="edges to remove")
        # All fields are the key, so one look-up finds one edge.
        whole = edges.map(lambda *edge: edge, keys=width)
        self.found = Gathered(whole.semijoin(asked), "edges to remove")
        self._counts: dict[Edge, int] = {}

    def unknown(self, changes: Iterable[EpochChange]) -> list[Edge]:
        """Return the edges that the changes remove and nobody has asked for."""
        removed = dict.fromkeys(edge for change in changes for edge, diff in _rows(change) if diff < 0)
        return [edge for edge in removed if edge not in self._counts]

    def ask(self, edges: list[Edge]) -> None:
        """Ask for edges in the session's epoch, and take the question back in the next one, to which this advances."""
        columns = [np.array(column) for column in zip(*edges)]
        self.session.insert(*columns)
        self.session.advance_to(self.session.epoch + 1)
        self.session.remove(*columns)

    def learn(self, edges: list[Edge], epoch: int) -> None:
        """Read how often the edges occur that were asked for in `epoch`, which must be final."""
        self._counts.update(dict.fromkeys(edges, 0))
        for delta in self.found.deltas(epoch + 1):
            # In the next epoch the question, and so its answer, is taken back.
            if delta.epoch == epoch:
                columns = (column.tolist() for column in delta.columns)
                self._counts.update(zip(zip(*columns), delta.diffs.tolist()))

    def admitted(self, change: EpochChange, reject: Callable[[Edge], None]) -> EpochChange:
        """Return the change without the rows that remove an absent edge; `reject` is called for each of these.

        The rows of a change happen at one time, so it may remove what it adds, in whichever order.
        """
        rows = list(_rows(change))
        for edge, diff in rows:
            # Other edges are counted by the collection, from which `ask` reads them if they are to be removed later.
            if diff > 0 and edge in self._counts:
                self._counts[edge] += diff
        kept = []
        for row, (edge, diff) in enumerate(rows):
            if diff < 0:
                # It is known: all edges that a chunk of changes removes are asked for before its first change is made.
                if self._counts[edge] + diff < 0:
                    reject(edge)
                    continue
                self._counts[edge] += diff
            kept.append(row)
        if len(kept) == len(change.diff):
            return change
        source, target, weight = change.source[kept], change.target[kept], change.weight
        return change._replace(
            source=source, target=target, weight=None if weight is None else weight[kept], diff=change.diff[kept]
        )


def _rows(change: EpochChange) -> Iterator[tuple[Edge, int]]:
    columns = [change.source, change.target, *(() if change.weight is None else (change.weight,))]
    return zip(zip(*(column.tolist() for column in columns)), change.diff.tolist())
