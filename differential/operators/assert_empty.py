"""Refuse a collection that is not what it should be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from differential.updates import Updates
from timely.errors import DataError

if TYPE_CHECKING:
    from differential.collection import Collection


def assert_empty(collection: Collection, *, name: str = "assert_empty") -> Collection:
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

    collection.consolidate().inspect_batch(refuse, name=name)
    return collection


def assert_eq(collection: Collection, other: Collection, *, name: str = "assert_eq") -> Collection:
    """Return the collection, which must equal `other` at all times: a record that only one has ends the run.

    >>> def program(scope):
    ...     pairs = Collection.of(scope, np.array([1, 1, 2]))
    ...     return pairs.count().assert_eq(Collection.of(scope, np.array([1, 2]), np.array([2, 1])))
    >>> example(program)
    [((1, 2), 1), ((2, 1), 1)]
    """
    assert_empty(collection.concat(other.negate()), name=name)
    return collection
