"""Events as a stream of bytes, for files and sockets, and back.

A stream starts with `PREFIX`: magic and a version. Each event is a frame. A frame starts with two little-endian 32-bit
words, the length of the body in units of eight bytes and its CRC-32. The body consists of the length of the header, the
header (msgpack: kind and plain data of the event, kind and description of its batch, length of each buffer), and the
raw buffers. Each buffer starts at a multiple of eight bytes, so columns are views of the body, and kernels can use them
without a copy.

Reading is total: bytes that are not such a frame raise `CaptureError`. Nothing in them is executed, and the checksum
reveals a damaged frame before it is decoded. Writing and reading each copy and checksum the buffers once.

>>> from timely.capture.event import Progress
>>> data = PREFIX + b"".join(encode(Progress((((0,), -1),))))
>>> decode(bytearray(data[len(PREFIX) + FRAME.size :]))
Progress((((0,), -1),))
"""

from __future__ import annotations

import struct
import zlib

import numpy as np

from timely.capture.event import Event, event_of
from timely.communication.plain import PlainPacker, unpack_plain
from timely.data import container
from timely.errors import CaptureError, DataError

PREFIX = b"tdfevt\x00\x01"
FRAME = struct.Struct("<II")
MAX_BODY = 1 << 31
"""The largest number of bytes in a body; a longer one is taken for damage."""

REASON_CHARACTERS = 1000
"""The length to which the reason of a refusal is cut: it may quote all of the event."""

_LENGTH = struct.Struct("<Q")
_ALIGN = 8

Body = bytes | bytearray | memoryview


def encode(event: Event) -> list[bytes | memoryview]:
    """Return the frame of an event, in pieces. The pieces of columns are views."""
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
    # All pieces are padded, so this is a multiple of `_ALIGN`.
    if length > MAX_BODY:
        raise DataError(f"an event of {length:,} bytes cannot be written: the limit is {MAX_BODY:,} bytes")
    return [FRAME.pack(length // _ALIGN, checksum), *pieces]


def body_length(frame: Body) -> int:
    """Return the length of the body that follows the first eight bytes of a frame; raise `CaptureError` if invalid."""
    if frame == PREFIX:  # which as a frame would claim more than `MAX_BODY`
        raise CaptureError("another capture begins here: each capture must be a file, and a source, of its own")
    length = int(FRAME.unpack(frame)[0]) * _ALIGN
    if not _ALIGN <= length <= MAX_BODY:
        raise CaptureError(f"a frame claims {length:,} bytes")
    return length


def check(frame: Body, body: Body) -> None:
    """Raise `CaptureError` if the body does not match the checksum in its frame."""
    if zlib.crc32(body) != FRAME.unpack(frame)[1]:
        raise CaptureError("the checksum of an event is wrong: the data is damaged")


def decode(body: bytearray) -> Event:
    """Return the event in a body; its columns are views of the body."""
    try:
        return _decode(memoryview(body))
    except Exception as error:  # decoding is total, whatever error the unpacker, a container or an event raises
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
    batch = None if batch_kind is None else container.decode(batch_kind, meta, buffers)
    return event_of(kind, plain, batch)


def _padding(length: int) -> bytes:
    return bytes(-length % _ALIGN)
