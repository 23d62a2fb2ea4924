"""Fixed points: feed the changes of a collection back into a loop.

In round 0 a variable is its source; in round i+1 it is what its `result` was in round i. In updates: source, then
(result - source) one round later. A loop settles when a round changes nothing. The dataflow needs no test for that:
without updates there is nothing to do.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Generic

from differential.arguments import check_rows
from differential.arrangement.core import C, CollectionCore
from differential.keys import described
from differential.operators.concat import concat
from differential.operators.consolidate import consolidate
from differential.operators.enter import enter
from differential.operators.innermost import innermost
from differential.operators.leave import leave
from differential.operators.negate import negate
from differential.operators.passages import going_round
from differential.operators.rounds import Rounds
from timely import Scope, Stream
from timely.lowlevel import check_parameters, check_scope, inline_timed, refusal, user_origin


class VariableCore(Generic[C]):
    """A collection of some class, defined by recursion in an iterative scope (see `differential.Variable`).

    `kind` makes a collection of that class from a stream of updates and the number of key columns.
    """

    def __init__(
        self,
        kind: Callable[[Stream, int], C],
        scope: Scope,
        source: C | None = None,
        *,
        keys: int = 1,
        step: int = 1,
        limit: int | None = None,
        name: str = "variable",
    ) -> None:
        if limit is not None and (not isinstance(limit, Integral) or isinstance(limit, bool) or limit < step):
            raise refusal(name, f"a loop takes whole rounds, at least one of {step}: its limit cannot be {limit}")
        check_scope(name, scope)
        self._handle, stream = scope.feedback(step, name="variable")
        self._name = name
        self._step = int(step)
        self._limit = limit
        self._starts_late = source is not None and source.scope is scope
        self._source = None if source is None else enter(source, scope)
        again = kind(stream, keys if source is None else source.keys)
        self.collection = again if self._source is None else concat(self._source, again)

    def set(self, result: C) -> None:
        """Define the variable as `result`, a collection of the same scope or of one around it, a round later.

        Raises BuildError where the two have keys of different numbers of columns.
        """
        check_rows(self._name, result=result)
        scope = self.collection.scope
        if result.scope.dataflow is scope.dataflow and not scope.is_within(result.scope):
            raise refusal(
                self._name,
                f"a variable of {scope} cannot become a collection of "
                f"{result.scope}: leave() brings a collection out of its loop",
            )
        result = enter(result, scope)
        if result.keys != self.collection.keys:
            raise refusal(
                self._name,
                f"a variable whose key is {described(self.collection.keys)} "
                f"cannot become a collection whose key is {described(result.keys)}: give map() the right `keys`",
            )
        dataflow = scope.dataflow
        # Without an operator in the loop that lets updates cancel, a change and its opposite would circulate for ever.
        # And updates beyond a limit must have had the chance to cancel: with the result's alone where the source is
        # from outside and has none there.
        goes_on = dataflow.plan.flows_uncancelled(self.collection.stream.location, result.stream.location)
        if goes_on or (self._limit is not None and not self._starts_late):
            result = consolidate(result)
        changes = result if self._source is None else concat(result, negate(self._source))
        if self._limit is not None and self._starts_late:
            changes = consolidate(changes)
        turn = going_round(self._step, Rounds(dataflow, self._name, user_origin(), self._limit))
        inline_timed(changes.stream, turn, name=self._name).connect_loop(self._handle)


def iterate(collection: C, body: Callable[[C], C], *, limit: int | None = None, name: str = "iterate") -> C:
    """Return the fixed point of `body`, starting from `collection`.

    `body` receives the current value and returns the next. It may use collections from outside as they are.

    >>> def halving(scope):
    ...     numbers = Collection.of(scope, np.array([12, 5]))
    ...     return numbers.iterate(lambda inner: inner.map(lambda x: np.where(x % 2 == 0, x // 2, x)))
    >>> example(halving)
    [((3,), 1), ((5,), 1)]

    With a `limit`, it is an error if the value still changes after that many rounds. Without one, a warning reports a
    loop that continues for very many rounds (`Config.report_rounds`).

    >>> def growing(scope):
    ...     return Collection.of(scope, 7).iterate(lambda inner: inner.map(lambda x: x + 1), limit=100)
    >>> example(growing)
    Traceback (most recent call last):
    ...
    timely.errors.OperatorError: operator 'iterate' failed at time (0, 100) on worker 0 of 1 (...): UnsettledError: the
    loop was to settle within 100 rounds, but in round 101 at (0,) 2 records change, (107,) by -1, (108,) by
    +1: it has no fixed point, or takes a higher limit to reach it
    """
    if not callable(body):
        raise refusal(name, f"what is iterated must be a function of a collection, not {body!r:.80}")
    check_parameters(name, 1, "the collection inside the loop", body=body)
    with collection.scope.iterative(name) as inner:
        variable = VariableCore(type(collection), inner, collection, limit=limit, name=name)
        result = body(variable.collection)
        if not isinstance(result, CollectionCore):
            raise refusal(name, f"its function must return what the collection becomes, and returned {result!r:.80}")
        # The body may have returned a collection from outside as it is.
        result, _ = innermost(result, variable.collection)
        variable.set(result)
        return leave(result, collection.scope)
