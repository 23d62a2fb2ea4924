"""Refuse a collection that is not what it should be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from differential.arguments import check_rows
from differential.arrangement.core import C
from differential.data.updates import Updates
from differential.operators.concat import concat
from differential.operators.consolidate import consolidate
from differential.operators.inspect import inspect_batch
from differential.operators.negate import negate
from timely.errors import DataError

SHOWN = 5
"""How many records of each side an error shows at most."""


def assert_empty(collection: C, *, name: str = "assert_empty") -> C:
    """Return the collection, which must be empty at all times: a record in it ends the run and is named.

    It is found out when the time at which the record occurs is complete.

    A DataError, which ends the run, names the record and the time.

    >>> def program(scope):
    ...     ages = Collection.of(scope, np.array(["ann"]), np.array([30]))
    ...     ages.filter(lambda name, age: age < 0).assert_empty()
    ...     return ages
    >>> example(program)
    [(('ann', 30), 1)]
    """

    def refuse(updates: Updates) -> None:
        record, time, diff = next(updates.rows())
        raise DataError(f"the collection must be empty, but the count of {record} changes by {diff}", time)

    inspect_batch(consolidate(collection), refuse, name=name)
    return collection


def assert_eq(collection: C, other: C, *, name: str = "assert_eq") -> C:
    """Return the collection, which must equal `other` at all times: a record that only one has ends the run.

    A DataError, which ends the run, names the time, the records of which the collection (the left) has more and by how
    many, and those of which `other` (the right) has more. On several workers it names those of one worker's share.

    >>> def program(scope):
    ...     pairs = Collection.of(scope, np.array([1, 1, 2]))
    ...     return pairs.count().assert_eq(Collection.of(scope, np.array([1, 2]), np.array([2, 1])))
    >>> example(program)
    [((1, 2), 1), ((2, 1), 1)]
    """
    check_rows(name, other=other)

    def refuse(updates: Updates) -> None:
        rows = list(updates.rows())
        first = min(time for _, time, _ in rows)
        now = [(record, diff) for record, time, diff in rows if time == first]
        left = [(record, diff) for record, diff in now if diff > 0]
        right = [(record, -diff) for record, diff in now if diff < 0]
        sides = [f"only in the {side}: {_listed(some)}" for side, some in (("left", left), ("right", right)) if some]
        raise DataError(f"the collections must be equal, but {'; '.join(sides)}", first)

    inspect_batch(consolidate(concat(collection, negate(other))), refuse, name=name)
    return collection


def _listed(counts: Sequence[tuple[Any, int]]) -> str:
    """Return records and their counts in words, not too many."""
    shown = [f"{record!r:.200} ({_times(count)})" for record, count in sorted(counts, key=repr)[:SHOWN]]
    more = len(counts) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"
