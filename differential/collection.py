"""Collections: multisets of records that change with time.

The methods of the classes are the table of contents of `operators/`, whose functions take the types of
`differential.arrangement.core`. The three classes are in one module because a method of each returns another.
"""

from __future__ import annotations

from typing import Any, cast

from differential.arrangement.arranged import Arranged
from differential.arrangement.core import ArrangementCore, CollectionCore
from differential.arrangement.reading import TraceCore
from differential.capture import write as _capture
from differential.keys import EVERY
from differential.operators import (
    aggregates as _aggregates,
    argmin as _argmin,
    assert_empty as _assert_empty,
    attempt as _attempt,
    cogroup as _cogroup,
    concat as _concat,
    consolidate as _consolidate,
    count as _count,
    delay as _delay,
    distinct as _distinct,
    enter as _enter,
    enter_at as _enter_at,
    explode as _explode,
    filter as _filter,
    flat_map as _flat_map,
    identifiers as _identifiers,
    inspect as _inspect,
    iterate as _iterate,
    join as _join,
    leave as _leave,
    map as _map,
    negate as _negate,
    output as _output,
    passed as _passed,
    prefix_sum as _prefix_sum,
    reduce as _reduce,
    reduce_each as _reduce_each,
    sets as _sets,
    totals as _totals,
    window as _window,
)
from differential.operators.constant import constant
from timely import Probe, Scope, Stream
from timely.lowlevel import Antichain, Moment


class _ByKey:
    """The operators that collections and arrangements have: those by key, `distinct` and `threshold`."""

    join = _join.join
    join_map = _join.join_map
    semijoin = _join.semijoin
    antijoin = _join.antijoin
    cogroup = _cogroup.cogroup
    reduce = _reduce.reduce
    reduce_each = _reduce_each.reduce_each
    count = _count.count
    sum = _aggregates.sum
    min = _aggregates.min
    max = _aggregates.max
    argmin = _argmin.argmin
    argmax = _argmin.argmax
    top_k = _aggregates.top_k
    totals = _totals.totals
    prefix_sum = _prefix_sum.prefix_sum
    distinct = _distinct.distinct
    threshold = _distinct.threshold


class Collection(CollectionCore, _ByKey):
    """A collection of records whose first `keys` columns are their key.

    Functions receive columns: read-only NumPy arrays or, of text and bytes, columns that behave as the read-only arrays
    of their strings (`differential.data.interned`), which `np.asarray` makes.

    >>> def program(scope):
    ...     people = Collection.of(scope, np.array(["ann", "bob", "cem"]), np.array(["Rome", "Oslo", "Rome"]))
    ...     return people.map(lambda name, city: city).count()
    >>> example(program)
    [(('Oslo', 1), 1), (('Rome', 2), 1)]
    """

    @classmethod
    def of(cls, scope: Scope, *columns: Any, keys: int = 1) -> Collection:
        """Return a collection that holds the given records from the least time on; only those of worker 0 count.

        >>> example(lambda scope: Collection.of(scope, np.array([1, 2]), np.array(["a", "b"])))
        [((1, 'a'), 1), ((2, 'b'), 1)]
        """
        return cls(constant(scope, columns), keys)

    def arrange_by_key(self) -> Arrangement:
        """Return this collection indexed by key. The first call makes the index, and all callers share it.

        >>> def program(scope):
        ...     edges = Collection.of(scope, np.array([1, 2]), np.array([2, 3]))
        ...     by_source = edges.arrange_by_key()
        ...     print(edges.arrange_by_key() is by_source)
        ...     by_target = edges.map(lambda source, target: (target, source))
        ...     return by_target.join_map(by_source, lambda middle, first, last: (first, last))
        >>> example(program)
        True
        [((1, 3), 1)]
        """
        return cast("Arrangement", super().arrange_by_key())

    def arrange_by_self(self) -> Arrangement:
        """Return this collection indexed by whole records: all columns are the key, and there is no value.

        >>> def program(scope):
        ...     records = Collection.of(scope, np.array([1, 1]), np.array(["a", "a"])).arrange_by_self()
        ...     return records.count()
        >>> example(program)
        [((1, 'a', 2), 1)]
        """
        return cast("Arrangement", self.arrange_by(EVERY, name="arrange_by_self"))

    def indexed(self, arranged: Arranged) -> Arrangement:
        """Return the arrangement of a collection that has the given parts."""
        return Arrangement(*arranged)

    def probe(self) -> Probe:
        """Return a probe of the times at which this collection may still change.

        >>> def program(worker):
        ...     with worker.dataflow() as scope:
        ...         edges, graph = new_input(scope)
        ...         probe = graph.count().probe()
        ...     edges.insert(1, 2)
        ...     edges.advance_to(1)
        ...     worker.step_while(lambda: probe.less_than(1))
        ...     return probe.frontier
        >>> execute_directly(program)
        Antichain([(1,)])
        """
        return self.stream.probe() if self._arrangement is None else self._arrangement.stream.probe()

    # Record by record
    map = _map.map
    attempt = _attempt.attempt
    flat_map = _flat_map.flat_map
    filter = _filter.filter
    explode = _explode.explode
    delay = _delay.delay
    window = _window.window
    passed = _passed.passed
    inspect = _inspect.inspect
    inspect_batch = _inspect.inspect_batch

    # As multisets
    concat = _concat.concat
    negate = _negate.negate
    consolidate = _consolidate.consolidate
    union = _sets.union
    intersect = _sets.intersect
    except_ = _sets.except_
    symmetric_difference = _sets.symmetric_difference
    identifiers = _identifiers.identifiers
    assert_empty = _assert_empty.assert_empty
    assert_eq = _assert_empty.assert_eq

    # Loops
    enter = _enter.enter
    enter_at = _enter_at.enter_at
    leave = _leave.leave
    iterate = _iterate.iterate

    # Out of the dataflow
    output = _output.output
    capture_into = _capture.capture_into


