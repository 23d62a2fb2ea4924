"""Dates, timestamps, durations and times of day: counts of a unit, which functions see as NumPy's times.

A count of units is stored less 1, which takes NaT, the least int64, to the largest, and so puts nulls last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from types import NoneType
from typing import Any

import numpy as np

from timely.data.comparisons import DURATIONS, MOMENTS
from timely.data.logical import NULL, Array, LogicalType, nulled
from timely.errors import DataError

_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
"""The units in a day."""
_NAT = -1 << 63
_MOST = (1 << 63) - 1
_EPOCH, _INSTANT = datetime(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC)


class InUnits(LogicalType):
    """What is counted in units: `dtype` is datetime64 or timedelta64 of the unit."""

    accepts: tuple[type, ...] = ()
    """The classes of Python values."""
    letter = "m"
    """The kind of NumPy's times."""

    def __init__(self, name: str, unit: str) -> None:
        super().__init__(name)
        self.unit = unit
        self.dtype = np.dtype(f"{self.letter}8[{unit}]")

    def store(self, values: Any) -> Array:
        return self._counts(values) - 1

    def array(self, storage: Array) -> Array:
        array: Array = (storage + 1).view(self.dtype)
        return array

    def to_list(self, storage: Array) -> list[Any]:
        array = self.array(storage)
        items: list[Any] = array.tolist()
        if array.dtype.str.endswith("[ns]") or int in set(map(type, items)):  # beyond what Python's classes represent
            items = nulled(list(array), np.isnat(array))
        return items

    def _counts(self, values: Any) -> Array:
        """Return the counts of units as int64, NaT for a null."""
        if not isinstance(values, np.ndarray) or values.dtype.kind == "O":
            values = self._from_python(list(values))
        if values.dtype.kind != self.dtype.kind:
            raise DataError(f"a column of {values.dtype} is not one of {self.name}")
        try:
            counts: Array = values.astype(self.dtype, copy=False)
        except OverflowError:  # NumPy 2.5 raises it; before, what is too large came out as another time
            row = next(row for row, value in enumerate(values) if self._is_beyond(value))
            raise self.refused(values, row, "is too large or too precise") from None
        if values.dtype != self.dtype:
            exact = (counts.astype(values.dtype) == values) | np.isnat(values)
            if not exact.all():
                raise self.refused(values, int(np.argmin(exact)), "is too large or too precise")
        return counts.view(np.int64)

    def _is_beyond(self, value: Any) -> bool:
        try:
            value.astype(self.dtype)
        except OverflowError:
            return True
        return False

    def _from_python(self, values: list[Any]) -> Array:
        """Return Python values as an array of times of any unit."""
        # Exactly this class: subclasses differ, as `datetime` does from `date`, or count nanoseconds, as those of
        # pandas.
        if set(map(type, values)) <= {self.accepts[0], NoneType}:
            with suppress(TypeError, OverflowError):  # one has to be named: for its zone, or as too large
                counts = [_NAT if value is None else self._micros(value) for value in values]
                return np.array(counts, np.int64).view(f"{self.dtype.kind}8[us]")
        plain = [self._plain(values, row) for row in range(len(values))]
        micros = np.dtype(f"{self.dtype.kind}8[us]")
        units = {getattr(value, "dtype", micros) for value in plain if value is not None}
        if len(units) > 1:
            return self._of_units(values, [np.array([value], getattr(value, "dtype", micros)) for value in plain])
        return np.array(plain, next(iter(units), micros))

    def _of_units(self, values: list[Any], arrays: list[Array]) -> Array:
        """Return values of several units, given as arrays of one.

        Given all of them, NumPy wraps those that the finest of the units cannot hold.
        """
        counts = []
        for row, array in enumerate(arrays):
            try:
                counts.append(self._counts(array))
            except DataError:
                raise self.refused(values, row, "is too large or too precise") from None
        return np.concatenate(counts).view(self.dtype)

    def _micros(self, value: Any) -> int:
        """Return the microseconds of a value, faster than NumPy. Raises TypeError where it has a zone, or has to."""
        raise NotImplementedError

    def _plain(self, values: list[Any], row: int) -> Any:
        """Return a value without its zone. Raises DataError for one of another class."""
        value = values[row]
        if value is None or isinstance(value, self.dtype.type):
            return value
        if not isinstance(value, self.accepts):
            raise self.refused(values, row, f"is of class {type(value).__name__}")
        return value


class Dates(InUnits):
    """Dates. Functions see datetime64[D]."""

    compared_as = MOMENTS
    accepts = (date,)
    letter = "M"

    def __init__(self, name: str) -> None:
        super().__init__(name, "D")

    def _micros(self, value: date) -> int:
        return (value.toordinal() - _EPOCH.toordinal()) * _DAY["us"]

    def _plain(self, values: list[Any], row: int) -> Any:
        if isinstance(values[row], datetime):
            raise self.refused(values, row, "has a time of day")
        return super()._plain(values, row)


class Timestamps(InUnits):
    """Timestamps of a unit: local times, or instants that are shown in a zone. Functions see instants in UTC."""

    compared_as = MOMENTS
    accepts = (datetime,)
    letter = "M"

    def __init__(self, name: str, unit: str, zone: str | None = None) -> None:
        super().__init__(name, unit)
        self.zone = zone

    def to_list(self, storage: Array) -> list[Any]:
        items = super().to_list(storage)
        if self.zone is None:
            return items
        return [item.replace(tzinfo=UTC) if isinstance(item, datetime) else item for item in items]

    def _micros(self, value: datetime) -> int:
        return micros_of(value - (_EPOCH if self.zone is None else _INSTANT))

    def _plain(self, values: list[Any], row: int) -> Any:
        value = super()._plain(values, row)
        if not isinstance(value, datetime):
            return value
        if (value.tzinfo is None) != (self.zone is None):
            raise self.refused(values, row, "has no zone" if value.tzinfo is None else "has a zone")
        return as_operand(value, is_instant=True)


