"""Give every record a number of its own.

A record's number is a hash of its fields. Where several records have the same hash, the first of them in their order
keeps it and the others try the next number, round by round, until all numbers are distinct. This happens in a loop, so
that it stays right when records are inserted and removed. The loop rarely has anything to do, because the hashes of a
million records, 64 bits each, collide once in ten million times. That is true for numbers, and for text and bytes of up
to 64 bytes; longer ones are hashed by two checksums of 32 bits, which may collide somewhat more often.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from differential.arrangement.core import C
from differential.data.updates import Array, Ints
from differential.operators.distinct import distinct
from differential.operators.groups import Groups, ranks
from differential.operators.iterate import iterate
from differential.operators.map import map
from differential.operators.reduce import reduce
from timely.lowlevel import check_functions, hash_columns

LARGEST = (1 << 63) - 1


def identifiers(
    collection: C, *, hash: Callable[[tuple[Array, ...]], Array] = hash_columns, name: str = "identifiers"
) -> C:
    """Return each distinct record with an integer of its own, 0 or more, as another, last column.

    No two records have the same number at any time. The numbers depend only on which records there are, not on the
    order of changes nor on the number of workers. A record whose hash no other has keeps its number for ever. `hash`
    makes a column of integers of columns.

    >>> def program(scope):
    ...     names = Collection.of(scope, np.array(["ann", "bob", "ann"]))
    ...     return names.identifiers().map(lambda name, number: (number >= 0, name)).count()
    >>> example(program)
    [((True, 2), 1)]
    """
    check_functions(name, hash=hash)
    keys = collection.keys

    def candidate(columns: tuple[Array, ...], attempt: Any) -> Ints:
        hashes = np.asarray(hash(columns)).astype(np.uint64) + np.asarray(attempt).astype(np.uint64)
        return (hashes & np.uint64(LARGEST)).astype(np.int64)

    def again(candidates: C) -> C:
        moved = reduce(candidates.arrange_by_key(), _move_on, name=name)
        return map(moved, lambda _, attempt, *record: (candidate(tuple(record), attempt), attempt, *record), name=name)

    records = distinct(collection.arrange_by_key(), name=name)
    start = map(records, lambda *record: (candidate(record, 0), 0, *record), name=name)
    settled = iterate(start, again, name=name)
    return map(settled, lambda number, _, *record: (*record, number), keys=keys, name=name)


def _move_on(groups: Groups) -> tuple[Any, ...]:
    """Return each group with the next attempt for all records but the first, which stays."""
    index = groups.index
    if len(index) == len(groups):
        return (index, *groups.values)
    # Fewest attempts first, so that a record keeps the number that is its own hash, whoever moves on to it.
    order = np.lexsort((*(ranks(column) for column in reversed(groups.values)), index))
    attempt, *record = (column[order] for column in groups.values)
    stays = np.zeros(len(order), np.bool_)
    stays[groups.offsets[:-1]] = True
    return (index[order], np.where(stays, attempt, attempt + 1), *record)
