"""Changes of a generated graph: `replace:COUNT[,SEED]`.

Each change removes an edge of the graph, in the order in which the generator made them, and adds another of the same
generator. So the changes are the same for any number of workers.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from differential.jobs.input.changes import EpochChange
from differential.jobs.input.edges import OpenedGraph
from differential.jobs.input.generate import NUMBERS, Generated, whole_numbers
from timely.errors import DataError

PREFIX = "replace:"
USAGE = "replace:COUNT[,SEED]"

AFTER = 1 << 40
"""The number of the chunk from which added edges come: no graph has so many chunks."""


class Replacements:
    """A number of changes of a generated graph.

    >>> from differential.jobs.input.faults import Faults
    >>> from differential.jobs.input.graph import open_graph
    >>> from differential.jobs.input.layout import InputLayout
    >>> graph = open_graph("random:100,300", InputLayout(), Faults())
    >>> [(change.epoch, change.diff.tolist()) for change in Replacements("replace:2", graph).epochs()]
    [(1, [-1, 1]), (2, [-1, 1])]
    """

    def __init__(self, text: str, graph: OpenedGraph) -> None:
        """Raise DataError if the graph is not generated, has fewer edges, or the text is not like `USAGE`."""
        numbers = whole_numbers(text.removeprefix(PREFIX))
        if numbers is None or not 1 <= len(numbers) <= 2:
            raise DataError(f"{text:.80}: changes of a generated graph are written {USAGE}, with {NUMBERS}")
        if not isinstance(graph, Generated):
            raise DataError(f"{text} is for generated graphs, such as random:1000,5000; {graph.label} is not one")
        self.label = text
        self.total, self._seed = [*numbers, 0][:2]
        if self.total > graph.total:
            raise DataError(f"{text}: {graph.label} has only {graph.total:,} edges to replace")
        self._graph = graph

    def epochs(self) -> Iterator[EpochChange]:
        """Yield the changes."""
        left, epoch = self.total, 0
        for chunk, edges in enumerate(self._graph.share(0, 1)):
            if not left:
                return
            source, target = edges.source[:left], edges.target[:left]
            generator = np.random.default_rng((self._graph.seed, AFTER + chunk, self._seed))
            new_source, new_target = self._graph.make(generator, len(source))
            ends = np.stack([source, new_source], axis=1), np.stack([target, new_target], axis=1)
            left -= len(source)
            for sources, targets in zip(*ends):
                epoch += 1
                yield EpochChange(epoch, epoch, sources, targets, None, np.array([-1, 1]))
