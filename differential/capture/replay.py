"""A captured collection, read back (see `differential.capture`).

There are three operators. Each worker *reads* its share of the sources and routes the updates by a hash of their
record, so that copies meet. Each worker *admits* the updates that it has not seen, which are the collection, and
reports their number. Worker 0 *tallies* these numbers against the statements; the frontier of complete times goes back
to all that admit, and they release their capabilities for it. The streams between the operators are not collections, so
no path leads from their inputs to their outputs: each operator holds the capabilities that it needs itself.

Updates are emitted as they arrive, before their time is complete: the frontier shows when it is. The operators hold the
updates at times that are not complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from differential.capture.messages import CapturedUpdates, Statement, counts_of
from differential.capture.tally import Tally
from differential.data.codes import Codes, Encoder
from differential.data.interning import hold_columns, interner_of
from differential.data.pact import Parts, Spreading
from differential.data.updates import Ints, Updates
from differential.kernels.compile import NOTHING
from timely import Scope, Stream
from timely.capture import EventSource
from timely.errors import CaptureError
from timely.lowlevel import (
    EVENTS_PER_RUN,
    Antichain,
    Broadcast,
    Capability,
    CapabilitySet,
    Gather,
    OperatorBuilder,
    OutputPort,
    Time,
    check_scope,
    check_sources,
    destinations,
    hash_columns,
    less_equal,
    poller,
    scatter,
)


class ByRecord(Spreading):
    """A pact: each update goes to the worker that its record's hash names."""

    name = "by record"

    def spread(self, updates: Updates, peers: int) -> Parts:
        return scatter(updates, destinations(hash_columns(updates.columns), peers))


def replayed(scope: Scope, sources: Sequence[EventSource], name: str) -> Stream:
    """Return the updates that were captured (see `differential.replay_into`)."""
    check_scope(name, scope)
    check_sources(name, sources)
    handle, news = scope.feedback(name=f"{name}: news")
    reader, admission = ReplayReader(list(sources[scope.index :: scope.peers])), Admission(scope)
    updates, statements = _read(scope, reader, f"{name}: read")
    collection, counts = _admit(updates, news, admission, reader, name)
    _tally(statements, counts, f"{name}: tally").connect_loop(handle)
    return collection


class ReplayReader:
    """Takes the messages out of a worker's sources, until these are exhausted or the collection is complete."""

    def __init__(self, sources: list[EventSource]) -> None:
        self._sources = sources

    def messages(self) -> Iterator[CapturedUpdates | Statement]:
        """Yield the messages that have arrived, up to a number for each source."""
        for source in self._sources:
            for _ in range(EVENTS_PER_RUN):
                event = source.next_nowait()
                if event is None:
                    break
                if not isinstance(event, (CapturedUpdates, Statement)):
                    raise CaptureError(f"{source} holds {event.kind!r}, not a message of a captured collection")
                yield event
        for source in [source for source in self._sources if source.exhausted]:
            source.close()
            self._sources.remove(source)

    def close(self) -> None:
        """Stop reading messages."""
        for source in self._sources:
            source.close()
        self._sources = []

    @property
    def done(self) -> bool:
        """Whether all sources are closed."""
        return not self._sources


def _read(scope: Scope, reader: ReplayReader, name: str) -> tuple[Stream, Stream]:
    builder = OperatorBuilder(scope, name)
    (changes, updates), (claims, statements) = builder.add_output(initial=True), builder.add_output(initial=True)
    again = poller(builder)
    scope.dataflow.when_complete(lambda: builder.operator.attempt(reader.close))

    def constructor(capabilities: list[Capability]) -> Callable[[], None]:
        def logic() -> None:
            busy = False
            for message in reader.messages():
                busy = True
                if isinstance(message, CapturedUpdates):
                    changes.give(capabilities[0], message.updates)
                else:
                    claims.give(capabilities[1], [message.parts()[0]])
            if not reader.done:
                again(busy)
                return
            for capability in capabilities:
                capability.drop()

        return logic

    builder.build(constructor)
    return updates, statements


