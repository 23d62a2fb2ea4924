"""Read an arrangement in the program, outside of its dataflow.

`Arrangement.trace`, called while the dataflow is built, returns a `Trace`: a reader that outlives the building. Between
steps the program reads the collection out of it, as of any time that is both final and not compacted away:

    a time t can be read exactly if `logical` is at or before it, and `upper` is not

`upper` is the frontier of the arrangement's output, below which the contents are final. The upper of the batches in the
trace may lag behind it, because nothing is sealed where nothing has changed. A trace holds compaction back by its
`logical` and `physical` frontiers, like every reader (see `differential.trace.reader`), until it moves them or is
dropped. Contents are this worker's share: the records whose keys live here. A trace that nobody reads costs nothing.

>>> def program(worker):
...     with worker.dataflow() as scope:
...         session, edges = new_input(scope)
...         trace = edges.arrange_by_key().trace()
...     session.insert(np.array([1, 1, 2]), np.array([2, 3, 3]))
...     session.advance_to(1)
...     session.remove(1, 2)
...     session.advance_to(2)
...     worker.step_while(lambda: trace.upper.less_equal((1,)))
...     print(trace.contents(0).records(), trace.contents(1).records())
...     trace.allow_compaction_to(1)
...     return trace.cursor(1)[1, 7]
>>> execute_directly(program)
{(1, 2): 1, (1, 3): 1, (2, 3): 1} {(1, 3): 1, (2, 3): 1}
Found(place=array([0]), values=(array([3]),), counts=array([1]))
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np

from differential.arrangement.arranged import Arranged
from differential.arrangement.export import Export
from differential.arrangement.import_trace import import_trace
from differential.data.codes import Codes, ColumnKind, Encoder, type_name
from differential.data.interned import own_strings
from differential.data.negative import negative_count
from differential.data.overflow import named
from differential.kernels.compile import NOTHING
from differential.kernels.wide import Overflow
from differential.trace.batch import Batch
from differential.trace.cursor import accumulate, below, lookup
from differential.trace.handle import TraceHandle
from differential.trace.report import size_of
from timely import Scope
from timely.errors import DataError, TraceError
from timely.lowlevel import LIMIT, Antichain, ColumnLike, Moment, Time, as_column, as_columns, as_time, starts_of_runs

__all__ = ["Contents", "Cursor", "Found", "TraceStatistics"]

Columns = tuple[np.ndarray[Any, Any], ...]


class Contents(NamedTuple):
    """A collection as of a time: distinct records, in columns, and how often each occurs (never 0).

    Where nothing was ever inserted, as on a worker to which no key hashes, there are no columns: `keys` and `values`
    are `()`.
    """

    keys: Columns
    values: Columns
    counts: Codes

    def records(self) -> dict[tuple[Any, ...], int]:
        """Return the records as Python objects: for answers, not for whole graphs.

        >>> contents = Contents((np.array([1, 2]),), (np.array(["a", "b"], np.dtypes.StringDType()),), np.array([1, 3]))
        >>> contents.records()
        {(1, 'a'): 1, (2, 'b'): 3}
        """
        columns = [column.tolist() for column in (*self.keys, *self.values)]
        return dict(zip(zip(*columns), self.counts.tolist()))


class Found(NamedTuple):
    """The values of some keys, in columns. Each row has the place of its key among those looked up, a value, its count.

    Where nothing was ever inserted, as on a worker to which no key hashes, `values` is `()`.
    """

    place: Codes
    values: Columns
    counts: Codes


class TraceStatistics(NamedTuple):
    """What a trace holds on this worker, how many readers hold it back, and how many dataflows import it."""

    batches: int
    rows: int
    nbytes: int
    readers: int
    imports: int


class Cursor:
    """The collection as of one time, to look keys up in.

    It does not change when the trace does, and it keeps the batches that it reads alive.

    >>> def program(worker):
    ...     with worker.dataflow() as scope:
    ...         trace = Collection.of(scope, np.array([1, 1, 2]), np.array([2, 3, 3])).arrange_by_key().trace()
    ...     worker.step_while(lambda: trace.upper)
    ...     edges = trace.cursor(0)
    ...     place, (targets,), counts = edges[[2, 1, 9]]
    ...     return place, targets
    >>> execute_directly(program)
    (array([0, 1, 1]), array([3, 2, 3]))
    """

    def __init__(
        self, batches: tuple[Batch, ...], time: Time, key: Encoder, value: Encoder, signed: bool = False
    ) -> None:
        self.time = time
        self._is_signed = signed
        self._batches = batches
        # A copy: keys of another kind are refused here, and the arrangement's encoder must not learn their kind.
        self._key = Encoder(key.interner, key.part, key.kinds)
        self._value = value

    @property
    def key_types(self) -> tuple[str, ...]:
        """The names of the types of the key's columns, as far as rows have shown them."""
        return tuple(map(type_name, self._key.kinds or ()))

    __iter__ = None
    """A cursor cannot be iterated over; without this Python would look up 0, 1, 2, ... for ever."""

    def __getitem__(self, keys: Any) -> Found:
        """Return the values of each key in a column, or in a tuple of columns where keys have several.

        A column is a list, an array, or several scalars. A lookup costs a binary search for each key and batch.

        Raises DataError where a record of one of the keys occurs a negative number of times, unless the cursor is
        `signed`.
        """
        # Where nothing was inserted, the number of key columns is not known, except from whole columns.
        width = len(self._key.kinds or ()) or (len(keys) if _are_columns(keys) else 0)
        if width > 1:
            columns = as_columns(keys)
        else:
            column = as_column(list(keys) if isinstance(keys, tuple) else keys)
            columns = as_columns((column if column.ndim else np.atleast_1d(column),))
        # Where nothing was ever inserted, and in an empty column, keys are of no kind.
        codes = self._key.find(columns) if self._key.kinds and len(columns[0]) else NOTHING
        place, vals, counts = self._look_up(codes)
        return Found(place, own_strings(self._value.decode(vals, len(place))), counts)

    def counts(self, records: tuple[Any, ...]) -> Codes:
        """Return how often each of some records occurs, 0 for one that is absent. `records` are columns, the key first.

        It costs a binary search for each record and batch, however many records its key has.

        Raises DataError where one of the records occurs a negative number of times, unless the cursor is `signed`.

        >>> def program(worker):
        ...     with worker.dataflow() as scope:
        ...         trace = Collection.of(scope, np.array([1, 1, 2]), np.array([2, 2, 3])).arrange_by_key().trace()
        ...     worker.step_while(lambda: trace.upper)
        ...     return trace.cursor(0).counts((np.array([1, 1, 2]), np.array([2, 3, 3])))
        >>> execute_directly(program)
        array([2, 0, 1])
        """
        columns = as_columns(records)
        number = len(columns[0])
        if not self._key.kinds or not number:
            return np.zeros(number, np.int64)
        width = len(self._key.kinds)
        value = Encoder(self._value.interner, self._value.part, self._value.kinds)  # a copy, as that of the key
        keys, vals = self._key.find(columns[:width]), value.find(columns[width:])
        vals = vals if len(vals) else np.zeros(number, np.int64)
        if number == 1:
            return self._counts(keys, vals)
        order = np.lexsort((vals, keys))
        keys, vals = keys[order], vals[order]
        starts = starts_of_runs((keys, vals))  # equal records are looked up once
        result = np.empty(number, np.int64)
        result[order] = self._counts(keys[starts], vals[starts]).repeat(np.diff(starts, append=number))
        return result

    def _counts(self, keys: Codes, vals: Codes) -> Codes:
        """Return how often each of some records occurs, no two of which are equal."""
        place, _, found = self._look_up(keys, vals)
        counts = np.zeros(len(keys), np.int64)
        counts[place] = found  # no place occurs twice: a row of `lookup` is a key and a value
        return counts

    def _look_up(self, keys: Codes, vals: Codes | None = None) -> tuple[Codes, Codes, Codes]:
        """Return what `lookup` does. Raises DataError for a negative number of times, and for one that is too large."""
        try:
            place, found, counts = lookup(self._batches, keys, self.time, vals)
        except Overflow as fault:
            at, val = fault.args[:2]  # rows have the places of their keys
            raise named(Overflow(int(keys[at]), val), self._key, self._value, self.time) from None
        if not self._is_signed:
            _refuse_negative(keys[place], found, counts, self._key, self._value, self.time)
        return place, found, counts

    def below(self, limit: float) -> Contents:
        """Return the records whose key is less than a number. Keys are one column of integers.

        It costs a binary search for each batch, and the records that are returned. Raises DataError for other keys,
        and where `limit` is not a number.

        >>> def program(worker):
        ...     with worker.dataflow() as scope:
        ...         trace = Collection.of(scope, np.array([1, 5, 7]), np.array([2, 3, 3])).arrange_by_key().trace()
        ...     worker.step_while(lambda: trace.upper)
        ...     return trace.cursor(0).below(6).records()
        >>> execute_directly(program)
        {(1, 2): 1, (5, 3): 1}
        """
        kinds = self._key.kinds
        if kinds and kinds != (ColumnKind.INT,):
            raise DataError(
                "only keys that are one column of integers have an order in which `below` can search; the key holds "
                f"{self._key.describe()}"
            )
        if not isinstance(limit, Real) or isinstance(limit, bool) or limit != limit:
            raise DataError(f"the key holds integers, and `below` returns those below a number, not {limit!r:.80}")
        number = limit.item() if isinstance(limit, np.generic) else limit
        try:
            # An integer is less than a number exactly if it is less than the number rounded up.
            least = math.ceil(max(-1 << 63, min(number, 1 << 63)))
            rows = below(self._batches, least, self.time)
        except Overflow as fault:
            raise named(fault, self._key, self._value, self.time) from None
        return _contents(rows, self._key, self._value, self.time, self._is_signed)


