"""Plain data as bytes, and back: None, booleans, numbers, text, bytes, and lists, tuples and dicts of plain data.

Tuples stay tuples, lists stay lists, and integers may have any size.

>>> unpack_plain(PlainPacker().pack([("a", 1), [1 << 70]]))
[('a', 1), [1180591620717411303424]]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import msgpack
import numpy as np

from timely.errors import DataError

MAX_DEPTH = 16  # of nested tuples: each level is a recursive call of the unpacker, so it must be bounded


class PlainPacker:
    """Packs plain data. Not thread-safe: it reuses its buffers."""

    def __init__(self) -> None:
        self._levels: list[Callable[[Any], bytes]] = []

    def pack(self, value: Any, depth: int = 0) -> bytes:
        """Return the packed bytes; raise `DataError` naming the type of what is not plain data."""
        if depth == MAX_DEPTH:
            raise DataError(f"a record cannot be sent to another process: it nests tuples {MAX_DEPTH} deep or more")
        # A packer for each depth: `_special` packs a tuple while the packer around it is still at work.
        if depth == len(self._levels):
            packer = msgpack.Packer(
                autoreset=True,
                strict_types=True,
                default=partial(self._special, depth),
                unicode_errors="surrogatepass",
                buf_size=4096,
            )
            self._levels.append(packer.pack)
        try:
            values = value if type(value) is list else (value,)
            if not _LOOKED_AT.isdisjoint(map(type, values)):
                _refuse_changed(values)
            return self._levels[depth](value)
        except DataError as error:  # `_special` raises it inside msgpack, whose lines would be taken for the program's
            raise error.with_traceback(None) from None
        except (ValueError, RecursionError) as error:
            raise DataError(f"a record cannot be sent to another process: {error}") from error

    def _special(self, depth: int, value: Any) -> Any:
        if type(value) is tuple:
            return msgpack.ExtType(_TUPLE, self.pack(list(value), depth + 1))
        if type(value) is int:
            # One bit more than the magnitude has, for the sign.
            return msgpack.ExtType(_INTEGER, value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True))
        if isinstance(value, np.generic) and isinstance(value.item(), _ITEMS.get(value.dtype.kind, ())):
            return value.item()
        raise _refusal(type(value))


_TUPLE, _INTEGER = 1, 2
_CHANGED = frozenset({bytearray, memoryview, msgpack.ExtType, msgpack.Timestamp})
"""What msgpack packs by itself, so that it arrives as something else, or cannot be unpacked."""
_LOOKED_AT = _CHANGED | {list, dict}
_ITEMS: dict[str, tuple[type, ...]] = {
    "b": (bool,),
    "i": (int,),
    "u": (int,),
    "f": (float,),
    "U": (str,),
    "S": (bytes,),
}
"""The types as which NumPy's scalars are packed, by NumPy's kinds."""


def _refuse_changed(values: Iterable[Any]) -> None:
    """Raise `DataError` for what msgpack would change, in lists and dictionaries too; tuples are packed separately."""
    for value in values:
        if type(value) in _CHANGED:
            raise _refusal(type(value))
        if type(value) is list:
            _refuse_changed(value)
        elif type(value) is dict:
            _refuse_changed([*value, *value.values()])


def _refusal(kind: type) -> DataError:
    return DataError(
        f"a record with a {kind.__qualname__} cannot be sent to another process: records must be plain data "
        "(None, booleans, numbers, text, bytes, and lists, tuples and dicts of them)"
    )


def unpack_plain(data: bytes, depth: int = 0) -> Any:
    """Return what `PlainPacker` packed; raise some exception, of any type, on anything else."""
    return msgpack.unpackb(
        data, ext_hook=_EXT_HOOKS[depth], strict_map_key=False, unicode_errors="surrogatepass", raw=False
    )


def _from_ext(depth: int, code: int, data: bytes) -> Any:
    if code == _TUPLE:
        if depth + 1 == MAX_DEPTH:
            raise ValueError("nested too deep")
        return tuple(unpack_plain(data, depth + 1))
    if code == _INTEGER:
        return int.from_bytes(data, "little", signed=True)
    raise ValueError(f"unknown extension {code}")


_EXT_HOOKS = [partial(_from_ext, depth) for depth in range(MAX_DEPTH)]
