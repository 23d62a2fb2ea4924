"""The edges a worker has, in layers: each holds those of the times up to its own that no layer before it holds.

Who reads at a time sees the layers of that time and before. Two layers may become one, of the later time, once nobody
will read at a time that is not at or after it: whoever reads is watched by a probe. Layers of times neither of which is
before the other stay apart. A layer is put together with the
one before it when it is at least half as large; so however many epochs edges come in, the layers are about as many as
the edges have binary digits, and an edge is indexed anew about as often.
"""

from __future__ import annotations

from timely import Columns, Probe, Stream, Time
from timely.data.container import Array, concatenate
from timely.graphlinq.adjacency import Adjacency
from timely.order import less_equal


class Layers:
    """Edges by time; see the module.

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
        """Keep layers apart as long as `stream`, in the edges' scope, may still need it."""
        self._is_read = True
        stream.probe_with(self._readers)

    def add(self, time: Time, columns: tuple[Array, ...]) -> None:
        """Add the edges of a time, all of them."""
        layers = self._layers
        layers.append((time, Adjacency(columns)))
        while len(layers) > 1:
            (earlier, before), (_, last) = layers[-2:]
            if len(before) > 2 * len(last) or not less_equal(earlier, time) or not self._are_over(time):
                return
            both = concatenate([Columns(before.columns()), Columns(last.columns())])
            layers[-2:] = [(time, Adjacency(both.columns))]

    def at(self, time: Time) -> list[Adjacency]:
        """Return the edges of all times at or before `time`, which may have counters of loops besides."""
        return [adjacency for added, adjacency in self._layers if less_equal(added, time[: len(added)])]

    def _are_over(self, time: Time) -> bool:
        """Return whether nobody will read any more at times that are not at or after `time`."""
        return not self._is_read or all(less_equal(time, each) for each in self._readers.frontier.elements)
