"""Collections and arrangements without their operators.

A *collection* is a stream of updates `(data, time, diff)`; at time `t`, a record occurs as often as the diffs of its
updates at times not after `t` add up to. A record is a row of columns; its first `keys` columns are its key, by which
it is joined, reduced and sent to a worker, and the rest is its value.

An *arrangement* is the same collection indexed by key: a stream of immutable batches, and a trace that holds them all,
merged and compacted as far as its readers allow. Operators receive each batch once, when it is sealed, and look up the
past in the trace. So one index serves any number of joins and reductions, and inner scopes see it through `enter`
without a copy.

Operators are functions over the two types of this module. They return collections of the class that they receive, by
`CollectionCore.with_stream` and `ArrangementCore.derived`, and so do not know the classes that list them as methods
(`differential.collection`). Those classes define how to make one from the other, in the abstract methods below.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar, cast

from differential.arrangement.arrange import arrange
from differential.arrangement.arranged import Arranged, decoder
from differential.arrangement.export import Export
from differential.data.codes import Encoder
from differential.keys import check_keys
from differential.trace.batch import entering
from differential.trace.entered import Entered
from differential.trace.handle import TraceHandle
from differential.trace.reader import TraceReader
from timely import Scope, Stream
from timely.errors import BuildError
from timely.lowlevel import StreamCore, check_kind, inline, inline_timed, user_origin

C = TypeVar("C", bound="CollectionCore")
"""The class of collections that an operator receives and returns."""


_OF_UPDATES = "a stream of updates; Collection.of(scope, ...) makes a collection of values"


class Keyed(Protocol[C]):
    """A collection, or an arrangement of one: what operators by key take."""

    keys: int

    @property
    def scope(self) -> Scope:
        """The scope whose times the updates have."""

    def arrange_by_key(self) -> ArrangementCore[C]:
        """Return the collection indexed by key."""


class CollectionCore(ABC):
    """A collection of records whose first `keys` columns are their key."""

    def __init__(self, stream: Stream, keys: int = 1) -> None:
        check_kind("collection", StreamCore, _OF_UPDATES, stream=stream)
        check_keys(keys)
        self._scope = stream.scope
        self._stream: Stream | None = stream
        self._make_stream: Callable[[], Stream] | None = None
        self._outside: Self | None = None
        self._arrangement: ArrangementCore[Self] | None = None
        self.keys = keys

    @classmethod
    def arranged(cls, arrangement: ArrangementCore[Self]) -> Self:
        """Return the collection that an arrangement indexes. Its updates are decoded only if an operator needs them."""
        collection = cls._lazy(arrangement.scope, arrangement.keys, arrangement.as_updates)
        collection._arrangement = arrangement
        return collection

    @classmethod
    def entered(cls, outside: Self, scope: Scope, stream: Callable[[], Stream]) -> Self:
        """Return `outside` as an inner scope sees it. It shares the arrangement outside."""
        collection = cls._lazy(scope, outside.keys, stream)
        collection._outside = outside
        return collection

    @classmethod
    def _lazy(cls, scope: Scope, keys: int, stream: Callable[[], Stream]) -> Self:
        collection = cls.__new__(cls)
        collection._scope = scope
        collection._stream = None
        collection._make_stream = stream
        collection._outside = None
        collection._arrangement = None
        collection.keys = keys
        return collection

    def __repr__(self) -> str:
        return f"<collection in {self.scope}, keys={self.keys}>"

    if not TYPE_CHECKING:

        def __getitem__(self, place: object) -> object:
            raise TypeError(
                "a collection is not a list, since it has records once the dataflow runs: output() gathers them, and "
                "map and filter take functions of them"
            )

    @property
    def scope(self) -> Scope:
        """The scope whose times the updates have."""
        return self._scope

    @property
    def stream(self) -> Stream:
        """The stream of updates (`differential.data.updates.Updates`)."""
        if self._stream is None:
            assert self._make_stream is not None
            self._stream = self._make_stream()
        return self._stream

    def with_stream(self, stream: Stream, keys: int | None = None) -> Self:
        """Return a collection of the same class over other updates, with as many key columns unless `keys` is given."""
        return type(self)(stream, self.keys if keys is None else keys)

    def arrange_by_key(self) -> ArrangementCore[Self]:
        """Return this collection indexed by key. The first call makes the index, and all callers share it."""
        if self._arrangement is None:
            if self._outside is not None:
                self._arrangement = self._outside.arrange_by_key().enter(self._scope)
            else:
                self._arrangement = self.arrange_by(self.keys)
        return self._arrangement

    def arrange_by(self, keys: int, *, name: str = "arrange") -> ArrangementCore[Self]:
        """Return this collection indexed by its first `keys` columns, in an index that nobody shares yet."""
        arranged = arrange(self.stream, keys, name=name)
        names: tuple[str, ...] = getattr(self, "names", None) or ()  # a collection of a session has them
        arranged.key.names, arranged.value.names = names[:keys], names[keys:]
        return self.indexed(arranged)

    @abstractmethod
    def indexed(self, arranged: Arranged) -> ArrangementCore[Self]:
        """Return the arrangement of this collection that has the given parts."""


class ArrangementCore(ABC, Generic[C]):
    """A collection of class `C`, indexed. `key` and `value` know what the codes in its batches mean."""

    def __init__(self, stream: Stream, trace: TraceReader, key: Encoder, value: Encoder, keys: int) -> None:
        self.stream = stream
        self.key = key
        self.value = value
        self.keys = keys
        self.updates_of = decoder(key, value)
        """Returns a batch as updates, decoded."""
        self.is_advanced = trace.is_advanced
        """Whether a batch may have updates later than at the times of its interval, which are not final with it."""
        self.is_in_order = stream.scope.width == 1 and not self.is_advanced
        """Whether each batch has the totally ordered times of its interval, so that it may be answered at once."""
        self._trace = trace
        # One for each scope, so that all operators in a scope share its stream and its batches.
        self._entered: dict[Scope, Self] = {}
        self._export: Export | None = None
        # Readers clone this handle while the dataflow is built; from then on only they hold the trace back.
        stream.scope.dataflow.when_built(trace.drop)
        stream.scope.dataflow.when_complete(trace.drop)  # also of one that could not be built

    def __repr__(self) -> str:
        return f"<arrangement in {self.scope}, keys={self.keys}>"

    @property
    def scope(self) -> Scope:
        """The scope whose times the batches have."""
        return self.stream.scope

    def reader(self) -> TraceReader:
        """Return a reader of the trace. It holds back what it may read until it moves its frontiers."""
        return self._trace.clone()

    def exported(self) -> tuple[Export, TraceHandle]:
        """Return what a reader outside the dataflow needs: the stream as seen from outside, and a handle on the trace.

        Raises BuildError once the dataflow is built, and where the arrangement was made in a scope further out.
        """
        dataflow = self.scope.dataflow
        if dataflow.built:
            raise BuildError(f"at {user_origin()}: {dataflow} runs already: take the trace inside its `with` block")
        trace = self._trace
        if not isinstance(trace, TraceHandle):
            raise BuildError(
                f"at {user_origin()}: an inner scope has no trace of its own: take that of the arrangement outside"
            )
        if self._export is None:  # one for all traces, which follows the stream once
            self._export = Export(self.stream, self.key, self.value, self.keys)
        return self._export, trace.uncut()

    def enter(self, scope: Scope) -> Self:
        """Return this arrangement inside an inner scope; nothing is copied.

        Raises BuildError where `scope` does not lie inside the arrangement's.

        >>> def reached(scope):
        ...     edges = Collection.of(scope, np.array([1, 2, 4]), np.array([2, 3, 5])).arrange_by_key()
        ...     def step(nodes):
        ...         inside = edges.enter(nodes.scope)
        ...         return nodes.join_map(inside, lambda node, target: target).concat(nodes).distinct()
        ...     return Collection.of(scope, 1).map(lambda node: node).iterate(step)
        >>> example(reached)
        [((1,), 1), ((2,), 1), ((3,), 1)]
        """
        known = self._entered.get(scope)
        if known is not None:
            return known
        if scope is self.scope:
            return self
        summary = scope.summary_of_entering(self.scope, "import its trace there (Trace.import_into)")
        more = len(summary.suffix)
        stream = inline_timed(self.stream, entering(more), name="enter", scope=scope, summary=summary)
        trace = self._trace.clone()
        for _ in range(more):
            trace = Entered(trace)
        entered = self._entered[scope] = self.derived(stream, trace, self.value)
        return entered

    def derived(self, stream: Stream, trace: TraceReader, value: Encoder) -> Self:
        """Return an arrangement of the same class and by the same keys, over other batches with other values."""
        return type(self)(stream, trace, self.key, value, self.keys)

    def arrange_by_key(self) -> Self:
        """Return this arrangement: it is indexed already."""
        return self

    def as_updates(self) -> Stream:
        """Return the stream of the batches as updates, decoded."""
        return inline(self.stream, cast(Any, self.updates_of), name="as_collection")

    @abstractmethod
    def as_collection(self) -> C:
        """Return the collection of the records arranged here; arranging it by its key again costs nothing."""

    @abstractmethod
    def with_updates(self, stream: Stream, keys: int) -> C:
        """Return a collection of class `C` over other updates."""


def records_of(collection: Keyed[C]) -> C:
    """Return what an operator on records takes; the one of an arrangement is indexed already, if that is needed."""
    return collection.as_collection() if isinstance(collection, ArrangementCore) else cast(C, collection)