class Arrangement(ArrangementCore[Collection], _ByKey):
    """A collection, indexed by key, with all operators by key of a `Collection`.

    Most of them read this index. `argmin`, `argmax`, `totals`, `prefix_sum` and `cogroup`, and `threshold` inside
    loops, compute other records, and index these.

    >>> def program(scope):
    ...     edges = Collection.of(scope, np.array([1, 1, 2]), np.array([2, 3, 3])).arrange_by_key()
    ...     degrees = edges.count()
    ...     return edges.join(degrees)  # the index serves both
    >>> example(program)
    [((1, 2, 2), 1), ((1, 3, 2), 1), ((2, 3, 1), 1)]
    """

    def trace(self) -> Trace:
        """Return a reader for the program, which outlives the building of the dataflow (see `Trace`).

        All workers call it while they build the dataflow.

        Raises BuildError once the dataflow is built, and where the arrangement was made in a scope further out.

        >>> def program(worker):
        ...     with worker.dataflow() as scope:
        ...         trace = Collection.of(scope, np.array([3, 4, 4])).arrange_by_key().trace()
        ...     worker.step_while(lambda: trace.upper)
        ...     return trace.contents(0).records()
        >>> execute_directly(program)
        {(3,): 1, (4,): 2}
        """
        return Trace(*self.exported())

    def as_collection(self) -> Collection:
        """Return the collection of the records arranged here; arranging it by its key again costs nothing.

        >>> def program(scope):
        ...     edges = Collection.of(scope, np.array([1, 2]), np.array([2, 3])).arrange_by_key()
        ...     return edges.as_collection().filter(lambda source, target: target > 2)
        >>> example(program)
        [((2, 3), 1)]
        """
        return Collection.arranged(self)

    def with_updates(self, stream: Stream, keys: int) -> Collection:
        """Return a collection over other updates."""
        return Collection(stream, keys)


class Trace(TraceCore):
    """A reader of an arrangement's trace, kept by the program. Use from the worker's thread, between steps.

    >>> def program(worker):
    ...     with worker.dataflow() as scope:
    ...         session, edges = new_input(scope)
    ...         trace = edges.arrange_by_key().trace()
    ...     session.insert(np.array([1, 2]), np.array([2, 3]))
    ...     session.advance_to(1)
    ...     session.remove(1, 2)
    ...     session.advance_to(2)
    ...     worker.step_while(lambda: trace.upper.less_equal((1,)))
    ...     print(trace.contents(0).records(), trace.contents(1).records(), trace.cursor(1)[2].values)
    ...     trace.set_physical_compaction(1)
    ...     trace.set_logical_compaction(1)
    ...     trace.allow_compaction_to(2)  # or both at once
    ...     trace.consolidate()  # at once, not a little with each insert
    ...     assert trace.statistics().rows == sum(map(len, trace.batches())) == 1
    ...     trace.drop()
    >>> execute_directly(program)
    {(1, 2): 1, (2, 3): 1} {(2, 3): 1} (array([3]),)
    """

    def import_into(
        self, scope: Scope, *, since: Antichain | Moment | None = None, name: str = "import"
    ) -> Arrangement:
        """Return the arrangement in another dataflow, built later on the same worker; all workers do the same.

        The batches in the trace arrive there first, then each batch as it is sealed, and the frontier follows; nothing
        is copied. All times are advanced to `since`, by default `logical`: before it the collection is empty there. The
        trace can be dropped at once. When the exporting dataflow is complete or dropped, the collection stays as it was
        sealed.

        Raises TraceError where `since` is before `logical`, or the trace was dropped.

        >>> def program(worker):
        ...     with worker.dataflow() as scope:
        ...         session, edges = new_input(scope)
        ...         trace = edges.arrange_by_key().trace()
        ...     session.insert(np.array([1, 1]), np.array([2, 3]))
        ...     session.advance_to(1)
        ...     worker.step_while(lambda: trace.upper.less_equal((0,)))
        ...     with worker.dataflow() as scope:
        ...         degrees = trace.import_into(scope).count().output()
        ...     session.insert(1, 4)
        ...     session.close()
        ...     worker.step_while(lambda: not degrees.done())
        ...     return degrees.changes()
        >>> execute_directly(program)
        [((1, 2), (0,), 1), ((1, 2), (1,), -1), ((1, 3), (1,), 1)]
        """
        return Arrangement(*self.imported(scope, since, name))