class Durations(InUnits):
    """Durations of a unit. Functions see timedelta64."""

    compared_as = DURATIONS
    accepts = (timedelta,)

    def _micros(self, value: timedelta) -> int:
        return micros_of(value)

    def _plain(self, values: list[Any], row: int) -> Any:
        value = super()._plain(values, row)
        is_exact = hasattr(value, "to_timedelta64")  # of pandas, which counts nanoseconds
        # NumPy would wrap it around.
        if isinstance(value, timedelta) and not is_exact and abs(micros_of(value)) > _MOST:
            raise self.refused(values, row, "is too large or too precise")
        return as_operand(value, is_instant=False)


class TimesOfDay(InUnits):
    """Times of day of a unit. Functions see timedelta64 since midnight."""

    compared_as = DURATIONS
    accepts = (time,)

    def store(self, values: Any) -> Array:
        stored = super().store(values)
        inside = ((stored >= -1) & (stored < _DAY[self.unit] - 1)) | (stored == NULL)
        if not inside.all():
            raise self.refused(values, int(np.argmin(inside)), "is not within a day")
        return stored

    def to_list(self, storage: Array) -> list[Any]:
        times: list[Any] = []
        to_nano = _DAY["ns"] // _DAY[self.unit]
        for count in (storage + 1).tolist():
            if count < 0:
                times.append(None)
            elif count * to_nano % 1000 or count >= _DAY[self.unit]:
                times.append(np.array(count, self.dtype)[()])  # more precise than Python's class
            else:
                seconds, micros = divmod(count * to_nano // 1000, 1_000_000)
                times.append(time(seconds // 3600, seconds // 60 % 60, seconds % 60, micros))
        return times

    def _micros(self, value: time) -> int:
        return micros_of(datetime.combine(_EPOCH, value) - _EPOCH)

    def _plain(self, values: list[Any], row: int) -> Any:
        value = super()._plain(values, row)
        if not isinstance(value, time):
            return value
        if value.tzinfo is not None:
            raise self.refused(values, row, "has a zone")
        return as_operand(value, is_instant=False)


def micros_of(duration: timedelta) -> int:
    """Return the microseconds of a duration: exact, unlike `total_seconds`."""
    return duration.days * _DAY["us"] + duration.seconds * 1_000_000 + duration.microseconds


def as_operand(value: Any, is_instant: bool) -> Any:
    """Return a date, time or duration of Python's classes as NumPy's, as functions see those of columns.

    Beside an object, NumPy would make objects of a whole column, and None of its nulls. A time with a zone is converted
    if the column has instants; any other value is returned as it is.

    >>> as_operand(date(2026, 3, 1), False), as_operand(time(1), False), as_operand(7, False)
    (np.datetime64('2026-03-01'), np.timedelta64(3600000000,'us'), 7)
    """
    if isinstance(value, datetime):
        if value.tzinfo is None or is_instant:
            exact = getattr(value, "to_datetime64", None)  # of pandas, which has nanoseconds
            naive = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
            return np.datetime64(naive) if exact is None else exact()
    elif isinstance(value, date):
        return np.datetime64(value)
    elif isinstance(value, timedelta):
        exact = getattr(value, "to_timedelta64", None)
        if exact is not None:
            return exact()
        if abs(micros_of(value)) > _MOST:  # in seconds: no column that counts a finer unit has a value near it
            return np.timedelta64(value // timedelta(seconds=1), "s")
        return np.timedelta64(value)
    elif isinstance(value, time) and value.tzinfo is None:
        return np.timedelta64(datetime.combine(date.min, value) - datetime.min)
    return value


def zone_of(value: datetime) -> str:
    """Return the name of the zone of an aware datetime: UTC unless it is one of the zone database."""
    return getattr(value.tzinfo, "key", None) or "UTC"


def unit_of(values: Iterable[Any]) -> str:
    """Return "ns" where pandas counts one of the values in nanoseconds, else "us", which Python's classes have.

    >>> unit_of([datetime(2026, 3, 1), None])
    'us'
    """
    return "ns" if any(getattr(value, "unit", None) == "ns" for value in values) else "us"


def time_name(dtype: np.dtype[Any]) -> str:
    """Return the name of the type of NumPy's times. Raises DataError for units of no type."""
    unit, count = np.datetime_data(dtype)
    if count == 1 and unit in ("D", "s", "ms", "us", "ns"):
        if dtype.kind == "m":
            return f"duration[{unit}]"
        return "date" if unit == "D" else f"timestamp[{unit}]"
    raise DataError(
        f"cannot make a column of {dtype}: a column of times counts days, seconds, ms, us or ns; "
        f".astype('{'datetime64' if dtype.kind == 'M' else 'timedelta64'}[us]') converts"
    )


_UNIT = r"(s|ms|us|ns)"
PATTERNS: tuple[tuple[str, Callable[..., LogicalType]], ...] = (
    ("date", Dates),
    (rf"timestamp\[{_UNIT}(?:, ([A-Za-z0-9_+\-/:]{{1,64}}))?\]", Timestamps),
    (r"duration\[(D|s|ms|us|ns)\]", Durations),
    (rf"time\[{_UNIT}\]", TimesOfDay),
)
"""The names of the types of this module, and what makes each of what its name captures."""
