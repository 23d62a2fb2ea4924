"""Events as a stream of bytes, for files and sockets, and back.

A stream starts with `PREFIX`: magic and a version. Each event is a frame: two little-endian 32-bit words, the length of
the body in units of eight bytes and its CRC-32, then the body: the length of the header, the header (msgpack: kind and
plain data of the event, kind and description of its batch, length of each buffer), and the raw buffers, each at a
multiple of eight bytes, so that columns are views of the body and kernels take them as they are.

Reading is total: bytes that are not such a frame give a `CaptureError`. Nothing in them is executed, and a damaged
frame is found by its checksum before anything is made of it. Buffers are copied and checked once each way.

>>> from timely.capture.event import Progress
>>> data = PREFIX + b"".join(encode(Progress((((0,), -1),))))
>>> decode(read_body(data[len(PREFIX):]))
Progress((((0,), -1),))
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np

from timely.capture.event import Event, event_of
from timely.communication.codec import PlainPacker, unpack_plain
from timely.data import container
from timely.errors import CaptureError, DataError

PREFIX = b"tdfevt\x00\x01"
FRAME = struct.Struct("<II")
MAX_BODY = 1 << 31
"""Bytes in a body at most: what is longer is damage."""

REASON_CHARACTERS = 1000
"""So much is shown of why an event is refused, which may quote all of it."""

_LENGTH = struct.Struct("<Q")
_ALIGN = 8

Body = bytes | bytearray | memoryview


def encode(event: Event) -> list[bytes | memoryview]:
    """Return the frame of an event, in pieces. Those of columns are views."""
    plain, batch = event.parts()
    kind, meta, buffers = (None, None, []) if batch is None else container.encode(batch)
    views = [np.ascontiguousarray(buffer).view(np.uint8).data for buffer in buffers]
    header = PlainPacker().pack((event.kind, plain, kind, meta, tuple(view.nbytes for view in views)))
    pieces: list[bytes | memoryview] = [_LENGTH.pack(len(header)), header, _padding(len(header))]
    for view in views:
        pieces += (view, _padding(view.nbytes))
    length, checksum = 0, 0
    for piece in pieces:
        length += len(piece)
        checksum = zlib.crc32(piece, checksum)
    if length > MAX_BODY:
        raise DataError(f"an event of {length:,} bytes is too long to be written: {MAX_BODY:,} at most")
    return [FRAME.pack(length // _ALIGN, checksum), *pieces]


def body_length(frame: Body) -> int:
    """Return how many bytes of body follow the first eight bytes of a frame; raise `CaptureError` if they are none."""
    if frame == PREFIX:
        raise CaptureError("another capture begins here: each is a file, and a source, of its own")
    length = int(FRAME.unpack(frame)[0]) * _ALIGN
    if not _ALIGN <= length <= MAX_BODY:
        raise CaptureError(f"a frame claims {length:,} bytes")
    return length


def check(frame: Body, body: Body) -> None:
    """Raise `CaptureError` if the body is not the one the frame was written with."""
    if zlib.crc32(body) != FRAME.unpack(frame)[1]:
        raise CaptureError("the checksum of an event is wrong: the data is damaged")


def read_body(data: Body) -> bytearray:
    """Return the body of the frame that `data` starts with."""
    frame = bytes(data[: FRAME.size])
    body = bytearray(data[FRAME.size : FRAME.size + body_length(frame)])
    check(frame, body)
    return body


def decode(body: bytearray) -> Event:
    """Return the event of a body, whose columns are views of it."""
    try:
        return _decode(memoryview(body))
    except Exception as error:  # total by construction: whatever the unpacker, a container or an event trips over
        raise CaptureError(f"malformed event: {error!s:.{REASON_CHARACTERS}}") from error


def _decode(body: memoryview) -> Event:
    (length,) = _LENGTH.unpack_from(body)
    place = _LENGTH.size + length
    if place > len(body):
        raise ValueError("the header is longer than the event")
    kind, plain, batch_kind, meta, sizes = unpack_plain(bytes(body[_LENGTH.size : place]))
    place += -length % _ALIGN
    buffers = []
    for size in sizes:
        if type(size) is not int or not 0 <= size <= len(body) - place:
            raise ValueError("a buffer is longer than the event")
        buffers.append(body[place : place + size])
        place += size + -size % _ALIGN
    return event_of(kind, plain, _batch(batch_kind, meta, buffers))


def _batch(kind: Any, meta: Any, buffers: list[memoryview]) -> container.Batch | None:
    if kind is None:
        return None
    return container.decode(kind, meta, buffers)


def _padding(length: int) -> bytes:
    return bytes(-length % _ALIGN)
