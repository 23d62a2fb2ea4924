"""Opaque values: lists and structs, and whatever they contain, as bytes of which nothing looks inside.

The bytes of two values are equal exactly if the values are of the same classes and equal. They order lists and structs
item by item. A struct is a dict with names as keys, in the order of the names: structs that differ in the order of
their fields are equal. The class of an item comes first: false, true, integers, floats, text, bytes, dates and times,
lists, structs, and null.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from struct import pack, unpack
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timely.data.logical import Array, LogicalType, objects
from timely.data.numeric import code_floats, float_codes
from timely.errors import DataError

# Values order by these tags first. The end is below all of them, so a list precedes every list that it begins.
_END, _FALSE, _TRUE, _INT, _FLOAT, _TEXT, _BYTES = 0x01, 0x10, 0x11, 0x20, 0x30, 0x40, 0x50
_DATE, _DATETIME, _INSTANT, _TIME, _DURATION, _LIST, _STRUCT, _NULL = 0x60, 0x61, 0x62, 0x63, 0x64, 0x70, 0x80, 0xFF
_ZERO = 0x80
"""What comes before an integer is this, plus or minus the number of its bytes."""
_SIGN = 1 << 63
_DEEPEST = 64
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


class Items(tuple[Any, ...]):
    """A list or struct as a value of a record: a tuple of its items, or of (name, value), which is hashable.

    Two of them are equal exactly if they are one value of a column: 1, 1.0 and True differ in them, and a struct
    differs from a list of pairs. `key` is the bytes of the value.

    >>> Items([1, {"a": None}]), Items([1]) == Items([1.0]), Items([1]) == (1,)
    ((1, (('a', None),)), False, True)
    """

    key: bytes

    def __new__(cls, value: Any, key: bytes | None = None) -> Items:
        made = super().__new__(cls, hashable(value))
        made.key = encoded(value) if key is None else key
        return made

    def __eq__(self, other: object) -> bool:
        return self.key == other.key if isinstance(other, Items) else super().__eq__(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__

    def __reduce__(self) -> Any:
        return Items, (decoded(self.key), self.key)


class Opaque(LogicalType):
    """Lists and structs. Functions see an array of Python's lists and dicts, with None for a null."""

    stores = "O"
    is_opaque = True

    def store(self, values: Any) -> Array:
        items = list(values)
        stored = np.empty(len(items), np.object_)
        for row, item in enumerate(items):
            if item is not None and not isinstance(item, (list, tuple, dict, np.ndarray)):
                raise self.refused(items, row, f"is of class {type(item).__name__}, which is not a list or dict")
            try:
                stored[row] = encoded(item)
            except DataError as error:
                raise self.refused(items, row, str(error)) from None
        return stored

    def array(self, storage: Array) -> Array:
        values = np.empty(len(storage), np.object_)
        for row, item in enumerate(storage.tolist()):
            values[row] = decoded(item)
        return values

    def to_list(self, storage: Array) -> list[Any]:
        return [None if item == b"\xff" else Items(decoded(item), item) for item in storage.tolist()]

    def nulls(self, storage: Array) -> NDArray[np.bool_]:
        return np.fromiter((item == b"\xff" for item in storage.tolist()), np.bool_, len(storage))

    def null_storage(self, length: int) -> Array:
        return objects([b"\xff"] * length)


def encoded(value: Any) -> bytes:
    """Return the bytes of a value. Raises DataError where it, or an item in it, is of a class that has none.

    >>> decoded(encoded([1, None, {"b": "x", "a": -0.5}]))
    [1, None, {'a': -0.5, 'b': 'x'}]
    >>> encoded([1, 2]) < encoded([1, 2, 0]) < encoded([1, 3]) < encoded([1, None])
    True
    """
    output = bytearray()
    _encode(value, output, 0)
    return bytes(output)


def decoded(data: bytes) -> Any:
    """Return the value with these bytes. Raises DataError where there is none."""
    try:
        value, end = _decode(data, 0, 0)
    except (IndexError, ValueError, OverflowError) as error:
        raise DataError(f"{data!r:.80} is not an opaque value") from error
    if end != len(data):
        raise DataError(f"{data!r:.80} is not an opaque value")
    return value


def hashable(value: Any) -> Any:
    """Return a value with tuples in the place of lists, tuples of (name, value) of structs, and one NaN for all.

    >>> hashable([1, {"b": [], "a": float("nan")}])
    (1, (('a', nan), ('b', ())))
    """
    if isinstance(value, list):
        return tuple(map(hashable, value))
    if isinstance(value, dict):
        return tuple((name, hashable(value[name])) for name in sorted(value))
    # One object for all, since Python hashes a NaN by its identity.
    return np.nan if isinstance(value, float) and value != value else value


def _encode(value: Any, output: bytearray, depth: int) -> None:
    if depth > _DEEPEST:
        raise DataError(f"is nested more than {_DEEPEST} levels deep")
    if isinstance(value, np.ndarray):
        value = value.tolist()
    elif isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Items):
        output += value.key
    elif isinstance(value, (list, tuple)):
        output.append(_LIST)
        for item in value:
            _encode(item, output, depth + 1)
        output.append(_END)
    elif isinstance(value, dict):
        if not all(type(name) is str for name in value):
            raise DataError("contains a dict with keys that are not text")
        output.append(_STRUCT)
        for name in sorted(value):
            _encode(name, output, depth + 1)
            _encode(value[name], output, depth + 1)
        output.append(_END)
    else:
        _encode_scalar(value, output)


