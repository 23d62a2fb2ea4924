"""Change a collection from outside of the dataflow."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from differential.data.codes import kind_of
from differential.data.field_kinds import Fields
from differential.data.interned import Interned, interned
from differential.data.interning import Interner, interner_of
from differential.data.strings import TEXT
from differential.data.updates import Updates
from differential.kernels.compile import NOTHING
from timely import Scope
from timely.errors import CapabilityError, DataError
from timely.lowlevel import (
    LIMIT,
    Host,
    Input,
    Moment,
    Time,
    Typed,
    as_columns,
    as_time,
    less_equal,
    new_input as new_stream_input,
)

Change = tuple[tuple[Any, ...], int | np.ndarray[Any, Any]]
"""A record or columns of records (see `owned`), and by how much they occur more: a number, or one for each row."""

Diff = int | np.ndarray[Any, Any]

MOST_WAITING: Final = 1 << 12
"""How many rows of changes may wait for the worker's next step: far fewer than make an input congested."""


class InputSession:
    """Changes a collection, epoch by epoch. Use from the worker's thread: others have `Worker.call` change it.

    `insert`, `remove` and `update` take one record given as scalars or many given as whole columns: arrays, lists, or
    what NumPy makes arrays of. Arrays are copied, so the program may write to them again. `flush`, `advance_to` and
    `close` send the changes; each happens at the session's time when it was made, or at the later time that `update_at`
    names.

    >>> def program(worker):
    ...     with worker.dataflow() as scope:
    ...         session, stock = new_input(scope)
    ...         output = stock.output()
    ...     session.insert(np.array(["nut", "bolt"]))
    ...     session.update("nut", diff=4)
    ...     session.advance_to(1)
    ...     session.remove("bolt")
    ...     session.flush()
    ...     worker.step_while(lambda: output.less_than(1))
    ...     before = output.contents()
    ...     session.close()
    ...     worker.step_while(lambda: not output.done())
    ...     return before, output.contents()
    >>> execute_directly(program)
    ({('bolt',): 1, ('nut',): 5}, {('nut',): 5})
    """

    def __init__(self, scope: Scope, name: str, *, sends_together: bool = True) -> None:
        """With `sends_together`, changes of several epochs may go out in one batch (see `advance_to`)."""
        self._input, self.stream = new_stream_input(scope, name=name)
        self._name = name
        self._fields = Fields()
        self._changes: list[Change] = []
        self._later: list[tuple[Change, Time]] = []
        self._sends_together = sends_together
        self._ahead: Time | None = None
        """The time of the session while it has advanced and its input has not."""
        self._waiting = 0
        """How many rows of changes wait for the input to advance."""
        self._last_step = -1.0
        """When the step began before which the input advanced last."""
        self._host = scope.dataflow.host
        self._interner = interner_of(self._host)
        scope.dataflow.when_program_ends(self.close)

    @property
    def time(self) -> Time:
        """The time at which changes happen now."""
        return self._input.time if self._ahead is None or self._input.is_closed else self._ahead

    @property
    def epoch(self) -> int:
        """The first coordinate of `time`."""
        return self.time[0]

    @property
    def is_congested(self) -> bool:
        """Whether more than `Config.queue_bytes` of changes wait in the dataflow (see `Input.is_congested`)."""
        self._catch_up()
        return self._input.is_congested

    def insert(self, *record: Any) -> None:
        """Add a record, or each row of the given columns, once."""
        self.update(*record, diff=1)

    def remove(self, *record: Any) -> None:
        """Remove a record, or each row of the given columns, once."""
        self.update(*record, diff=-1)

    def update(self, *record: Any, diff: Diff) -> None:
        """Add a record, or each row of the given columns, `diff` times (a number, or one for each row).

        Raises DataError where there are not as many fields as in the record before, or fields of other kinds, or none,
        or what cannot be a column or a number of times; CapabilityError after `close`.
        """
        if not self._changes:
            self._input.refuse_elsewhere("update(...)")
        check_open(self._input, self._name)
        change = owned(record, diff, self._interner)
        self._fields.check(change[0])
        self._changes.append(change)

    def update_at(self, *record: Any, time: Moment, diff: Diff = 1) -> None:
        """Add a record, or each row of the given columns, `diff` times from `time` on.

        `time` must not be before the session's own. With two coordinates of outermost time this is how a change is
        placed anywhere in the grid: the session can only move along a chain of times.

        Raises CapabilityError where `time` is not at or after the session's or has a coordinate larger than 2 ** 62,
        DataError as `update` does.

        >>> def program(worker):
        ...     with worker.dataflow() as scope:
        ...         bookings, rooms = new_input(scope)
        ...         taken = rooms.output()
        ...     bookings.update_at("blue", time=3)
        ...     bookings.update_at("blue", time=5, diff=-1)
        ...     bookings.close()
        ...     worker.step_while(lambda: not taken.done())
        ...     return taken.changes()
        >>> execute_directly(program)
        [(('blue',), (3,), 1), (('blue',), (5,), -1)]
        """
        if not self._later:
            self._input.refuse_elsewhere("update_at(...)")
        check_open(self._input, self._name)
        now, then = self.time, as_time(time)
        if len(then) != len(now):
            raise CapabilityError(f"{then} is not a time of input {self._name!r}, whose times look like {now}")
        if max(then) > LIMIT:
            raise CapabilityError(f"{then} is too late: no coordinate of a time may be larger than 2 ** 62")
        if not less_equal(now, then):
            raise CapabilityError(
                f"input {self._name!r} is at time {now} and cannot change the collection at {then}, which is not at or "
                "after it: the contents of the collection there are final"
            )
        change = owned(record, diff, self._interner)
        self._fields.check(change[0])
        self._later.append((change, then))

    def flush(self) -> None:
        """Send the changes made so far."""
        self._input.refuse_elsewhere("flush()")
        # First: the input must be at the session's time, at which the changes are sent.
        self._catch_up()
        if self._changes:
            changes, self._changes = self._changes, []
            self._input.send_owned(self._interned(gathered(changes, self._input.time)))
        if self._later:
            later, self._later = self._later, []
            self._input.send_owned(self._interned(_gathered_at(later)))

    def advance_to(self, time: Moment) -> None:
        """Advance to a later time. The contents of the collection before it are then final.

        Where a program advances several times before the worker steps, the changes since the first time wait for the
        next step, and are sent in one batch; at most `MOST_WAITING` of them wait.
        """
        step = self._host.activity.step_began
        if step == self._last_step and self._sends_together and self._can_wait(time):
            return
        self.flush()
        self._input.advance_to(time)
        self._last_step = step

    def _can_wait(self, time: Moment) -> bool:
        """Advance the session alone, and return True; do nothing if its input must be up to date, or is to refuse."""
        if self._input.is_closed:
            return False
        now, then = self.time, as_time(time)
        if len(then) != len(now) or max(then) > LIMIT or not less_equal(now, then):
            return False
        self._input.refuse_elsewhere("advance_to(...)")
        self._waiting += sum([_rows_of(record) for record, _ in self._changes])
        if self._waiting > MOST_WAITING:
            return False  # `flush`, which follows, begins to count anew
        if self._ahead is None:  # else it was asked for already
            self._host.call(self._catch_up)
        self._later += [(change, now) for change in self._changes]
        self._changes.clear()
        self._ahead = then
        return True

    def _catch_up(self) -> None:
        """Send the changes before the session's time, and advance the input to it, if that is behind."""
        self._waiting = 0
        if self._ahead is None:
            return
        ahead, self._ahead = self._ahead, None
        later, self._later = self._later, []
        if self._input.is_closed:
            return
        try:
            if later:
                self._input.send_owned(self._interned(_gathered_at(later)))
        except BaseException:
            # So that a later call tries again, in the order of the program's calls.
            self._ahead, self._later = ahead, [*later, *self._later]
            raise
        if not self._input.is_closed:  # by a function that consumes the changes
            self._input.advance_to(ahead)

    def close(self) -> None:
        """Send the changes made so far and end the session. The contents of the collection are then final."""
        if self._input.is_closed:
            self._changes.clear()
            self._later.clear()
            self._ahead = None
        else:
            self._input.refuse_elsewhere("close()")
            self.flush()
            self._input.close()

    def _interned(self, updates: Updates) -> Updates:
        """Return changes with their text and bytes as numbers in the worker's table."""
        return interned_updates(updates, self._host)

    def __repr__(self) -> str:
        advanced = "" if self._ahead is None else f", advanced to {self._ahead}"
        return f"InputSession({self._input!r}{advanced})"

    def __enter__(self) -> InputSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def interned_updates(updates: Updates, host: Host) -> Updates:
    """Return updates with their text and bytes as numbers in a worker's table, which may then begin to reclaim some."""
    for column in updates.columns:
        dtype = column.dtype
        if dtype is not _INT64 and dtype.kind in _STRINGS:
            break
    else:
        return updates
    interner = interner_of(host)
    columns = tuple([interned(column, interner) for column in updates.columns])
    if interner.has_work:
        # The program may call this inside of an operator's run, where none may be reclaimed.
        host.call(interner.collect)
    return updates.with_columns(columns)


