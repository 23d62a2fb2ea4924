"""Collections: multisets of records that change with time.

A collection is a stream of updates `(data, time, diff)`; at time `t`, a record occurs as often as the diffs of its
updates at times not after `t` add up to. Operators answer changes with changes. A record is a row of columns; its
first `keys` columns are its key, by which it is joined, reduced and sent to a worker, the rest its value.

The methods are the table of contents of `operators/`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from differential import capture as _capture
from differential.arguments import check_collections
from differential.arrangement import Arrangement
from differential.keys import EVERY, check_keys
from differential.operators import (
    aggregates as _aggregates,
    argmin as _argmin,
    arrange as _arrange,
    assert_empty as _assert_empty,
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
    groups as _groups,
    identifiers as _identifiers,
    inspect as _inspect,
    iterate as _iterate,
    join as _join,
    leave as _leave,
    map as _map,
    negate as _negate,
    output as _output,
    prefix_sum as _prefix_sum,
    reduce_each as _reduce_each,
    sets as _sets,
    totals as _totals,
    window as _window,
)
from timely.errors import BuildError
from timely.origin import user_origin

if TYPE_CHECKING:
    from timely.dataflow.operators.probe import Probe
    from timely.dataflow.stream import Scope, Stream


class Collection:
    """A collection of records whose first `keys` columns are their key.

    >>> def program(scope):
    ...     people = Collection.of(scope, np.array(["ann", "bob", "cem"]), np.array(["Rome", "Oslo", "Rome"]))
    ...     return people.map(lambda name, city: city).count()
    >>> example(program)
    [(('Oslo', 1), 1), (('Rome', 2), 1)]
    """

    def __init__(self, stream: Stream, keys: int = 1) -> None:
        check_keys(keys)
        self._scope = stream.scope
        self._stream: Stream | None = stream
        self._make_stream: Callable[[], Stream] | None = None
        self._outside: Collection | None = None
        self._arrangement: Arrangement | None = None
        self.keys = keys

    @classmethod
    def of(cls, scope: Scope, *columns: Any, keys: int = 1) -> Collection:
        """Return a collection that holds the given records from the least time on. Worker 0's are taken.

        >>> example(lambda scope: Collection.of(scope, np.array([1, 2]), np.array(["a", "b"])))
        [((1, 'a'), 1), ((2, 'b'), 1)]
        """
        from differential.operators.input import constant

        return constant(scope, columns, keys)

    @classmethod
    def arranged(cls, arrangement: Arrangement) -> Collection:
        """Return the collection an arrangement indexes. Its updates are decoded only if they are asked for."""
        return cls._lazy(arrangement.scope, arrangement.keys, arrangement.as_updates, arrangement=arrangement)

    @classmethod
    def entered(cls, outside: Collection, scope: Scope, stream: Callable[[], Stream]) -> Collection:
        """Return `outside` as it is in an inner scope, sharing the arrangement outside."""
        return cls._lazy(scope, outside.keys, stream, outside=outside)

    @classmethod
    def _lazy(
        cls,
        scope: Scope,
        keys: int,
        stream: Callable[[], Stream],
        *,
        outside: Collection | None = None,
        arrangement: Arrangement | None = None,
    ) -> Collection:
        collection = cls.__new__(cls)
        collection._scope = scope
        collection._stream = None
        collection._make_stream = stream
        collection._outside = outside
        collection._arrangement = arrangement
        collection.keys = keys
        return collection

    def __repr__(self) -> str:
        return f"<collection in {self.scope}, keys={self.keys}>"

    @property
    def scope(self) -> Scope:
        """The scope whose times the updates have."""
        return self._scope

    @property
    def stream(self) -> Stream:
        """The stream of updates (`differential.updates.Updates`)."""
        if self._stream is None:
            assert self._make_stream is not None
            self._stream = self._make_stream()
        return self._stream

    def arrange_by_key(self) -> Arrangement:
        """Return this collection indexed by key: made at the first call, and shared by all who ask after.

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
        if self._arrangement is None:
            if self._outside is not None:
                self._arrangement = self._outside.arrange_by_key().enter(self._scope)
            else:
                self._arrangement = _arrange.arrange(self, self.keys)
        return self._arrangement

    def arrange_by_self(self) -> Arrangement:
        """Return this collection indexed by whole records: all columns are the key, and there is no value.

        >>> def program(scope):
        ...     records = Collection.of(scope, np.array([1, 1]), np.array(["a", "a"])).arrange_by_self()
        ...     return records.count()
        >>> example(program)
        [((1, 'a', 2), 1)]
        """
        return _arrange.arrange(self, EVERY, name="arrange_by_self")

    def probe(self) -> Probe:
        """Return a probe of this collection: which times may still change it.

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
    flat_map = _flat_map.flat_map
    filter = _filter.filter
    explode = _explode.explode
    delay = _delay.delay
    window = _window.window
    inspect = _inspect.inspect
    inspect_batch = _inspect.inspect_batch

    # As multisets
    concat = _concat.concat
    negate = _negate.negate
    consolidate = _consolidate.consolidate
    distinct = _distinct.distinct
    threshold = _distinct.threshold
    union = _sets.union
    intersect = _sets.intersect
    except_ = _sets.except_
    symmetric_difference = _sets.symmetric_difference
    identifiers = _identifiers.identifiers
    assert_empty = _assert_empty.assert_empty
    assert_eq = _assert_empty.assert_eq

    # By key
    join = _join.join
    join_map = _join.join_map
    semijoin = _join.semijoin
    antijoin = _join.antijoin
    cogroup = _cogroup.cogroup
    reduce = _groups.reduce
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

    # Loops
    enter = _enter.enter
    enter_at = _enter_at.enter_at
    leave = _leave.leave
    iterate = _iterate.iterate

    # Out of the dataflow
    output = _output.output
    capture_into = _capture.capture_into


def innermost(*collections: Collection) -> tuple[Collection, ...]:
    """Return the collections in the innermost of their scopes, which must lie in each other; raise BuildError if not.

    For operators of one's own, which may be given collections from outside of the loop they are used in:

    >>> def program(scope):
    ...     with scope.iterative() as loop:
    ...         outside = Collection.of(scope, 1)
    ...         first, second = innermost(outside, Collection.of(scope, 2).enter(loop))
    ...         print(outside.scope is loop, first.scope is loop, second.scope is loop)
    ...         return first.concat(second).leave()
    >>> example(program)
    False True True
    [((1,), 1), ((2,), 1)]
    """
    for position, collection in enumerate(collections):
        check_collections("innermost", **{f"argument {position}": collection})
    target = max((collection.scope for collection in collections), key=lambda scope: scope.path.count("/"))
    for collection in collections:
        if not target.is_within(collection.scope):
            one, other = collection.scope, target
            if one.dataflow is not other.dataflow:
                raise BuildError(
                    f"a collection of {one.dataflow} cannot be used with one of {other.dataflow}: import its trace "
                    "there (Trace.import_into)"
                )
            raise BuildError(f"a collection of {one} cannot be used with one of {other}: neither lies in the other")
    return tuple(collection.enter(target) for collection in collections)


def arrangements(left: Collection | Arrangement, right: Collection | Arrangement) -> tuple[Arrangement, Arrangement]:
    """Return both indexed by key, in the innermost of their scopes."""
    check_collections("join", left=left, right=right)
    if left.scope.dataflow is not right.scope.dataflow:
        raise BuildError(
            f"join (at {user_origin()}): what is in {left.scope.dataflow} cannot be joined with what is in "
            f"{right.scope.dataflow}: import the trace of the other (Arrangement.trace, Trace.import_into)"
        )
    first, second = (each if isinstance(each, Arrangement) else each.arrange_by_key() for each in (left, right))
    if first.scope.is_within(second.scope):
        return first, second.enter(first.scope)
    if second.scope.is_within(first.scope):
        return first.enter(second.scope), second
    raise BuildError(
        f"join (at {user_origin()}): neither {first.scope} nor {second.scope} lies in the other; leave() one of them"
    )
