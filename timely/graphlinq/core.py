"""A graph whose edges arrive on a stream: its index on each worker, its transpose, and the graph in a loop."""

from __future__ import annotations

from typing import Literal, Self

from timely import Columns, Exchange, InputPort, Notificator, OutputPort, Probe, Scope, Stream, Time
from timely.graphlinq.adjacency import Adjacency
from timely.graphlinq.degrees import degrees as _degrees
from timely.graphlinq.index import as_nodes, check_edges
from timely.lowlevel import Array, check_streams, concatenate, less_equal, of_columns, refusal

Partition = Literal["source", "edge"]


class GraphCore:
    """A graph without the operators that send along its edges."""

    def __init__(self, edges: Stream, *, partition: Partition = "source") -> None:
        if partition not in ("source", "edge"):
            raise refusal("Graph", f"a graph is partitioned by 'source' or by 'edge', not by {partition!r}")
        check_streams("Graph", edges=edges)
        self.edges = edges.map_batch(_checked, name="edges")
        self.scope: Scope = edges.scope
        self.partition: Partition = partition
        self._outer: Self | None = None
        self._layers = Layers()
        self._loaded: Stream | None = None
        self._transpose: Self | None = None
        self._both_ways: Self | None = None
        self._degrees: Stream | None = None

    # Its parts
    @property
    def layers(self) -> Layers:
        """The edges on this worker."""
        return self.outermost._layers

    @property
    def outermost(self) -> Self:
        """The graph from which this one was entered into a loop; itself if it was not entered."""
        return self if self._outer is None else self._outer.outermost

    @property
    def loaded(self) -> Stream:
        """A stream without messages, whose frontier shows up to which times all edges are in `layers`."""
        if self._loaded is None:
            self._loaded = load(self) if self._outer is None else self._outer.loaded.enter(self.scope)
        return self._loaded

    def degrees(self) -> Stream:
        """Return (node, number of edges out of it) for every node so far, at each time at which edges arrive."""
        if self._degrees is None:
            outer = self._outer
            self._degrees = _degrees(self.edges) if outer is None else outer.degrees().enter(self.scope)
        return self._degrees

    def nodes(self) -> Stream:
        """Return all nodes of edges so far, at each time at which edges arrive.

        >>> example(lambda scope: Graph(scope.to_stream((np.array([3]), np.array([1])))).nodes())
        [1, 3]
        """
        return self.degrees().map(lambda node, _: node, name="nodes")

    # Other graphs
    def transpose(self) -> Self:
        """Return the graph with all edges reversed.

        >>> edges = (np.array([0, 0]), np.array([1, 2]))
        >>> example(lambda scope: Graph(scope.to_stream(edges)).transpose().degrees())
        [(0, 0), (1, 1), (2, 1)]
        """
        if self._outer is not None:
            return self._outer.transpose().enter(self.scope)
        if self._transpose is None:
            self._transpose = type(self)(self.edges.map(_reversed, name="transpose"), partition=self.partition)
            # So the graph transposed twice is this one, and has no third index.
            self._transpose._transpose = self
        return self._transpose

    def both_ways(self) -> Self:
        """Return the graph with each edge in both directions.

        >>> edges = (np.array([0, 0]), np.array([1, 2]))
        >>> example(lambda scope: Graph(scope.to_stream(edges)).both_ways().degrees())
        [(0, 2), (1, 1), (2, 1)]
        """
        if self._outer is not None:
            return self._outer.both_ways().enter(self.scope)
        if self._both_ways is None:
            edges = self.edges.concat(self.edges.map(_reversed, name="transpose"))
            self._both_ways = type(self)(edges, partition=self.partition)
        return self._both_ways

    def enter(self, scope: Scope) -> Self:
        """Return the same graph for use in a scope inside its own; it shares the index of the edges.

        >>> def hops(scope):
        ...     graph = Graph(scope.to_stream((np.array([0, 1, 2]), np.array([1, 2, 3]))))
        ...     with scope.iterative() as loop:
        ...         handle, again = loop.feedback()
        ...         nodes = scope.to_stream((np.array([0]), np.array([0]))).enter(loop).concat(again)
        ...         reached = graph.enter(loop).transmit(nodes).map(lambda node, hops: (node, hops + 1))
        ...         reached.connect_loop(handle)
        ...         return reached.leave()
        >>> example(hops)
        [(1, 1), (2, 2), (3, 3)]
        """
        inner = type(self)(self.edges.enter(scope), partition=self.partition)
        inner._outer = self
        return inner


def load(graph: GraphCore) -> Stream:
    """Distribute the edges to the workers and index them there; return a stream that shows how far this is complete."""
    waiting: dict[Time, list[Columns]] = {}
    layers = graph.layers

    def logic(input: InputPort, output: OutputPort, notificator: Notificator) -> None:
        for capability, batch in input:
            waiting.setdefault(capability.time, []).append(Columns(of_columns(batch)))
            notificator.notify_at(capability)
        for time, _ in notificator:
            # The notification still holds its capability, so the frontier of `loaded` passes a time only after this, on
            # all workers.
            layers.add(time, concatenate(waiting.pop(time)).columns)

    by = 1 if graph.partition == "source" else 2
    return graph.edges.unary_notify(Exchange(lambda *columns: columns[:by]), logic, name="load edges")


def _checked(*columns: Array) -> tuple[Array, ...]:
    """Return the columns of edges; raise DataError if they cannot be edges."""
    check_edges(columns)
    return (as_nodes(columns[0]), as_nodes(columns[1]), *columns[2:])


def _reversed(source: Array, target: Array, *values: Array) -> tuple[Array, ...]:
    return (target, source, *values)


class Layers:
    """The edges of a worker, in layers: each holds the edges of times up to its own that no earlier layer holds.

    A reader at a time uses the layers of that time and before. Two layers may become one, at the later time, once all
    future reads are at or after it; a probe watches the readers. Layers of incomparable times stay apart.

    A layer is merged with the one before it when it is at least half as large. So however many epochs they arrive in, m
    edges are in at most about log2 m layers, and each edge is indexed again about as often.

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
        while layers and (not self._is_read or all(less_equal(time, each) for each in self._readers.frontier.elements)):
            earlier, before = layers[-1]
            if len(before) > 2 * len(edges) or not less_equal(earlier, time):
                break
            layers.pop()
            edges = concatenate([Columns(before.columns()), edges])
        layers.append((time, Adjacency(edges.columns)))

    def at(self, time: Time) -> list[Adjacency]:
        """Return the edges of all times at or before `time`, which may have additional loop counters."""
        return [adjacency for added, adjacency in self._layers if less_equal(added, time[: len(added)])]