def _encode_scalar(value: Any, output: bytearray) -> None:
    if value is None:
        output.append(_NULL)
    elif value is True or value is False:
        output.append(_TRUE if value else _FALSE)
    elif isinstance(value, int):
        output.append(_INT)
        _encode_int(value, output)
    elif isinstance(value, float):
        output.append(_FLOAT)
        code = int(float_codes(np.array([value]))[0])
        # Shifted to be unsigned, because the bytes of negative numbers would order after all others.
        output += pack(">Q", code + _SIGN)
    elif isinstance(value, str):
        output.append(_TEXT)
        _encode_string(value.encode(), output)
    elif isinstance(value, bytes):
        output.append(_BYTES)
        _encode_string(value, output)
    else:
        _encode_moment(value, output)


def _encode_moment(value: Any, output: bytearray) -> None:
    if hasattr(value, "nanosecond") or hasattr(value, "nanoseconds"):
        raise DataError(f"contains a {type(value).__name__}, of which an opaque value keeps no nanoseconds: cast to us")
    if isinstance(value, datetime):
        output.append(_DATETIME if value.tzinfo is None else _INSTANT)
        naive = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
        number = (naive - _EPOCH) // _MICROSECOND
    elif isinstance(value, date):
        output.append(_DATE)
        number = value.toordinal()
    elif isinstance(value, time) and value.tzinfo is None:
        output.append(_TIME)
        number = ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
    elif isinstance(value, timedelta):
        output.append(_DURATION)
        number = value // _MICROSECOND
    else:
        raise DataError(f"contains a {type(value).__name__}")
    _encode_int(number, output)


def _encode_int(value: int, output: bytearray) -> None:
    """Append an integer: its length, then its bytes, such that larger integers have larger bytes."""
    magnitude = value if value >= 0 else ~value
    length = (magnitude.bit_length() + 7) // 8
    if length >= _ZERO - 1:
        raise DataError("contains an integer of more than 1000 bits")
    # A longer number is further from zero: larger if it is positive, and smaller if it is negative.
    output.append(_ZERO + length if value >= 0 else _ZERO - 1 - length)
    data = magnitude.to_bytes(length, "big")
    output += data if value >= 0 else bytes([255 - each for each in data])


def _encode_string(data: bytes, output: bytearray) -> None:
    # The end is 0 and 1, a NUL 0 and 255: so the end orders before a NUL, and a NUL before all other bytes.
    output += data.replace(b"\0", b"\0\xff")
    output += b"\0\1"


def _decode(data: bytes, at: int, depth: int) -> tuple[Any, int]:
    """Return the value that begins at a position, and where it ends."""
    tag, at = data[at], at + 1
    if tag in _SCALARS:
        return _SCALARS[tag], at
    if tag == _FLOAT:
        # Of a value that is cut off, the end returned is beyond the data, which the callers refuse.
        code = unpack(">Q", data[at : at + 8].ljust(8, b"\0"))[0] - _SIGN
        return float(code_floats(np.array([code], np.int64))[0]), at + 8
    if tag in (_TEXT, _BYTES):
        # Every 0 before the end is followed by 255.
        end = data.index(b"\0\1", at)
        content = data[at:end].replace(b"\0\xff", b"\0")
        return (content.decode() if tag == _TEXT else content), end + 2
    if tag in (_LIST, _STRUCT) and depth <= _DEEPEST:
        items, at = _decode_items(data, at, depth + 1)
        return (items if tag == _LIST else dict(zip(items[::2], items[1::2], strict=True))), at
    if tag not in _FROM_INT:
        raise ValueError("an unknown tag")
    number, at = _decode_int(data, at)
    return _FROM_INT[tag](number), at


def _decode_items(data: bytes, at: int, depth: int) -> tuple[Sequence[Any], int]:
    items = []
    while data[at] != _END:
        item, at = _decode(data, at, depth)
        items.append(item)
    return items, at + 1


def _decode_int(data: bytes, at: int) -> tuple[int, int]:
    length = data[at] - _ZERO
    is_negative = length < 0
    length = ~length if is_negative else length
    content = data[at + 1 : at + 1 + length]
    if len(content) < length:
        raise ValueError("an integer is cut off")
    number = int.from_bytes(bytes([255 - each for each in content]) if is_negative else content, "big")
    return (~number if is_negative else number), at + 1 + length


_SCALARS = {_FALSE: False, _TRUE: True, _NULL: None}
_FROM_INT: dict[int, Callable[[int], Any]] = {
    _INT: int,
    _DATE: date.fromordinal,
    _DATETIME: lambda number: _EPOCH + number * _MICROSECOND,
    _INSTANT: lambda number: (_EPOCH + number * _MICROSECOND).replace(tzinfo=UTC),
    _TIME: lambda number: (_EPOCH + number * _MICROSECOND).time(),
    _DURATION: lambda number: number * _MICROSECOND,
}
