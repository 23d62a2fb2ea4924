"""From texts, and values of JSON, to columns of the types that a table has.

Columns are converted whole. Only if that fails is each value tried by itself, to find the rows that are wrong: so a
clean file costs one conversion a column, and a dirty block a second look.

>>> converter = Converter(("id", "price"), ("int64", "float64?"), of_text)
>>> converter.convert((["1", "x", "3"], ["0.5", "", "1e3"]), 3)
([array([1, 3]), typed([0.5, 1000.0], 'float64?')], {1: "column 'id' (int64) cannot be 'x'"})
"""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from base64 import b64decode
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any

import numpy as np

from differential.session.table_data import Column
from timely.errors import DataError
from timely.lowlevel import is_null, typed

Parse = Callable[[Any], Any]
"""Returns the value that a text, or a value of JSON, stands for; raises ValueError or TypeError if it is none."""
Form = Callable[[str], Parse | None]
NOT_FINITE = ("NaN", "Infinity", "-Infinity")
"""The texts that stand in JSON for floats that are not numbers there."""
_WRONG = (DataError, ValueError, TypeError, OverflowError, InvalidOperation, RecursionError)


class Converter:
    """Converts columns of a table from one form: `form` returns, for the name of a type, what parses one value.

    If columns have several forms, there is one for each. A null in a `required` column is wrong even if values of its
    type may be null.
    """

    def __init__(
        self,
        names: Sequence[str],
        types: Sequence[str],
        form: Form | Sequence[Form],
        required: Sequence[str] = (),
    ) -> None:
        """Raises DataError, which names the column, where values of a type have no such form."""
        self.names = tuple(names)
        self.types = tuple(types)
        self._required = {place for place, name in enumerate(names) if name in required}
        self._parsers: list[Parse] = []
        for name, of, parser_of in zip(names, types, [form] * len(types) if callable(form) else form):
            parse = parser_of(of)
            if parse is None:
                raise DataError(f"column {name!r} is of type {of}, which this source cannot read: map it afterwards")
            self._parsers.append(parse)

    def convert(self, columns: Sequence[Sequence[Any]], rows: int) -> tuple[list[Column], dict[int, str]]:
        """Return columns of the rows that have values of all types, and what is wrong with the others, by row."""
        try:
            return [self._column(place, values) for place, values in enumerate(columns)], {}
        except _WRONG:
            pass
        wrong: dict[int, str] = {}
        for place, values in enumerate(columns):
            for row, value in enumerate(values):
                if row not in wrong:
                    try:
                        self._column(place, [value])
                    except _WRONG:
                        shown = "null" if value is None else f"{value!r:.80}"
                        wrong[row] = f"column {self.names[place]!r} ({self.types[place]}) cannot be {shown}"
        kept = [row for row in range(rows) if row not in wrong]
        # What could be converted by itself can be converted in a column, because the type is given.
        made = [self._column(place, [values[row] for row in kept]) for place, values in enumerate(columns)]
        return made, wrong

    def _column(self, place: int, values: Sequence[Any]) -> Column:
        of, parse = self.types[place], self._parsers[place]
        if parse is _same:
            return np.array(values, np.dtypes.StringDType())
        column: Column = typed(list(map(parse, values)), of)
        if place in self._required and is_null(column).any():
            raise DataError("a null")
        return column


def of_text(of: str) -> Parse | None:
    """Return what parses a text as a value of a type. An empty one is a null, where the type may have nulls.

    >>> of_text("date")("2026-02-28"), of_text("int64?")(""), of_text("duration[us]")
    (datetime.date(2026, 2, 28), None, None)
    """
    kind = family(of)
    parse = _moments(of) if kind == "timestamp" else _TEXTS.get(kind)
    return _or_null(parse, "") if parse is not None and may_be_null(of) else parse


def of_json(of: str) -> Parse | None:
    """Return what converts a value of JSON to one of a type.

    >>> of_json("float64")(3), of_json("timestamp[us]")("2026-02-28T12:00:00")
    (3.0, datetime.datetime(2026, 2, 28, 12, 0))
    """
    kind = family(of)
    parse = _moments(of) if kind == "timestamp" else _VALUES.get(kind, _TEXTS.get(kind))
    return _or_null(parse, None) if parse is not None and may_be_null(of) else parse


def number_of_json(text: str) -> float | Decimal:
    """Return a number of JSON that is not whole: a float, or a decimal where a float would become infinite.

    >>> json.loads("[1.5, -1e999]", parse_float=number_of_json)
    [1.5, Decimal('-1E+999')]
    """
    number = float(text)
    return decimal_of_json(text) if math.isinf(number) else number


def decimal_of_json(text: str) -> Decimal:
    """Return a number of JSON as a decimal. Raises ValueError if its exponent is larger than that of any decimal.

    >>> decimal_of_json("1e99999999999999999999")
    Traceback (most recent call last):
    ValueError: the exponent of 1e99999999999999999999 is too large
    """
    try:
        return Decimal(text)
    except InvalidOperation:  # not a ValueError, which is what readers of JSON expect
        raise ValueError(f"the exponent of {text:.80} is too large") from None


def family(of: str) -> str:
    """Return the name of a type without its parameters, and whether it may be null.

    >>> family("decimal(18, 2)"), family("timestamp[us, UTC]"), family("int64?")
    ('decimal', 'timestamp', 'int64')
    """
    return of.removesuffix("?").partition("[")[0].partition("(")[0]


