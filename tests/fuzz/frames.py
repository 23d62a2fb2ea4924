"""The fuzzed code: everything that decodes bytes from outside.

An input of the fuzzer is cut into pieces (`pieces`). Its first byte decides what these are: the frames of a message,
the fields of a header that is otherwise right, a batch of some kind, or a captured event. Bytes must be refused with
the one error for that, or be understood; and what is understood must be the same after it is encoded and decoded again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgpack
import numpy as np

import differential.capture  # noqa: F401  (registers its events)
from differential.data.updates import Updates
from tests.strategies_communication import read_body
from timely.capture import codec as event_codec
from timely.communication.codec import MAGIC, PROTOCOL, MessageEncoder, decode
from timely.communication.plain import unpack_plain
from timely.data import container
from timely.data.container import Batch, Columns
from timely.errors import CaptureError, FrameError

_PREFIX = MAGIC + bytes((PROTOCOL,))
_ENVELOPE = tuple(msgpack.packb(value) for value in ("g", 0, 1, 2))
_KINDS = ("columns", "updates", "list", "nothing")
_MOST_FIELDS = 15


def one_input(data: bytes) -> bool:
    """Return True if the bytes are understood, False if they are refused; raise any other error."""
    if not data:
        return False
    return _TARGETS[data[0] % len(_TARGETS)](pieces(data[1:]))


def pieces(data: bytes) -> list[bytes]:
    """Cut bytes into at least one piece: two bytes are the length of the next piece; the rest is the last one."""
    cut = []
    while len(data) > 2 and data[0] < 0x40:
        length = int.from_bytes(data[:2], "big")
        cut.append(data[2 : 2 + length])
        data = data[2 + length :]
    cut.append(data[1:])
    return cut


def joined(parts: list[bytes]) -> bytes:
    """Return the bytes that `pieces` cuts into these parts."""
    return b"".join(len(part).to_bytes(2, "big") + part for part in parts[:-1]) + b"\xff" + parts[-1]


def frames(parts: list[bytes]) -> bool:
    """Decode the pieces as the frames of a message, the first without its prefix."""
    return _understood([_PREFIX + parts[0], *parts[1:]])


def fields(parts: list[bytes]) -> bool:
    """Decode a header of which the pieces, each a value in msgpack, are the fields; the last is a buffer."""
    values = [part for part in parts[:-1] if part][: _MOST_FIELDS - len(_ENVELOPE)]
    header = bytes((0x90 | (len(_ENVELOPE) + len(values)),)) + b"".join((*_ENVELOPE, *values))
    return _understood([_PREFIX + header, *([parts[-1]] if parts[-1] else [])])


def batch(parts: list[bytes]) -> bool:
    """Decode a batch: its kind, its description, and its buffers."""
    kind = _KINDS[parts[0][0] % len(_KINDS)] if parts[0] else None
    try:
        meta = unpack_plain(parts[1]) if len(parts) > 1 else None
    except Exception:  # for the codec to refuse, which is fuzzed as such
        return False
    try:
        made = container.decode(kind, meta, [memoryview(bytearray(part)) for part in parts[2:]])
    except (ValueError, TypeError, OverflowError):
        return False
    well_formed(made)
    return True


def event(parts: list[bytes]) -> bool:
    """Decode the body of a captured event."""
    try:
        decoded = event_codec.decode(bytearray(b"".join(parts)))
    except CaptureError:
        return False
    event_codec.decode(read_body(b"".join(map(bytes, event_codec.encode(decoded)))))
    return True


_TARGETS: tuple[Callable[[list[bytes]], bool], ...] = (frames, fields, batch, event)


def _understood(given: list[bytes]) -> bool:
    try:
        envelope = decode(given)
    except FrameError:
        return False
    generation, sender, receiver, number, message = envelope
    again = [bytes(frame) for frame in MessageEncoder(sender, generation).encode(message, receiver, number)]
    decoded = decode(again)
    assert decoded[:4] == envelope[:4]
    assert type(decoded.message) is type(message)
    made = getattr(message, "batch", None)
    if made is None:
        assert decoded.message == message
    else:
        assert decoded.message[:3] == message[:3]
        well_formed(made)
        assert same(made, decoded.message.batch)  # type: ignore[union-attr]
    return True


def well_formed(made: Batch) -> None:
    """Assert the properties of a batch on which operators rely."""
    if isinstance(made, list):
        return
    assert isinstance(made, (Columns, Updates))
    assert {len(column) for column in made.columns} == {len(made)}
    assert all(column.ndim == 1 for column in made.columns)
    made.rows()
    if isinstance(made, Updates):
        assert len(made.each_time()) == len(made.each_diff()) == len(made)


def same(one: Any, other: Any) -> bool:
    """Return whether two batches, as decoded, hold the same bytes."""
    if isinstance(one, list):
        return repr(one) == repr(other)
    return type(one) is type(other) and all(
        left.dtype == right.dtype and _bytes_of(left) == _bytes_of(right)
        for left, right in zip(one.columns, other.columns, strict=True)
    )


def _bytes_of(column: np.ndarray[Any, Any]) -> Any:
    return column.tolist() if column.dtype.kind in "TO" else column.tobytes()
