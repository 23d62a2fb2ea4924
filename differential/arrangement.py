"""Arrangements: a collection indexed by key, shared by everything that needs it.

An arrangement is a stream of immutable batches and a trace that holds them all, merged and compacted as far as its
readers allow. Operators receive each batch once, when it is sealed, and look up the past in the trace; so one index
serves any number of joins and reductions, and inner scopes see it through `enter` without a copy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from differential.codes import Encoder, watcher
from differential.export import Export
from differential.trace.batch import Batch
from differential.trace.handle import TraceHandle
from differential.updates import Updates
from timely.dataflow.inline import inline, inline_timed
from timely.errors import BuildError

if TYPE_CHECKING:
    from differential.collection import Collection
    from differential.operators.groups import Groups
    from differential.traces import Trace
    from timely.dataflow.stream import Scope, Stream


class Arrangement:
    """A collection, indexed. `key` and `value` say what the codes in its batches mean.

    >>> def program(scope):
    ...     edges = Collection.of(scope, np.array([1, 1, 2]), np.array([2, 3, 3])).arrange_by_key()
    ...     degrees = edges.count()
    ...     return edges.join(degrees)  # the index serves both
    >>> example(program)
    [((1, 2, 2), 1), ((1, 3, 2), 1), ((2, 3, 1), 1)]
    """

    def __init__(self, stream: Stream, trace: TraceHandle, key: Encoder, value: Encoder, keys: int) -> None:
        self.stream = stream
        self.key = key
        self.value = value
        self.keys = keys
        self.is_in_order = stream.scope.width == 1 and trace.since is None
        """Whether each batch has the totally ordered times of its interval, so that it may be answered at once."""
        self._trace = trace
        self._entered: dict[Scope, Arrangement] = {}
        self._export: Export | None = None
        trace.watch(watcher(key, value))
        # Readers clone this handle while the dataflow is built; from then on only they hold the trace back.
        stream.scope.dataflow.when_built(trace.drop)
        stream.scope.dataflow.when_complete(trace.drop)  # also of one that could not be built

    def __repr__(self) -> str:
        return f"<arrangement in {self.scope}, keys={self.keys}>"

    @property
    def scope(self) -> Scope:
        """The scope whose times the batches have."""
        return self.stream.scope

    def reader(self) -> TraceHandle:
        """Return a handle of its own on the trace, which keeps what it may read until it says otherwise."""
        return self._trace.clone()

    def trace(self) -> Trace:
        """Return a reader for the program outside, which outlives the building of the dataflow (see `Trace`).

        Called while the dataflow is built, by all workers.

        Raises BuildError once the dataflow is built, and where the arrangement was made in a scope further out.

        >>> def program(worker):
        ...     with worker.dataflow() as scope:
        ...         trace = Collection.of(scope, np.array([3, 4, 4])).arrange_by_key().trace()
        ...     worker.step_while(lambda: trace.upper)
        ...     return trace.contents(0).records()
        >>> execute_directly(program)
        {(3,): 1, (4,): 2}
        """
        from differential.traces import Trace

        dataflow = self.scope.dataflow
        if dataflow.built:
            raise BuildError(f"{dataflow} runs already: take the trace inside its `with` block")
        if self._export is None:
            if self._trace.is_entered:
                raise BuildError("an inner scope has no trace of its own: take that of the arrangement outside")
            self._export = Export(self)
        return Trace(self._export, self.reader())

    def enter(self, scope: Scope) -> Arrangement:
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
        if not scope.is_within(self.scope):
            where = f"cannot enter {scope} from {self.scope}"
            if scope.dataflow is not self.scope.dataflow:
                raise BuildError(f"{where}, of another dataflow: import its trace there (Trace.import_into)")
            raise BuildError(f"{where}: it does not lie inside it")
        more = scope.width - self.scope.width
        suffix = (0,) * more
        stream = inline_timed(
            self.stream,
            lambda time, batch: (time + suffix, cast(Any, _entered(cast(Any, batch), more))),
            name="enter",
            scope=scope,
            summary=self.scope.summary_to(scope),
        )
        trace = self._trace.clone()
        for _ in range(more):
            trace = trace.enter()
        entered = self._entered[scope] = Arrangement(stream, trace, self.key, self.value, self.keys)
        return entered

    def as_collection(self) -> Collection:
        """Return the collection of the records arranged here; arranging it by its key again costs nothing.

        >>> def program(scope):
        ...     edges = Collection.of(scope, np.array([1, 2]), np.array([2, 3])).arrange_by_key()
        ...     return edges.as_collection().filter(lambda source, target: target > 2)
        >>> example(program)
        [((2, 3), 1)]
        """
        from differential.collection import Collection

        return Collection.arranged(self)

    def as_updates(self) -> Stream:
        """Return the stream of the batches as updates, decoded."""

        def transform(batch: Any) -> Updates:
            sealed: Batch = batch
            length = len(sealed)
            columns = (*self.key.decode(sealed.keys, length), *self.value.decode(sealed.vals, length))
            return Updates(columns, sealed.times, sealed.time_index, sealed.diffs)

        return inline(self.stream, transform, name="as_collection")

    # By key, from what is indexed already

    def join(self, other: Collection | Arrangement, *, name: str = "join") -> Collection:
        """Return (key, value, other value) for all pairs with equal keys; see `Collection.join`.

        >>> def program(scope):
        ...     ages = Collection.of(scope, np.array(["ann", "bob"]), np.array([30, 40])).arrange_by_key()
        ...     return ages.join(Collection.of(scope, np.array(["ann"]), np.array(["Rome"])))
        >>> example(program)
        [(('ann', 30, 'Rome'), 1)]
        """
        return self.as_collection().join(other, name=name)

    def join_map(
        self, other: Collection | Arrangement, function: Callable[..., Any], *, keys: int = 1, name: str = "join_map"
    ) -> Collection:
        """Return `function(*key, *value, *other value)` for all pairs; see `Collection.join_map`.

        >>> def program(scope):
        ...     ages = Collection.of(scope, np.array(["ann", "bob"]), np.array([30, 40])).arrange_by_key()
        ...     return ages.join_map(ages, lambda name, age, again: (name, age + again))
        >>> example(program)
        [(('ann', 60), 1), (('bob', 80), 1)]
        """
        return self.as_collection().join_map(other, function, keys=keys, name=name)

    def reduce(self, function: Callable[[Groups], Any], *, name: str = "reduce") -> Collection:
        """Return (key, value) for the values that `function` makes of each key's values; see `Collection.reduce`.

        >>> def values(groups):
        ...     return np.arange(len(groups)), np.diff(groups.offsets)
        >>> def program(scope):
        ...     return Collection.of(scope, np.array([1, 1]), np.array([5, 6])).arrange_by_key().reduce(values)
        >>> example(program)
        [((1, 2), 1)]
        """
        return self.as_collection().reduce(function, name=name)

    def count(self, *, signed: bool = False, name: str = "count") -> Collection:
        """Return (key, number of records with that key); see `Collection.count`.

        >>> example(lambda scope: Collection.of(scope, np.array([3, 3])).arrange_by_key().count())
        [((3, 2), 1)]
        """
        return self.as_collection().count(signed=signed, name=name)

    def distinct(self, *, name: str = "distinct") -> Collection:
        """Return every record once that occurs at all; see `Collection.distinct`.

        >>> example(lambda scope: Collection.of(scope, np.array([3, 3])).arrange_by_key().distinct())
        [((3,), 1)]
        """
        return self.as_collection().distinct(name=name)


def _entered(batch: Batch, more: int) -> Batch:
    for _ in range(more):
        batch = batch.enter()
    return batch