class Admission:
    """Admits each update once, however often it arrives."""

    def __init__(self, scope: Scope) -> None:
        self._interner = interner = interner_of(scope.dataflow.host)
        self._key, self._value = Encoder(interner, "first column"), Encoder(interner, "rest")
        self._seen = Seen()
        self._number: dict[Time, int] = {}
        self._next = 0
        self._width = scope.width
        self.frontier = Antichain([scope.minimum])
        hold_columns(scope.dataflow, self.held_codes)

    def held_codes(self) -> Iterator[tuple[Encoder, Codes]]:
        """Yield the columns of codes held between runs, and what they mean."""
        for keys, vals in self._seen.columns():
            yield self._key, keys
            yield self._value, vals

    def reclaim(self) -> None:
        """Reclaim codes of text. Called only while nothing but the columns held has codes."""
        self._interner.collect()

    def admit(self, updates: Updates) -> Updates:
        """Return those of the updates that are new."""
        if not len(updates):  # other workers have the rows, this one learns their kinds
            self._key.learn(updates.columns[:1])
            self._value.learn(updates.columns[1:])
            return updates
        times = [tuple(time) for time in updates.times.tolist()]
        if len(times[0]) != self._width:
            raise CaptureError(f"{times[0]} is not a time of this scope: it has {self._width} coordinate(s)")
        numbers = np.array([self._number_of(time) for time in times], np.int64)
        index = updates.each_time_index()
        waiting = np.flatnonzero(numbers[index] >= 0)
        if len(waiting) < len(updates):
            updates, index = updates.take(waiting), index[waiting]
        if not len(updates):
            return updates
        new, unlike = self._seen.add(self._rows(updates, numbers[index]))
        if len(unlike):
            record, time, diff = next(updates.take(unlike[:1]).rows())
            raise CaptureError(f"the update of {record} at {time} came with different diffs, one of them {diff}")
        return updates if len(new) == len(updates) else updates.take(new)

    def advance_to(self, frontier: Antichain) -> None:
        """Release the updates at times that are complete."""
        self.frontier = frontier
        passed = [time for time in self._number if not frontier.admits(time)]
        if passed:
            self._seen.forget(np.array([self._number.pop(time) for time in passed], np.int64))

    def _number_of(self, time: Time) -> int:
        """Return the number of a time, -1 if it is complete."""
        number = self._number.get(time)
        if number is not None:
            return number
        if not self.frontier.admits(time):
            return -1
        self._next += 1
        self._number[time] = self._next
        return self._next

    def _rows(self, updates: Updates, numbers: Ints) -> Rows:
        rows = np.zeros((4, len(updates)), np.int64)
        rows[0] = self._key.encode(updates.columns[:1])
        if len(updates.columns) > 1:
            rows[1] = self._value.encode(updates.columns[1:])
        rows[2] = numbers
        rows[3] = updates.each_diff()
        return rows


def _admit(
    updates: Stream, news: Stream, admission: Admission, reader: ReplayReader, name: str
) -> tuple[Stream, Stream]:
    builder = OperatorBuilder(updates.scope, name)
    received = builder.add_input(updates, ByRecord(), frontier=True)
    complete = builder.add_input(news, Broadcast())
    (result, collection), (count, counts) = builder.add_output(initial=True), builder.add_output(initial=True)
    # Without a path what arrives permits nothing: the operator emits by the capabilities that it holds.
    for input in (received, complete):
        for output in (result, count):
            builder.connect(input, output, None)

    def constructor(capabilities: list[Capability]) -> Callable[[], None]:
        held, counting = CapabilitySet.of(capabilities[0]), capabilities[1]

        def logic() -> None:
            admission.reclaim()
            for _, batch in received.drain():
                new = admission.admit(cast(Updates, batch))
                if len(new):
                    # In the activation that emits the updates, so that what the tally counts has been emitted.
                    count.give(counting, counts_of(new))
                    _send(new, held, result)
            for _, batch in complete.drain():
                for elements in cast(list[tuple[Time, ...]], batch):
                    admission.advance_to(Antichain(elements))
                held.downgrade(admission.frontier)
            if not admission.frontier:  # all times are complete, so the sources have nothing new
                reader.close()
            if not received.frontier:
                counting.drop()  # no updates follow, so no numbers

        return logic

    builder.build(constructor)
    return collection, counts


def _send(updates: Updates, held: CapabilitySet, output: OutputPort) -> None:
    """Emit each update with the first capability that permits its time."""
    for time in held.times:
        permitted = np.array([less_equal(time, tuple(each)) for each in updates.times.tolist()], np.bool_)
        if permitted.all():
            output.give(held[time], updates)
            return
        rows = permitted[updates.each_time_index()]
        if rows.any():
            output.give(held[time], updates.take(rows))
            updates = updates.take(~rows)
        if not len(updates):
            return
        # `take` leaves times in the table that no row has any more, and the next capability need not permit these.
        updates = _with_used_times(updates)


def _with_used_times(updates: Updates) -> Updates:
    if not len(updates.time_index):
        return updates
    used, index = np.unique(updates.time_index, return_inverse=True)
    single = len(used) == 1
    return Updates(updates.columns, updates.times[used], NOTHING if single else index, updates.diffs)


