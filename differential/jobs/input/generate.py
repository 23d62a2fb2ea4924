"""Generated graphs, `random:NODES,EDGES[,SEED]` and `rmat:SCALE,FACTOR[,SEED]`, and their changes.

Edges are made in chunks, each from a seed of its own, so that a graph is the same for any number of workers, and every
worker makes only its chunks. `rmat` is the recursive matrix of Graph500 (Chakrabarti, Zhan and Faloutsos, SDM 2004): 2
** SCALE nodes and FACTOR times as many edges, each of which falls into one of four quadrants at each of SCALE levels.
Nodes are not renumbered: node 0 has the most edges.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from differential.jobs.input.changes import EpochChange
from differential.jobs.input.edges import EdgeBatch, Ints, OpenedGraph, Progress
from differential.jobs.input.layout import InputLayout
from timely.errors import DataError

CHUNK = 1 << 18
"""How many edges are made from one seed."""
LOWER_SOURCE = 0.57 + 0.19
"""The probability that the source is in the lower half of the nodes."""
LOWER_TARGET = (0.57 / (0.57 + 0.19), 0.19 / (0.19 + 0.05))
"""The probability that the target is in the lower half, if the source is in the lower half, and if it is not."""
USAGE = {"random": "random:NODES,EDGES[,SEED]", "rmat": "rmat:SCALE,FACTOR[,SEED]"}
PREFIX = "replace:"
REPLACE = "replace:COUNT[,SEED]"
AFTER = 1 << 40
"""The number of the chunk from which added edges come: no graph has so many chunks."""
MOST_SCALE = 40
MOST_DIGITS = 100
NUMBERS = f"whole numbers of at most {MOST_DIGITS} digits"

Ends = tuple[Ints, Ints]
Make = Callable[[np.random.Generator, int], Ends]
"""Returns a number of sources and targets."""


@dataclass(frozen=True)
class Generated(OpenedGraph):
    """A graph made by a generator, in chunks of which each has a seed of its own."""

    total: int
    seed: int
    make: Make


def _in_chunks(label: str, total: int, seed: int, make: Make) -> Generated:
    def chunks(index: int, peers: int, progress: Progress) -> Iterator[EdgeBatch]:
        for chunk in range(index, -(-total // CHUNK), peers):
            count = min(CHUNK, total - chunk * CHUNK)
            source, target = make(np.random.default_rng((seed, chunk)), count)
            progress(count)
            yield EdgeBatch(source, target)

    return Generated(label, total, None, None, chunks, seed, make)


def generated(text: str, layout: InputLayout) -> Generated | None:
    """Return the graph that a text such as `random:100,300` describes, or None if it names no generator.

    Raises DataError if the numbers make no graph, or if the layout has a weight, a time or names.
    """
    name, colon, rest = text.partition(":")
    if not colon or name not in USAGE or os.path.exists(text):
        return None
    if not layout.is_plain or layout.names:
        raise DataError(f"{text}: a generated graph has integers as nodes, and neither weights nor times")
    numbers = whole_numbers(rest)
    if numbers is None or not 2 <= len(numbers) <= 3:
        raise DataError(f"{text:.80}: a generated graph is written {USAGE[name]}, with {NUMBERS}")
    one, other, seed = [*numbers, 0][:3]
    if name == "random":
        if not 0 < one < 1 << 63:
            raise DataError(f"{text}: the number of nodes must be at least 1, and less than 2 ** 63")
        return _in_chunks(text, other, seed, _random(one))
    if one > MOST_SCALE:
        raise DataError(f"{text}: the scale must be at most {MOST_SCALE}, for 2 ** {MOST_SCALE} nodes")
    return _in_chunks(text, other << one, seed, _rmat(one))


def whole_numbers(text: str) -> list[int] | None:
    """Return the numbers in a text with commas between them, or None if they are not `NUMBERS`.

    >>> whole_numbers("10,50"), whole_numbers("10,-5"), whole_numbers("10," + 5000 * "9")
    ([10, 50], None, None)
    """
    given = text.split(",")
    if all(each.isascii() and each.isdecimal() and len(each) <= MOST_DIGITS for each in given):
        return [int(each) for each in given]
    return None


def _random(nodes: int) -> Make:
    def make(generator: np.random.Generator, count: int) -> Ends:
        ends = generator.integers(0, nodes, (2, count), np.int64)
        return ends[0], ends[1]

    return make


def _rmat(scale: int) -> Make:
    def make(generator: np.random.Generator, count: int) -> Ends:
        source, target = np.zeros((2, count), np.int64)
        for _ in range(scale):
            is_upper = generator.random(count) >= LOWER_SOURCE
            lower = np.where(is_upper, LOWER_TARGET[1], LOWER_TARGET[0])
            source = source << 1 | is_upper
            target = target << 1 | (generator.random(count) >= lower)
        return source, target

    return make


class Replacements:
    """Changes of a generated graph: `replace:COUNT[,SEED]`.

    Each removes an edge of the graph, in the order in which the generator made them, and adds another of the same
    generator. So the changes are the same for any number of workers.

    >>> from differential.jobs.input.faults import Faults
    >>> from differential.jobs.input.graph import open_graph
    >>> from differential.jobs.input.layout import InputLayout
    >>> graph = open_graph("random:100,300", InputLayout(), Faults())
    >>> [(change.epoch, change.diff.tolist()) for change in Replacements("replace:2", graph).epochs()]
    [(1, [-1, 1]), (2, [-1, 1])]
    """

    def __init__(self, text: str, graph: OpenedGraph) -> None:
        """Raise DataError if the graph is not generated, has fewer edges, or the text is not like `REPLACE`."""
        numbers = whole_numbers(text.removeprefix(PREFIX))
        if numbers is None or not 1 <= len(numbers) <= 2:
            raise DataError(f"{text:.80}: changes of a generated graph are written {REPLACE}, with {NUMBERS}")
        if not isinstance(graph, Generated):
            raise DataError(f"{text} is for generated graphs, such as random:1000,5000; {graph.label} is not one")
        self.label = text
        self.total, self._seed = [*numbers, 0][:2]
        if self.total > graph.total:
            raise DataError(f"{text}: {graph.label} has only {graph.total:,} edges to replace")
        self._graph = graph

    def epochs(self) -> Iterator[EpochChange]:
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
