"""The edges of a worker, in layers: each holds the edges of times up to its own that no earlier layer holds.

A reader at a time uses the layers of that time and before. Two layers may become one, at the later time, once all
future reads are at or after it; a probe watches the readers. Layers of incomparable times stay apart.

A layer is merged with the one before it when it is at least half as large. So however many epochs they arrive in, m
edges are in at most about log2 m layers, and each edge is indexed again about as often.
"""

from __future__ import annotations

from timely import Columns, Probe, Stream, Time
from timely.graphlinq.adjacency import Adjacency
from timely.lowlevel import Array, concatenate, less_equal


class Layers:
    """The layers of one graph on one worker.

    >>> layers = Layers()
    >>> for epoch in range(3):
    ...     layers.add((epoch,), (np.array([epoch]), np.array([9])))
    >>> len(layers.at((2, 7)))
    1
    """

    __slots__ = ("_is_read", "_layers", "_readers")

    def __init__(self) -> None:
        self._layers: list[tuple[Time, Adjacency]] = []
        self._readers = Probe()
        self._is_read = False

    def watch(self, stream: Stream) -> None:
        """Keep layers apart as long as `stream`, in the scope of the edges, may still read them."""
        self._is_read = True
        stream.probe_with(self._readers)

    def add(self, time: Time, columns: tuple[Array, ...]) -> None:
        layers, edges = self._layers, Columns(columns)
        # A merged layer has the later time, so no read may come that is not at or after it: such a read would lack the
        # earlier edges.
        while layers and self._are_reads_at_or_after(time):
            earlier, before = layers[-1]
            if len(before) > 2 * len(edges) or not less_equal(earlier, time):
                break
            layers.pop()
            edges = concatenate([Columns(before.columns()), edges])
        layers.append((time, Adjacency(edges.columns)))

    def at(self, time: Time) -> list[Adjacency]:
        """Return the edges of all times at or before `time`, which may have additional loop counters."""
        return [adjacency for added, adjacency in self._layers if less_equal(added, time[: len(added)])]

    def _are_reads_at_or_after(self, time: Time) -> bool:
        return not self._is_read or all(less_equal(time, each) for each in self._readers.frontier.elements)