def _are_columns(keys: Any) -> bool:
    return isinstance(keys, tuple) and len(keys) > 0 and all(isinstance(key, (np.ndarray, ColumnLike)) for key in keys)


class TraceCore:
    """A reader of an arrangement's trace, kept by the program. Use from the worker's thread, between steps."""

    def __init__(self, export: Export, handle: TraceHandle) -> None:
        self._export = export
        self._handle = handle

    @property
    def upper(self) -> Antichain:
        """The frontier up to which the contents are final on this worker: at all times not in advance of it.

        It is empty once the dataflow is complete or was dropped, because nothing changes any more.
        """
        return self._export.frontier

    @property
    def logical(self) -> Antichain:
        """The frontier from which on contents can be read."""
        return self._handle.logical

    @property
    def physical(self) -> Antichain:
        """The frontier before which the program has released the batches."""
        return self._handle.physical

    def set_logical_compaction(self, frontier: Antichain | Moment) -> None:
        """Read contents only as of times in advance of `frontier` from now on; it does not move back."""
        self._handle.set_logical_compaction(self._later(frontier, self.logical, "contents"))

    def set_physical_compaction(self, frontier: Antichain | Moment) -> None:
        """Release the batches before `frontier`; it does not move back.

        A trace of an arrangement merges its batches anyway: the program reads all of them, and imports begin at the
        upper. That of an imported arrangement waits for this.
        """
        self._handle.set_physical_compaction(self._later(frontier, self.physical, "batches"))

    def allow_compaction_to(self, frontier: Antichain | Moment) -> None:
        """Move both frontiers on, or neither. Until the first call the trace keeps all of its history."""
        physical = self._later(frontier, self.physical, "batches")  # raises before the other has moved
        self.set_logical_compaction(frontier)
        self._handle.set_physical_compaction(physical)

    def consolidate(self) -> None:
        """Merge all batches that no reader distinguishes, in linear time, so that updates that cancel are gone.

        A trace merges its batches by itself, a little with each insert. Until then, a dataflow that imports it receives
        both updates of a record that was inserted and removed, and its functions receive the record.

        Raises DataError where a record occurs more often than 64 bits hold.
        """
        self._check()
        try:
            self._handle.spine.consolidate()
        except Overflow as fault:
            raise named(fault, self._export.key, self._export.value, fault.time) from None

    def contents(self, time: Moment, *, signed: bool = False) -> Contents:
        """Return this worker's share of the collection as of `time`, in columns that are the caller's own.

        Raises DataError where a record occurs a negative number of times, unless `signed`, for a difference of
        collections.
        """
        batches, at = self._as_of(time)
        try:
            rows = accumulate(batches, at)
        except Overflow as fault:
            raise named(fault, self._export.key, self._export.value, at) from None
        return _contents(rows, self._export.key, self._export.value, at, signed)

    def cursor(self, time: Moment, *, signed: bool = False) -> Cursor:
        """Return the collection as of `time`, in which to look up the values of a few keys or of many.

        `signed` is for a difference of collections, in which records may occur a negative number of times.
        """
        return Cursor(*self._as_of(time), self._export.key, self._export.value, signed)

    def imported(self, scope: Scope, since: Antichain | Moment | None, name: str) -> Arranged:
        """Return what is arranged here in another dataflow (see `Trace.import_into`)."""
        self._check()
        at = self.logical if since is None else self._later(since, self.logical, "contents")
        if not at:
            raise TraceError(f"the trace of {self._export} cannot be imported as of an empty frontier: it has no times")
        return import_trace(self._export, self._handle, at, scope, name)

    def batches(self) -> tuple[Batch, ...]:
        """Return the batches held, oldest first, in codes (see `differential.trace.batch`)."""
        self._check()
        return self._handle.batches()

    def statistics(self) -> TraceStatistics:
        """Return how much the trace holds, and how many readers and imports it has."""
        held = self.batches()
        return TraceStatistics(len(held), *size_of(held), self._handle.spine.readers, self._export.imports)

    @property
    def is_dropped(self) -> bool:
        """Whether `drop` was called."""
        return self._handle.is_dropped

    def drop(self) -> None:
        """Stop reading, and hold nothing back any longer. Dataflows that have imported the trace continue."""
        self._handle.drop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.drop()

    def __repr__(self) -> str:
        if self.is_dropped:
            return f"Trace(of {self._export}, dropped)"
        return f"Trace(of {self._export}, logical={self.logical}, physical={self.physical})"

    def _as_of(self, time: Moment) -> tuple[tuple[Batch, ...], Time]:
        """Return the batches whose updates add up to the contents as of a time, and the time."""
        at, upper = self._time(time), self.upper
        self._check()
        if upper.less_equal(at):
            raise TraceError(
                f"the contents of the trace of {self._export} at {at} are not final yet: its upper is {upper}, its "
                f"logical frontier {self.logical}; step until `upper` has passed that time"
            )
        if not self.logical.less_equal(at):
            raise TraceError(
                f"the contents of the trace of {self._export} at {at} are compacted away: its logical frontier "
                f"is {self.logical}, its upper {upper}; allow compaction only up to the times still to be read"
            )
        return self._handle.batches(), at

    def _later(self, frontier: Antichain | Moment, present: Antichain, what: str) -> Antichain:
        self._check()
        times = frontier if isinstance(frontier, Antichain) else [frontier]
        frontier = Antichain(map(self._time, times))
        if not present.dominates(frontier):
            raise TraceError(
                f"the trace of {self._export} has released its {what} before {present}, and cannot restore those from "
                f"{frontier} on"
            )
        return frontier

    def _time(self, time: Moment) -> Time:
        depth = self._handle.depth
        try:
            at = as_time(time)
        except TypeError:
            at = ()
        if len(at) != depth or max(at) > LIMIT:
            raise TraceError(
                f"{time!r} is not a time of the trace of {self._export}: those have {depth} coordinate(s), integers up "
                "to 2 ** 62"
            )
        return at

    def _check(self) -> None:
        if self.is_dropped:
            raise TraceError(f"the trace of {self._export} was dropped, and can no longer be read")


def _contents(rows: tuple[Codes, Codes, Codes], key: Encoder, value: Encoder, time: Time, is_signed: bool) -> Contents:
    """Return keys, values and counts, as of a time, in columns; refuse negative counts unless `is_signed`."""
    keys, vals, counts = rows
    if not is_signed:
        _refuse_negative(keys, vals, counts, key, value, time)
    return Contents(own_strings(key.decode(keys, len(keys))), own_strings(value.decode(vals, len(keys))), counts)


def _refuse_negative(keys: Codes, vals: Codes, counts: Codes, key: Encoder, value: Encoder, time: Time) -> None:
    """Raise DataError where one of the records, given as codes, occurs a negative number of times."""
    if len(counts) and int(counts.min()) < 0:
        row = np.flatnonzero(counts < 0)[:1]
        record = (*key.decode(keys[row], 1), *value.decode(vals[row], 1))
        raise negative_count(record, int(counts[row[0]]), time, may_be_signed=True)