def check_open(input: Input, name: str) -> None:
    """Raise CapabilityError where an input is closed."""
    if input.is_closed:
        raise CapabilityError(
            f"input {name!r} was closed and takes no more changes (dropping a dataflow closes its inputs)"
        )


def _gathered_at(later: list[tuple[Change, Time]]) -> Updates:
    """Return changes at times of their own as one batch of updates."""
    number: dict[Time, int] = {}
    which = [number.setdefault(time, len(number)) for _, time in later]
    lengths = [len(as_columns(record)[0]) for (record, _), _ in later]
    updates = gathered([change for change, _ in later], later[0][1])
    index = np.repeat(np.array(which, np.int64), lengths) if len(number) > 1 else NOTHING
    return Updates(updates.columns, np.array(list(number), np.int64), index, updates.diffs)


def owned(record: tuple[Any, ...], diff: Diff = 1, interner: Interner | None = None) -> Change:
    """Return a change to keep until it is sent: scalars, or columns that nobody else writes to.

    With an `interner`, columns of text and bytes are numbers in its table, instead of copies.

    Integers have the width that they have where they are indexed, 64 bits. Floats keep their width, because most
    numbers differ in another width.
    """
    if _are_plain(record, interner):
        shape = record[0].shape
        if not isinstance(diff, np.ndarray) or diff.dtype is not _INT64 or diff.shape != shape:
            diff = _checked(diff, shape)
        else:
            diff = diff.copy()
        return tuple([_owned_plain(field, interner) for field in record]), diff
    for field in record:
        kind = type(field)
        # A duration is a column: scalars are of one kind if they are of one class, and it may be of several units.
        if kind not in _SCALARS and (kind is np.timedelta64 or not issubclass(kind, _NUMPY_SCALARS)):
            break
    else:
        if not record:
            raise DataError("a record needs at least one field")
        return record, diff if type(diff) is int and -_MOST <= diff < _MOST else _checked(diff, ())
    if bytearray in map(type, record):
        raise DataError("a bytearray is neither one field nor a column: bytes() makes a field of it")
    _refuse_records(record)
    columns = as_columns(record)
    if interner is not None:
        columns = tuple([interned(column, interner) if column.dtype.kind in _STRINGS else column for column in columns])
    columns = tuple(
        _widened(column, copy=not isinstance(given, (list, range))) for column, given in zip(columns, record)
    )
    return columns, _checked(diff, columns[0].shape)


