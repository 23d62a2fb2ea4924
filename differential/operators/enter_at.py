"""Bring the records of a collection into a loop at rounds of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from differential.arrangement.core import C
from differential.operators.passages import entering_at
from timely import Scope
from timely.lowlevel import check_functions, check_scope, inline_timed, refusal


def enter_at(collection: C, scope: Scope, rounds: Callable[..., Any], *, name: str = "enter_at") -> C:
    """Return the collection in the loop of `scope`, each record from the round on that `rounds` returns for it.

    `rounds` receives whole columns and returns a column of integers from 0 to 2 ** 61. If the most important records
    enter first, the others find most of their work done when they enter (prioritised iteration).

    Raises BuildError unless `scope` is a loop directly inside the collection's. A DataError ends the run where `rounds`
    returns something else.

    >>> def program(scope):
    ...     with scope.iterative() as inner:
    ...         later = Collection.of(scope, np.array([1, 2])).enter_at(inner, lambda x: 10 * x)
    ...         return later.inspect(print).leave()
    >>> _ = example(program)
    (1,) (0, 10) 1
    (2,) (0, 20) 1
    """
    check_functions(name, rounds=rounds)
    check_scope(name, scope)
    outside = collection.scope
    if not scope.is_within(outside) or scope.width != outside.width + 1:
        raise refusal(name, f"enter_at goes into a loop directly inside {outside}; {scope} is not one")

    transform = entering_at(rounds)
    stream = inline_timed(collection.stream, transform, name=name, scope=scope, summary=outside.summary_to(scope))
    return collection.with_stream(stream)
