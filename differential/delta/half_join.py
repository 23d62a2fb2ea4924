"""Match changes with a collection as it was when they were made: one half of a join.

Of the pairs that a join of two collections gains and loses, `half_join` emits those whose later member, in a total
order, is in its first argument. Two half joins, one each way, one `inclusive` and one not, make the join; n pipelines
of n - 1 half joins make the join of n collections (see `differential.delta`). They keep nothing but the collections'
own indexes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from differential.arrangement.arrange import ByKey
from differential.collection import Arrangement, Collection
from differential.data.codes import Encoder
from differential.data.overflow import too_often
from differential.data.updates import Ints, Updates
from differential.delta.lookup import Ask, Past, lookup, refuse_other_keys
from differential.kernels.compile import NOTHING
from differential.kernels.consolidate import consolidate
from differential.kernels.join import join
from differential.kernels.seek import occurrences
from differential.kernels.wide import Overflow
from differential.operators.join_arrangements import ROWS_PER_BATCH
from differential.trace.batch import Batch, table_of
from differential.trace.columns import Rows
from differential.trace.parts import first_wide_pair, table_of_parts
from timely import Scope, Stream
from timely.errors import DataError
from timely.lowlevel import as_columns, call, check_functions

PIECE = 1 << 19
"""The operator yields to others after about this many pairs."""

NEVER_LATER = np.iinfo(np.int64).min


def half_join(
    prefixes: Collection,
    arrangement: Arrangement,
    function: Callable[..., Any],
    *,
    inclusive: bool = True,
    keys: int = 1,
    name: str = "half_join",
) -> Collection:
    """Return `function(*key, *rest, *value)` for each prefix and each record of `arrangement` that it sees.

    A prefix sees the updates before its initial time and, if `inclusive`, those at it; the result of a pair is at the
    lattice join of both times. In a scope whose times have several coordinates, the last columns of a prefix are its
    initial time: they are passed on, and `function` does not receive them (see `differential.delta.Prefixes`).

    >>> def program(scope):
    ...     ages = Collection.of(scope, np.array(["ann", "bob"]), np.array([30, 40]))
    ...     towns = Collection.of(scope, np.array(["ann"]), np.array(["Rome"]))
    ...     arranged = towns.arrange_by_key()
    ...     return half_join(ages, arranged, lambda name, age, town: (name, age, town))
    >>> example(program)
    [(('ann', 30, 'Rome'), 1)]
    """
    check_functions(name, function=function)

    def ask(updates: Updates, initial: Ints, pasts: list[Past]) -> Pairs:
        return Pairs(updates, pasts[0], arrangement, function, initial, inclusive)

    return Collection(_by_key(prefixes, arrangement, ask, inclusive, name), keys)


def count_rows(
    prefixes: Collection,
    arrangement: Arrangement,
    function: Callable[..., Any],
    *,
    inclusive: bool = True,
    keys: int = 1,
    name: str = "count_rows",
) -> Collection:
    """Return `function(*key, *rest, number)` for each prefix whose key is in `arrangement`, with the number of rows.

    That is how many updates of the key the trace has, seen by the prefix or not, cancelled or not: at least as many as
    there are records, and 0 only if there are none. It costs a look at the trace, and estimates which of several
    arrangements has the fewest records for the prefix. Hidden columns are as in `half_join`.

    >>> def program(scope):
    ...     edges = Collection.of(scope, np.array([1, 1, 2]), np.array([2, 3, 3])).arrange_by_key()
    ...     return count_rows(Collection.of(scope, np.array([1, 5])), edges, lambda node, number: (node, number))
    >>> example(program)
    [((1, 2), 1)]
    """
    check_functions(name, function=function)

    def ask(updates: Updates, initial: Ints, pasts: list[Past]) -> PrefixCounts:
        return PrefixCounts(updates, pasts[0], arrangement, function)

    return Collection(_by_key(prefixes, arrangement, ask, inclusive, name), keys)


def _by_key(prefixes: Collection, arrangement: Arrangement, ask: Ask, inclusive: bool, name: str) -> Stream:
    """Return the answers to prefixes, each found by the worker that has its key."""
    refuse_other_keys(name, prefixes.keys, arrangement)
    return lookup(prefixes.stream, ByKey(prefixes.keys), [(arrangement, inclusive)], ask, name=name)


class PrefixCounts:
    """Prefixes with the number of rows of their key."""

    def __init__(self, prefixes: Updates, past: Past, arrangement: Arrangement, function: Callable[..., Any]) -> None:
        self._key = arrangement.key
        self._codes = np.ascontiguousarray(self._key.encode(prefixes.columns[: arrangement.keys]))
        self._prefixes = prefixes
        self._past = past
        self._function = function
        self._hidden = hidden_columns(arrangement.scope)

    def held_codes(self) -> list[tuple[Encoder, Ints]]:
        return [(self._key, self._codes)]

    def pieces(self) -> Iterator[Updates]:
        numbers = occurrences(self._codes, table_of(self._past))
        there = numbers > 0
        prefixes = self._prefixes
        if not there.all():
            prefixes, numbers = prefixes.take(there), numbers[there]
        if len(numbers):
            yield prefixes.with_columns(self._applied(prefixes.columns, (numbers,), len(numbers)))

    def _applied(self, columns: tuple[Any, ...], more: tuple[Any, ...], length: int) -> tuple[Any, ...]:
        """Return what the function makes of columns of prefixes and more columns, and the initial times."""
        own, initial = split(columns, self._hidden)
        return (*as_columns(call(self._function, (*own, *more)), length), *initial)


class Pairs(PrefixCounts):
    """Prefixes with each record that they see.

    The prefixes are sorted by key, with the numbers of their rows as values, and joined with the batches of which they
    see a part. Where they see only a part of one, times have one more coordinate, the place of the record's time in the
    total order; from it follows which pairs to take out afterwards.
    """

    def __init__(
        self,
        prefixes: Updates,
        past: Past,
        arrangement: Arrangement,
        function: Callable[..., Any],
        initial: Ints,
        inclusive: bool,
    ) -> None:
        self._value = arrangement.value
        bounds, ranks = rank(initial, past)
        # Times are numbered by integers here, so those before a time have its number less 1, or less.
        self._bounds = bounds if inclusive else bounds - 1
        least, most = (self._bounds.min(), self._bounds.max()) if len(self._bounds) > 1 else self._bounds[[0, 0]]
        # A batch has its times in their total order, which their numbers keep.
        seen = [place for place, each in enumerate(ranks) if each[0] <= most]
        super().__init__(prefixes, tuple([past[place] for place in seen]), arrangement, function)
        self._ranks = [ranks[place] for place in seen]
        self._in_part = any(each[-1] > least for each in self._ranks)

    def held_codes(self) -> list[tuple[Encoder, Ints]]:
        return [(self._key, self._codes), *[(self._value, batch.vals) for batch in self._past]]

    def pieces(self) -> Iterator[Updates]:
        if not self._past:
            return
        times = np.ascontiguousarray(self._prefixes.times)
        if self._in_part:
            # A lattice join takes the greater coordinate, so that of a pair is the place of the record's time.
            times = np.column_stack((times, np.full(len(times), NEVER_LATER)))
            ranked = [
                (batch.keys, batch.vals, batch.time_index, batch.diffs, np.column_stack((batch.times, ranks)))
                for batch, ranks in zip(self._past, self._ranks)
            ]
            past = table_of_parts(ranked)
        else:
            past = table_of(self._past)
        rows = np.arange(len(self._codes))
        # Copies, for arrays in messages may be read-only, and kernels accept none of these.
        index, diffs = self._prefixes.time_index.copy(), self._prefixes.diffs.copy()
        prefixes = consolidate(self._codes, rows, index, diffs, times.copy())
        new, position = table_of_parts([prefixes]), 0
        while position >= 0:
            try:
                keys, rows, vals, times, index, diffs, position = join(new, position, PIECE, past)
            except Overflow as fault:
                raise self._too_often(fault.args[0], prefixes) from None
            if len(keys):
                piece = self._piece(rows if len(rows) else np.zeros(len(keys), np.int64), vals, times, index, diffs)
                # If no prefix sees any of a few pairs, the next call follows at once.
                if len(piece) or len(keys) >= ROWS_PER_BATCH:
                    yield piece

    def _too_often(self, key: int, prefixes: Rows) -> DataError:
        """Return the error for the first pair of a prefix with that key and a record that occurs too often."""
        keys, rows, index, diffs, times = prefixes
        # Without the coordinate that `pieces` may have added, which the batches of the past do not have.
        own = keys, rows, index, diffs, times[:, : self._prefixes.times.shape[1]]
        time, row, val = first_wide_pair(key, [own], [batch.columns.rows for batch in self._past])
        prefix, _ = split(tuple(column[row : row + 1] for column in self._prefixes.columns), self._hidden)
        value = self._value.decode(np.array([val]), 1)
        return too_often(as_columns(call(self._function, (*prefix, *value)), 1), time)

    def _piece(self, rows: Ints, vals: Ints, times: Ints, index: Ints, diffs: Ints) -> Updates:
        """Return as updates those pairs whose record the prefix sees."""
        if self._in_part:
            when = times[index, -1] if len(index) else times[:, -1]
            seen = np.broadcast_to(when <= (self._bounds[rows] if len(self._bounds) > 1 else self._bounds), rows.shape)
            times = times[:, :-1].copy()  # times may now be equal, which updates allow
            if not seen.all():
                rows, vals, index, diffs = [each[seen] if len(each) else each for each in (rows, vals, index, diffs)]
        columns, length = tuple([column[rows] for column in self._prefixes.columns]), len(rows)
        if not length:
            return Updates(columns, times, NOTHING, NOTHING)
        return Updates(self._applied(columns, self._value.decode(vals, length), length), times, index, diffs)


def hidden_columns(scope: Scope) -> int:
    """Return how many columns of prefixes are their initial time: where times have one coordinate, none is needed."""
    return 0 if scope.width == 1 else scope.width


def split(columns: tuple[Any, ...], hidden: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the columns, and the last `hidden` ones."""
    own = len(columns) - hidden
    return columns[:own], columns[own:]


def rank(initial: Ints, past: tuple[Batch, ...]) -> tuple[Ints, list[Ints]]:
    """Return a number for each initial time and for each time of each batch, ordered as the times are in total."""
    if initial.shape[1] == 1:
        return initial[:, 0], [batch.times[:, 0] for batch in past]
    tables = [initial, *[batch.times for batch in past]]
    _, numbers = np.unique(np.concatenate(tables), axis=0, return_inverse=True)
    ends = np.cumsum([len(table) for table in tables])
    first, *others = np.split(numbers.reshape(-1).astype(np.int64), ends[:-1])
    return first, others