def _refuse_records(fields: tuple[Any, ...]) -> None:
    """Raise DataError where a tuple is the only field, or is beside a scalar: it may be a record or a key of several
    columns.
    """
    given = next((field for field in fields if isinstance(field, tuple)), None)
    if given is None:
        return
    scalars = [each for each in fields if isinstance(each, (str, bytes)) or not hasattr(each, "__len__")]
    if scalars or len(fields) == 1:
        where = f"beside {scalars[0]!r:.80}" if scalars else "as the only field"
        raise DataError(
            f"{given!r:.80} is a tuple {where}: a record is given field by field (*record), a column as a list or an "
            "array"
        )


def _are_plain(record: tuple[Any, ...], interner: Interner | None) -> bool:
    """Return whether a record is columns of 64-bit integers, or of text to be interned, equally long: most are."""
    length = -1
    for field in record:
        if type(field) is not np.ndarray or field.ndim != 1:
            return False
        dtype = field.dtype
        if dtype is not _INT64 and (interner is None or dtype.kind != "T" or dtype != TEXT):
            return False
        if length < 0:
            length = len(field)
        elif len(field) != length:
            return False
    return length >= 0


def _owned_plain(field: np.ndarray[Any, Any], interner: Interner | None) -> np.ndarray[Any, Any]:
    """Return a column of `_are_plain` that nobody else writes to."""
    return field.copy() if field.dtype is _INT64 or interner is None else interned(field, interner)


