"""Change a collection by statements: from now on a key has this value, or none.

The operator turns statements `(key, value)` and `(key, nothing)` into updates by looking up the key's value before. It
finds that in the arrangement that it writes, so it keeps nothing else, and the collection is arranged by key already. A
batch of statements costs one lookup of each of its keys.

A statement goes to the worker that its key's hash names, so every worker's session may set any key. Times must be
totally ordered, so that each key has a last statement.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from differential.arrangement.arrange import ByKey, Sealer, new_trace
from differential.arrangement.arranged import Arranged
from differential.data.codes import Encoder
from differential.data.field_kinds import Fields
from differential.data.interning import interner_of
from differential.data.overflow import naming
from differential.data.updates import Array, Ints, Updates
from differential.kernels.compile import NOTHING
from differential.kernels.consolidate import consolidate
from differential.kernels.join import join
from differential.keys import check_keys
from differential.operators.input import Change, are_columns, check_open, gathered, owned
from differential.trace.batch import Batch, table_of
from differential.trace.batcher import Batcher
from differential.trace.columns import UpdateColumns
from differential.trace.description import NO_TIMES
from differential.trace.handle import TraceHandle
from timely import Scope
from timely.errors import DataError
from timely.lowlevel import (
    Antichain,
    InputPort,
    Moment,
    OperatorBuilder,
    Time,
    check_scope,
    new_input as new_stream_input,
    refusal,
)

STATEMENTS = 1 << 40
"""More statements than a session makes in an epoch."""


class UpsertSession:
    """Sets the value of keys, epoch by epoch. Use from the worker's thread.

    Of several statements about a key in one epoch the last is valid; if several workers' sessions make some, the last
    worker's. `flush`, `advance_to` and `close` send the statements.

    >>> def program(worker):
    ...     with worker.dataflow() as scope:
    ...         prices, collection = new_upsert_input(scope)
    ...         output = collection.output()
    ...     prices.set("tea", 3)
    ...     prices.set("tea", 4)
    ...     prices.flush()
    ...     prices.advance_to(1)
    ...     prices.unset("tea")
    ...     prices.close()
    ...     worker.step_while(lambda: not output.done())
    ...     return output.changes()
    >>> execute_directly(program)
    [(('tea', 4), (0,), 1), (('tea', 4), (1,), -1)]
    """

    def __init__(self, scope: Scope, keys: int, name: str) -> None:
        self._input, self.stream = new_stream_input(scope, name=name)
        self._name = name
        self._keys = keys
        # So the statements of a worker are after those of all workers before it.
        self._first = self._next = scope.index * STATEMENTS
        self._fields, self._key_fields = Fields(), Fields()
        self._sets: list[Change] = []
        self._unsets: list[Change] = []
        scope.dataflow.when_program_ends(self.close)

    @property
    def time(self) -> Time:
        """The time from which on statements made now are valid."""
        return self._input.time

    @property
    def epoch(self) -> int:
        """The first coordinate of `time`."""
        return self._input.epoch

    def set(self, *record: Any) -> None:
        """Give a key a value, whatever it had before: `set(*key, *value)`, scalars or whole columns.

        Raises DataError where there are fewer fields than the key has, or not as many or of other kinds than before, or
        what cannot be a column; CapabilityError after `close`.
        """
        if len(record) < self._keys:
            raise DataError(f"a record of {len(record)} field(s), but its key has {self._keys}")
        if not self._sets:
            self._input.refuse_elsewhere("set(...)")
        check_open(self._input, self._name)
        record, _ = owned(record)
        self._fields.check(record)
        self._key_fields.check(record[: self._keys])
        self._sets.append(((*record, self._order(record)), 1))

    def unset(self, *key: Any) -> None:
        """Leave a key without a value, whether it had one or not.

        Raises DataError where there are not as many fields as the key has, or others than before, or what cannot
        be a column; CapabilityError after `close`.
        """
        if not self._unsets:
            self._input.refuse_elsewhere("unset(...)")
        check_open(self._input, self._name)
        if len(key) != self._keys:
            raise DataError(f"a key of {len(key)} field(s), not {self._keys}: unset() is given keys without values")
        key, _ = owned(key)
        self._key_fields.check(key)
        self._unsets.append(((*key, self._order(key)), -1))

    def flush(self) -> None:
        """Send the statements made so far."""
        self._input.refuse_elsewhere("flush()")
        time = self._input.time
        for statements in (self._sets, self._unsets):
            if statements:
                batch = gathered(statements, time)
                statements.clear()
                self._input.send_batch(batch)

    def advance_to(self, time: Moment) -> None:
        """Advance to a later time. The contents of the collection before it are then final."""
        self.flush()
        before = self.time
        self._input.advance_to(time)
        if self.time != before:
            self._next = self._first

    def close(self) -> None:
        """Send the statements made so far and end the session. The values are then final."""
        if self._input.is_closed:
            self._sets.clear()
            self._unsets.clear()
        else:
            self.flush()
            self._input.close()

    def __repr__(self) -> str:
        return f"UpsertSession({self._input!r})"

    def __enter__(self) -> UpsertSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _order(self, record: tuple[Any, ...]) -> int | Ints:
        """Return the place of a statement among all of its epoch; one for each row of columns."""
        start = self._next
        if not are_columns(record):
            self._next += 1
            return start
        length = len(record[0])
        self._next += length
        return np.arange(start, start + length)


def upserted(scope: Scope, keys: int, name: str) -> tuple[UpsertSession, Arranged]:
    """Return a session that sets the value of keys, and the arrangement of (key, value) that follows it."""
    check_scope(name, scope)
    if scope.width != 1:
        raise refusal(name, "the last statement is valid, so times must be totally ordered; see update_at()")
    check_keys(keys)
    session = UpsertSession(scope, keys, name)
    builder = OperatorBuilder(scope, name)
    input = builder.add_input(session.stream, ByKey(keys), frontier=True)
    output, stream = builder.add_output()
    interner = interner_of(scope.dataflow.host)
    key, value = Encoder(interner, "key"), Encoder(interner, "value")
    spine = new_trace(output, key, value)
    sealer = Sealer(output, spine)
    upserter = Upserter(input, sealer, TraceHandle(spine), key, value, keys)
    builder.build_from(upserter.run, naming(key, value, sealer.held))
    scope.dataflow.when_complete(upserter.drop)
    return session, Arranged(stream, TraceHandle(spine), key, value, keys)


class Upserter:
    """The operator.

    Invariant: at every time before the frontier of the last seal, the trace holds every key at most once. Statements
    wait, as they arrived, until the frontier has passed their time.
    """

    def __init__(
        self, input: InputPort, sealer: Sealer, held: TraceHandle, key: Encoder, value: Encoder, keys: int
    ) -> None:
        self._input = input
        self._sealer = sealer
        self._held = held
        self._key = key
        self._value = value
        self._keys = keys
        self._batcher = Batcher(held.depth)
        self._waiting: list[tuple[Time, Updates]] = []

    def run(self) -> None:
        # Between runs statements wait as columns, so all codes are in the trace: a collection may begin.
        self._key.interner.collect()
        for time, batch in self._input.drain():
            updates = cast(Updates, batch)
            if len(updates):
                self._sealer.held.hold(time)
                self._waiting.append((time, updates))
            else:
                self._learn(updates)
        frontier = self._input.frontier
        due = [updates for time, updates in self._waiting if not frontier.admits(time)]
        if due:
            self._waiting = [(time, updates) for time, updates in self._waiting if frontier.admits(time)]
            self._push(*self._statements(due))
        self._sealer.seal(self._batcher, frontier, Antichain(time for time, _ in self._waiting))
        self._held.allow_compaction(frontier)
        self._input.operator.waits = bool(self._sealer.held)

    def drop(self) -> None:
        """Stop reading."""
        self._held.drop()

    def _learn(self, updates: Updates) -> None:
        """Learn the kinds of rows that other workers have. Only statements that set a key have a value."""
        *columns, _ = updates.columns
        self._key.learn(tuple(columns[: self._keys]))
        if len(columns) > self._keys:
            self._value.learn(tuple(columns[self._keys :]))

    def _statements(self, due: list[Updates]) -> tuple[Ints, Ints, Ints, Array]:
        """Return key, time, value (0 for none) and whether there is one, of the last statement on each key and time."""
        parts = []
        for updates in due:
            *columns, order = updates.columns
            keys = self._key.encode(tuple(columns[: self._keys]))
            length = len(keys)
            # All are alike: `flush` sends both kinds apart, and batches of updates that wait are never joined.
            is_set = not len(updates.diffs) or int(updates.diffs[0]) > 0
            vals = self._value.encode(tuple(columns[self._keys :])) if is_set else NOTHING
            time = np.full(length, updates.times[0, 0])
            present = np.full(length, is_set)
            parts.append((keys, time, vals if len(vals) else np.zeros(length, np.int64), present, order))
        keys, time, vals, present, order = (np.concatenate(column) for column in zip(*parts))
        rows = np.lexsort((order, time, keys))
        last = np.ones(len(rows), np.bool_)
        last[:-1] = (np.diff(keys[rows]) != 0) | (np.diff(time[rows]) != 0)
        rows = rows[last]
        return keys[rows], time[rows], vals[rows], present[rows]

    def _push(self, keys: Ints, time: Ints, vals: Ints, present: Array) -> None:
        """Push the difference between each statement and the one before, or the value before, into the batcher."""
        # Rows are in the order of keys and times, so the statement before is in the row before, if of the same key.
        was, had = np.empty_like(vals), np.empty_like(present)
        was[1:], had[1:] = vals[:-1], present[:-1]
        first = np.ones(len(keys), np.bool_)
        first[1:] = np.diff(keys) != 0
        was[first], had[first] = self._values(keys[first])
        differs = (present != had) | (present & (vals != was))
        new, old = np.flatnonzero(present & differs), np.flatnonzero(had & differs)
        rows = np.concatenate([new, old])
        if len(rows):
            times, index = np.unique(time[rows], return_inverse=True)
            held = np.concatenate([vals[new], was[old]])
            diffs = np.concatenate([np.ones(len(new), np.int64), np.full(len(old), -1)])
            self._batcher.push(
                keys[rows], held, times.reshape(-1, 1), index.astype(np.int64) if len(times) > 1 else NOTHING, diffs
            )

    def _values(self, keys: Ints) -> tuple[Ints, Array]:
        """Return the value of each of some keys, sorted and distinct, and whether it has one."""
        vals, present = np.zeros(len(keys), np.int64), np.zeros(len(keys), np.bool_)
        # All that the trace holds is before the statements that are due, so times need not be looked at.
        past = tuple(batch for batch in self._held.batches() if len(batch))
        wanted = Batch(UpdateColumns.of((keys, NOTHING, NOTHING, NOTHING, np.zeros((1, 1), np.int64))), NO_TIMES)
        position = 0
        parts = []
        while past and position >= 0:
            found, _, found_vals, _, _, diffs, position = join(table_of([wanted]), position, 1 << 20, table_of(past))
            length = len(found)
            found_vals = found_vals if len(found_vals) else np.zeros(length, np.int64)
            parts.append((found, found_vals, diffs if len(diffs) else np.ones(length, np.int64)))
        if parts:
            columns = [np.concatenate(column) for column in zip(*parts)]
            found, found_vals, *_ = consolidate(columns[0], columns[1], NOTHING, columns[2], np.zeros((1, 1), np.int64))
            rows = np.searchsorted(keys, found)
            present[rows] = True
            vals[rows] = found_vals if len(found_vals) else 0
        return vals, present