def may_be_null(of: str) -> bool:
    """Return whether values of a type may be null.

    >>> may_be_null("text"), may_be_null("text?"), may_be_null("date")
    (False, True, True)
    """
    return of.endswith("?") or family(of) in ("date", "timestamp", "time", "duration", "decimal", "value")


def taking_none(parse: Parse, takes_nulls: bool) -> Parse:
    """Return a parser to which None stands for a null; it raises TypeError for a null that a type does not have."""

    def parsed(value: Any) -> Any:
        if value is None and not takes_nulls:
            raise TypeError("a null")
        return None if value is None else parse(value)

    return parsed


def _or_null(parse: Parse, null: Any) -> Parse:
    return lambda value: None if value == null else parse(value)


def _same(text: Any) -> Any:
    return text


def _number(text: str, of: type = int) -> Any:
    if "_" in text:
        raise ValueError(text)
    return of(text)


def _float(text: str, of: type[Any] = np.float64) -> Any:
    return _fitting(_number(text, float), of, "inf" in text.lower())


def _fitting(number: float, of: type[Any], is_infinite: bool) -> Any:
    """Return a number as a float of a type. Raises OverflowError if it would become infinite."""
    with np.errstate(over="ignore"):
        value = of(number)
    if np.isinf(value) and not is_infinite:
        raise OverflowError(number)
    return number if of is np.float64 else value


_BOOLEANS = {"true": True, "false": False, "1": True, "0": False, "t": True, "f": False}


def _boolean(text: str) -> bool:
    found = _BOOLEANS.get(text.lower())
    if found is None:
        raise ValueError(text)
    return found


def _moments(of: str) -> Parse:
    """Return what parses a timestamp without losing digits."""
    has_nanoseconds = of.startswith("timestamp[ns")

    def exact(text: str) -> Any:
        moment, more = dt.datetime.fromisoformat(text), _nanoseconds(text)
        if not has_nanoseconds and not more:
            return moment
        if not has_nanoseconds or (moment.tzinfo is not None) != ("," in of):
            raise ValueError(text)
        start = dt.datetime(1970, 1, 1, tzinfo=None if moment.tzinfo is None else dt.UTC)
        count = (moment - start) // dt.timedelta(microseconds=1) * 1000 + more
        if not -_MOST < count < _MOST:
            raise OverflowError(text)
        return np.datetime64(count, "ns")

    return exact


def _time(text: str) -> Any:
    """Return a time of the day; one with nanoseconds as the duration since midnight."""
    time, more = dt.time.fromisoformat(text), _nanoseconds(text)
    if not more:
        return time
    if time.tzinfo is not None:
        raise ValueError(text)
    seconds = (time.hour * 60 + time.minute) * 60 + time.second
    return np.timedelta64((seconds * 1_000_000 + time.microsecond) * 1000 + more, "ns")


def _nanoseconds(text: str) -> int:
    """Return the nanoseconds after the last whole microsecond, which Python ignores.

    >>> _nanoseconds("2026-02-28T12:00:00.123456789+01:00"), _nanoseconds("12:00:00.5")
    (789, 0)
    """
    found = _FRACTION.search(text)
    digits = "" if found is None else found[1][6:]
    if digits[3:].strip("0"):
        raise ValueError(text)
    return int(f"{digits:0<3.3}")


_MOST = 1 << 63
_FRACTION = re.compile(r"[.,](\d+)")


_TEXTS: dict[str, Parse] = {
    "int64": _number,
    "uint64": _number,
    "float64": _float,
    "float32": partial(_float, of=np.float32),
    "float16": partial(_float, of=np.float16),
    "bool": _boolean,
    "text": _same,
    "bytes": partial(b64decode, validate=True),
    "date": dt.date.fromisoformat,
    "time": _time,
    "decimal": partial(_number, of=Decimal),
    "value": partial(json.loads, parse_float=number_of_json),
}


def _of_class(*classes: type) -> Parse:
    """Return a parser that refuses values that are not exactly of some classes."""

    def parse(value: Any) -> Any:
        if type(value) not in classes:  # by `type`: True is an int
            raise TypeError(value)
        return value

    return parse


def _float_of_json(value: Any) -> float:
    """Return a number as a float, and each of the three texts as the float that JSON has no number for.

    Raises OverflowError for a number that would become infinite, and for a whole number that would be rounded.
    """
    if type(value) is Decimal and math.isinf(float(value)):
        raise OverflowError(value)
    if type(value) is int and int(float(value)) != value:
        raise OverflowError(value)
    if type(value) in (int, float, Decimal) or (type(value) is str and value in NOT_FINITE):
        return float(value)
    raise TypeError(value)


def _narrow(value: Any, of: type[Any]) -> Any:
    """Return a number of JSON as a narrower float."""
    number = _float_of_json(value)
    narrow = _fitting(number, of, math.isinf(number))
    if type(value) is int and int(narrow) != value:
        raise OverflowError(value)
    return narrow


def _decimal(value: Any) -> Decimal:
    if type(value) not in (int, str, Decimal):
        raise TypeError(f"{value!r}: give a decimal as a whole number or text, because a float is rounded")
    return _number(value, Decimal) if type(value) is str else Decimal(value)


_VALUES: dict[str, Parse] = {
    "int64": _of_class(int),
    "uint64": _of_class(int),
    "float64": _float_of_json,
    "float32": partial(_narrow, of=np.float32),
    "float16": partial(_narrow, of=np.float16),
    "bool": _of_class(bool),
    "text": _of_class(str),
    "decimal": _decimal,
    "value": _of_class(list, dict),
}