def _tally(statements: Stream, counts: Stream, name: str) -> Stream:
    scope = statements.scope
    builder = OperatorBuilder(scope, name)
    claims = builder.add_input(statements, Gather(0), frontier=True)
    counted = builder.add_input(counts, Gather(0), frontier=True)
    output, news = builder.add_output(initial=True)
    for input in (claims, counted):
        builder.connect(input, output, None)

    def constructor(capabilities: list[Capability]) -> Callable[[], None]:
        tally = Tally(Antichain([scope.minimum]))
        emitted = tally.frontier
        capability = capabilities[0]
        if scope.index:
            capability.drop()  # worker 0 receives all statements and numbers

        def logic() -> None:
            nonlocal emitted
            for _, batch in counted.drain():
                tally.see(cast(list[tuple[Time, int]], batch))
            for _, batch in claims.drain():
                for plain in cast(list[object], batch):
                    tally.state(Statement.from_parts(plain, None))
            frontier = tally.frontier
            if frontier != emitted:
                emitted = frontier
                output.give(capability, [frontier.elements])
            if not frontier:
                capability.drop()
            elif not claims.frontier and not counted.frontier and scope.index == 0:
                raise CaptureError(f"all sources have ended, but the collection is not complete: {tally.missing()}")

        return logic

    builder.build(constructor)
    return news


Rows = NDArray[np.int64]
"""int64[4, n]: two codes of the record, the time's number, the diff."""

_DIFF = 3


class Seen:
    """The updates seen at times that are not complete.

    An update is a row of four integers: codes of its record (two), the number of its time, its diff. Rows are kept
    sorted by the first three in layers of geometrically growing size. Whether a row is there is found by a binary
    search that takes all wanted rows at once, column by column: each narrows the range in which the next is searched.

    Cost: a sort of the new rows and a search in each of O(log n) layers; rows are merged O(log n) times.

    >>> seen = Seen()
    >>> seen.add(np.array([[7, 7, 8], [0, 0, 0], [0, 0, 0], [1, 1, 2]]))
    (array([0, 2]), array([], dtype=int64))
    >>> seen.add(np.array([[7, 8, 9], [0, 0, 0], [0, 0, 0], [1, 1, 1]]))
    (array([2]), array([1]))
    """

    def __init__(self) -> None:
        self._layers: list[Rows] = []

    def __len__(self) -> int:
        return sum(layer.shape[1] for layer in self._layers)

    def add(self, rows: Rows) -> tuple[Ints, Ints]:
        """Return the positions of the rows that are new, and of those that contradict an earlier one by their diff."""
        order = _sorted(rows)
        ordered = rows[:, order]
        # The sort is stable, so of equal rows the first is the one that counts as new.
        same = np.zeros(len(order), np.bool_)
        same[1:] = (ordered[:_DIFF, 1:] == ordered[:_DIFF, :-1]).all(axis=0)
        unlike = np.zeros(len(order), np.bool_)
        unlike[1:] = same[1:] & (ordered[_DIFF, 1:] != ordered[_DIFF, :-1])
        for layer in self._layers:
            there, place = _search(layer, ordered)
            unlike |= there & (layer[_DIFF, place] != ordered[_DIFF])
            same |= there
        if not same.all():
            layers = self._layers
            layers.append(ordered[:, ~same])
            while len(layers) > 1 and layers[-2].shape[1] <= 2 * layers[-1].shape[1]:
                together = np.concatenate([layers.pop(), layers.pop()], axis=1)
                layers.append(together[:, _sorted(together)])
        return np.sort(order[~same]), np.sort(order[unlike])

    def columns(self) -> list[tuple[Ints, Ints]]:
        """Return the columns of codes held."""
        return [(layer[0], layer[1]) for layer in self._layers]

    def forget(self, numbers: Ints) -> None:
        """Forget the rows at the times with these numbers."""
        kept = [layer[:, ~np.isin(layer[2], numbers)] for layer in self._layers]
        self._layers = [layer for layer in kept if layer.shape[1]]


def _sorted(rows: Rows) -> Ints:
    return np.lexsort((rows[2], rows[1], rows[0]))


def _search(layer: Rows, wanted: Rows) -> tuple[NDArray[np.bool_], Ints]:
    """Return whether each wanted row is in the layer, and a place in it, its own if it is."""
    low = np.searchsorted(layer[0], wanted[0], "left")
    high = np.searchsorted(layer[0], wanted[0], "right")
    for column in (1, 2):
        first = _bound(layer[column], wanted[column], low, high, equal=False)
        high = _bound(layer[column], wanted[column], first, high, equal=True)
        low = first
    return low < high, np.minimum(low, layer.shape[1] - 1)


def _bound(column: Ints, wanted: Ints, low: Ints, high: Ints, *, equal: bool) -> Ints:
    """Return where, in the sorted ranges `low:high`, what is before the wanted (or equal to it) ends."""
    while (open := low < high).any():
        middle = (low + high) >> 1
        found = column[np.minimum(middle, len(column) - 1)]
        before = open & ((found <= wanted) if equal else (found < wanted))
        low, high = np.where(before, middle + 1, low), np.where(open & ~before, middle, high)
    return low
