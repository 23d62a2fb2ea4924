"""The contents of a collection as of a time.

The contents as of a time are the sums of the diffs of all updates at or before it. So all rows at such times are put
together without their times, and consolidated. That costs a sort of these rows. Rows at later times cost a look at
their time, and batches wholly later one look at their tables of times. `lookup` finds the rows of some keys, or of some
pairs of a key and a value, and `below` those of the least keys, by binary search in each batch. Both look at nothing
else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from differential.kernels.compile import NOTHING, Ints
from differential.trace.batch import Batch
from differential.trace.columns import Rows
from differential.trace.parts import consolidated
from timely.lowlevel import Time

SHORT = 16
"""So many rows cost less to look at than to search; a power of two."""

MANY = 1024
"""So many keys are sorted before they are searched, so that one search reads memory near that of the last."""

_FORGOTTEN = np.zeros((1, 1), np.int64)


def accumulate(batches: Sequence[Batch], time: Time) -> tuple[Ints, Ints, Ints]:
    """Return the keys, values and counts of the collection made up by `batches` as of `time`, sorted, none absent.

    `time` must be in advance of the `since` of every batch. The contents are final when it is not in advance of the
    upper of the last; before, they are what is known so far. The columns are the caller's own.
    """
    parts: list[Rows] = []
    for batch, past in _seen(batches, time):
        # With one time there is no time index, and `_seen` yields the batch only if that time is past.
        rows = slice(None) if len(past) == 1 else np.flatnonzero(past[batch.time_index])
        parts.append((batch.keys[rows], *_values_and_diffs(batch, rows)))
    return _summed(parts)


def below(batches: Sequence[Batch], limit: int, time: Time) -> tuple[Ints, Ints, Ints]:
    """Return what `accumulate` does for the keys less than `limit`. It costs a binary search in each batch, and these.

    `limit` is from -2 ** 63 to 2 ** 63, which all keys are less than.

    >>> from differential.trace.description import Description
    >>> columns = np.array([1, 5, 7]), np.array([7, 8, 9]), NOTHING, NOTHING, np.array([[0]])
    >>> batch = Batch.build(*columns, Description(*map(Antichain, ([(0,)], [(1,)], [(0,)]))))
    >>> below([batch], 6, (0,))[:2]
    (array([1, 5]), array([7, 8]))
    """
    parts: list[Rows] = []
    for batch, past in _seen(batches, time):
        # NumPy would convert all keys to floats, which rounds them, if the limit were not an integer of 64 bits.
        end = len(batch.keys) if limit == 1 << 63 else int(batch.keys.searchsorted(np.int64(limit)))
        rows: slice | Ints = slice(0, end)
        if len(past) > 1:
            rows = np.flatnonzero(past[batch.time_index[rows]])
        if len(batch.keys[rows]):
            parts.append((batch.keys[rows], *_values_and_diffs(batch, rows)))
    return _summed(parts)


def lookup(batches: Sequence[Batch], keys: Ints, time: Time, vals: Ints | None = None) -> tuple[Ints, Ints, Ints]:
    """Return what `accumulate` does for some keys. Each row has the place of its key among `keys` instead of the key.

    With `vals`, a value for each key, return only the rows that have both. Few other rows of the keys are read then.

    >>> from differential.trace.description import Description
    >>> columns = np.array([1, 5, 5]), np.array([7, 8, 9]), NOTHING, NOTHING, np.array([[0]])
    >>> batch = Batch.build(*columns, Description(*map(Antichain, ([(0,)], [(1,)], [(0,)]))))
    >>> place, vals, counts = lookup([batch], np.array([5, 6]), (0,))
    >>> place.tolist(), vals.tolist(), counts.tolist()
    ([0, 0], [8, 9], [1, 1])
    >>> [column.tolist() for column in lookup([batch], np.array([5, 6]), (0,), np.array([9, 9]))]
    [[0], [9], [1]]
    """
    if len(keys) == 1:
        return _summed(_of_one(batches, keys[0], time, None if vals is None else vals[0]))
    order: Ints | None = None
    if len(keys) >= MANY and (keys[1:] < keys[:-1]).any():
        order = keys.argsort(kind="stable")
        keys, vals = keys[order], None if vals is None else vals[order]
    parts: list[Rows] = []
    for batch, past in _seen(batches, time):
        first, end = np.searchsorted(batch.keys, keys), np.searchsorted(batch.keys, keys, "right")
        if (first == end).all():
            continue
        if vals is not None and len(batch.vals):
            first, end = _narrowed(batch.vals, first, end, vals)
        lengths = end - first
        place = np.repeat(np.arange(len(keys)), lengths)
        rows = rows_within(first, end)
        if vals is not None:
            # `_narrowed` leaves other values at both ends, and is not called where all values are 0.
            same = vals[place] == (batch.vals[rows] if len(batch.vals) else 0)
            place, rows = place[same], rows[same]
        if len(past) > 1:
            seen = past[batch.time_index[rows]]
            place, rows = place[seen], rows[seen]
        if len(rows):
            parts.append((place if order is None else order[place], *_values_and_diffs(batch, rows)))
    return _summed(parts)


def rows_within(first: Ints, end: Ints) -> Ints:
    """Return the rows of several ranges, one range after the other.

    >>> rows_within(np.array([4, 0]), np.array([6, 1])).tolist()
    [4, 5, 0]
    """
    lengths = end - first
    rows: Ints = np.arange(lengths.sum()) + (first - (np.cumsum(lengths) - lengths)).repeat(lengths)
    return rows


def _of_one(batches: Sequence[Batch], key: np.int64, time: Time, val: np.int64 | None) -> list[Rows]:
    """Return what `lookup` finds for one key. Most batches do not have it, and cost one binary search."""
    parts: list[Rows] = []
    for batch in batches:
        keys, vals = batch.keys, batch.vals
        first = int(keys.searchsorted(key))
        if first == len(keys) or keys[first] != key:
            continue
        end = int(keys.searchsorted(key, "right"))
        if val is not None and len(vals):
            among = vals[first:end]  # they ascend
            first, end = first + int(among.searchsorted(val)), first + int(among.searchsorted(val, "right"))
        elif val:  # here all values are 0, so another one is not found
            continue
        rows: slice | Ints = slice(first, end)
        past = _past(batch, time)
        if len(past) > 1:
            rows = first + np.flatnonzero(past[batch.time_index[rows]])
        elif not past[0]:
            continue
        if number := end - first if isinstance(rows, slice) else len(rows):
            parts.append((np.zeros(number, np.int64), *_values_and_diffs(batch, rows)))
    return parts


def _narrowed(column: Ints, first: Ints, end: Ints, vals: Ints) -> tuple[Ints, Ints]:
    """Return ranges of rows, of one key each, without most of the rows whose value is not the one sought there.

    Values ascend in each range. Before and after those sought, fewer than `SHORT` rows are left.
    """
    if (end - first).max() < SHORT:
        return first, end
    least = _searched(column, first, end, vals, np.less)
    # From the row found on, fewer than `SHORT` rows are still at most the value, so those sought end within `SHORT`.
    return least, np.minimum(_searched(column, first, end, vals, np.less_equal) + SHORT, end)


def _searched(column: Ints, first: Ints, end: Ints, vals: Ints, is_before: np.ufunc) -> Ints:
    """Return a row in each range: up to there all are before a value, and fewer than `SHORT` more are.

    It is a binary search in all ranges at once.
    """
    row = first
    step = 1 << int((end - first).max()).bit_length() - 1
    while step >= SHORT:
        last = row + (step - 1)  # if it is before the value, so are all rows from `row` to it
        row = row + step * ((last < end) & is_before(column.take(last, mode="clip"), vals))
        step >>= 1
    return row


def _seen(batches: Sequence[Batch], time: Time) -> Iterator[tuple[Batch, NDArray[np.bool_]]]:
    """Yield each batch with updates at or before `time`, and which of its times are."""
    for batch in batches:
        past = _past(batch, time)
        if past.any():
            yield batch, past


def _past(batch: Batch, time: Time) -> NDArray[np.bool_]:
    """Return which times of a batch are at or before `time`."""
    assert batch.since.less_equal(time), (
        f"the contents as of {time} are compacted away: a batch may be read as of {batch.since} and later; "
        "a reader holds compaction back by its logical frontier"
    )
    # Rows at times before `since` have representatives, which are at or before `time` exactly if their times were.
    past: NDArray[np.bool_] = np.logical_and.reduce(batch.times <= np.array(time, np.int64), axis=1)
    return past


def _values_and_diffs(batch: Batch, rows: slice | Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the columns after the keys of the rows, at one time."""
    vals, diffs = (column[rows] if len(column) else NOTHING for column in (batch.vals, batch.diffs))
    return vals, NOTHING, diffs, _FORGOTTEN


def _summed(parts: list[Rows]) -> tuple[Ints, Ints, Ints]:
    """Return the rows with equal key and value as one."""
    if not parts:
        return NOTHING, NOTHING, NOTHING
    keys, vals, _, diffs, _ = consolidated(parts)
    vals = vals if len(vals) else np.zeros(len(keys), np.int64)
    return keys, vals, diffs if len(diffs) else np.ones(len(keys), np.int64)