_STRINGS: Final = "TO"
_ARRAYS: Final = (np.ndarray, Interned, Typed)
_SCALARS: Final = {int, float, bool, str, bytes}
_NUMPY_SCALARS: Final = (np.number, np.bool_, np.character)
_MOST: Final = 1 << 63
_INT64: Final = np.dtype(np.int64)


def _widened(column: np.ndarray[Any, Any], *, copy: bool = False) -> np.ndarray[Any, Any]:
    """Return a column with integers of 64 bits, if it is of integers; floats in the byte order of this machine.

    -0.0 becomes 0.0: they are one value, of which a function must not see two.
    """
    if isinstance(column, Typed):
        return column
    dtype = column.dtype
    kind = dtype.kind
    if kind == "f":
        kind_of(column)  # refuses floats of more than 64 bits
        zero: np.ndarray[Any, Any] = np.zeros(1, dtype.newbyteorder("="))
        one_zero: np.ndarray[Any, Any] = column.astype(zero.dtype, subok=False, copy=False) + zero
        return one_zero
    if kind == "i" or (kind == "u" and not (len(column) and int(column.max()) >= _MOST)):
        dtype = _INT64
    return column.astype(dtype, subok=False, copy=copy)


def _checked(diff: Any, shape: tuple[int, ...]) -> Diff:
    """Return by how much records occur more: one integer, or a copy of one for each row. Raise DataError otherwise."""
    diffs = np.asarray(diff)
    kind = diffs.dtype.kind
    is_large = kind == "u" and diffs.size and int(diffs.max()) >= _MOST
    if kind not in "iub" or diffs.shape not in ((), shape) or is_large:
        each = f" for each of the {shape[0]} rows" if shape else ""
        raise DataError(f"diffs must be one integer{each} of 64 bits, not {diff!r:.80} ({diffs.dtype}{diffs.shape})")
    return diffs.astype(np.int64) if diffs.ndim else int(diffs)


def gathered(changes: list[Change], time: Time) -> Updates:
    """Return many changes, whose fields have passed `Fields.check`, as one batch of updates."""
    if len(changes) == 1:
        record, diff = changes[0]
        columns = columns_of(record)
        return Updates.at(time, columns, _diffs(diff, len(columns[0])))
    if all(type(record[0]) not in _ARRAYS for record, _ in changes):
        fields = tuple([list(field) for field in zip(*[record for record, _ in changes])])
        columns = tuple(map(_widened, as_columns(fields)))
        diffs = np.array([diff for _, diff in changes], np.int64)
        return Updates.at(time, columns, NOTHING if (diffs == 1).all() else diffs)
    parts = [columns_of(record) for record, _ in changes]
    columns = tuple(map(_stacked, zip(*parts)))
    each = [_diffs(diff, len(part[0]), spelled_out=True) for part, (_, diff) in zip(parts, changes)]
    return Updates.at(time, columns, np.concatenate(each))


def are_columns(record: tuple[Any, ...]) -> bool:
    """Return whether a record from `owned` is columns, not scalars."""
    return type(record[0]) in _ARRAYS


def _rows_of(record: tuple[Any, ...]) -> int:
    """Return how many rows a record from `owned` has."""
    return len(record[0]) if type(record[0]) in _ARRAYS else 1


def columns_of(record: tuple[Any, ...]) -> tuple[np.ndarray[Any, Any], ...]:
    """Return a record from `owned` as columns: as it is, unless it is scalars."""
    return record if type(record[0]) in _ARRAYS else tuple(map(_widened, as_columns(record)))


def _stacked(parts: tuple[np.ndarray[Any, Any], ...]) -> np.ndarray[Any, Any]:
    """Return the parts of a column as one."""
    return np.concatenate(tuple(part for part in parts if len(part)) or parts[:1])


def _diffs(diff: Diff, length: int, *, spelled_out: bool = False) -> np.ndarray[Any, Any]:
    if isinstance(diff, np.ndarray):
        return diff
    return NOTHING if diff == 1 and not spelled_out else np.full(length, diff, np.int64)
