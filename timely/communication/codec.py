"""Messages as frames of bytes, and back.

The first frame consists of four bytes (three of magic, one of protocol version) and a msgpack array: generation of the
cluster, sending and receiving worker, number and kind of the message, and its fields. The buffers of a batch follow as
further frames, raw and not copied. Small buffers are part of the first frame, because a frame costs more than copying a
few kilobytes.

Encoding raises `DataError` for a batch that no peer would accept: of an unregistered kind, with columns of different
lengths or unsupported types, or a list of records that are not plain data. Decoding is total: any frames yield a
message or a `FrameError`. It executes nothing in them, and checks every length that they claim.

A message of 64 bytes costs about two microseconds each way.

>>> frames = MessageEncoder(sender=0, generation="g").encode(Goodbye(0, dataflows=1), receiver=1)
>>> decode(frames)
Envelope(generation='g', sender=0, receiver=1, number=0, message=Goodbye(worker=0, dataflows=1, has_left=False))
>>> decode([b"GET / HTTP/1.1"])
Traceback (most recent call last):
    ...
timely.errors.FrameError: not a frame of this protocol
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import Any, NamedTuple, TypeVar

import msgpack

from timely.communication.message import (
    Data,
    Failure,
    Goodbye,
    Message,
    ProgressUpdate,
    Shape,
    StallAnswer,
    StallQuestion,
    Taken,
)
from timely.communication.plain import PlainPacker, unpack_plain
from timely.data import container
from timely.errors import FrameError
from timely.order import LIMIT

MAGIC = b"tdf"
PROTOCOL = 5
INLINE_BYTES = 8192  # up to here a copy is cheaper than a frame of its own
MAX_FRAMES = 4096


class Hello(NamedTuple):
    """The first message to every peer, repeated until it is answered.

    `quantum` is the number of bytes that the sender lets the receiver take without an `Ack`. A hello that is not an
    `answer` requests one. `pid` is the sender's process id, for people. All workers must agree on `accumulation`.
    `offer` describes the ring in shared memory that the receiver may use (`Inbox.offer`); it is empty if there is none.
    """

    processes: int
    workers: int
    quantum: int
    answer: bool
    pid: int
    accumulation: str
    offer: str = ""


class Ack(NamedTuple):
    """The sender has taken this many bytes, in total, of what the receiver sent. Repeating it has no further effect."""

    taken: int


WireMessage = Message | Hello | Ack


class Envelope(NamedTuple):
    """A message with its address: who sent it to whom, in which generation, and its number among those of this pair."""

    generation: str
    sender: int
    receiver: int
    number: int
    message: WireMessage


Frames = list[bytes | memoryview]
_PREFIX = MAGIC + bytes((PROTOCOL,))
_DATA, _PROGRESS, _SHAPE, _FAILURE, _GOODBYE, _HELLO, _ACK, _QUESTION, _ANSWER, _TAKEN = range(10)
_CODES: dict[type, int] = {
    ProgressUpdate: _PROGRESS,
    Shape: _SHAPE,
    Failure: _FAILURE,
    Goodbye: _GOODBYE,
    Hello: _HELLO,
    Ack: _ACK,
    StallQuestion: _QUESTION,
    StallAnswer: _ANSWER,
    Taken: _TAKEN,
}


class MessageEncoder:
    """Encodes the messages that one worker sends. Not thread-safe: it reuses its buffers."""

    def __init__(self, sender: int, generation: str) -> None:
        self._origin = (generation, sender)
        # The text of an error may hold surrogates, which must not keep a `Failure` from being sent.
        self._pack = msgpack.Packer(autoreset=True, unicode_errors="replace", default=index).pack
        self._plain = PlainPacker().pack

    def encode(self, message: WireMessage, receiver: int, number: int = 0) -> Frames:
        """Return the frames of a message, the `number`-th to this receiver. Large buffers are views of the batch."""
        if type(message) is Data:
            return self._encode_data(message, receiver, number)
        return [_PREFIX + self._pack((*self._origin, receiver, number, _CODES[type(message)], *message))]

    def _encode_data(self, message: Data, receiver: int, number: int) -> Frames:
        dataflow, channel, time, batch = message
        kind, meta, buffers = container.encode(batch)
        # No copies, though ZeroMQ may read the memory after this returns: a batch is immutable, and a view keeps its
        # array.
        views = [buffer.data for buffer in buffers]
        size = sum([view.nbytes for view in views])
        inline = views if size <= INLINE_BYTES else None
        header = _PREFIX + self._pack(
            (*self._origin, receiver, number, _DATA, dataflow, channel, time, kind, self._plain(meta), inline)
        )
        return [header] if inline is not None else [header, *views]


def decode(frames: Sequence[bytes | memoryview]) -> Envelope:
    """Return the message in the frames; raise `FrameError` if they are not frames of this protocol.

    Columns are views of the frames after the first. These must be writable and aligned to eight bytes so that kernels
    can use the columns without a copy.
    """
    try:
        return _decode(frames)
    except FrameError:
        raise
    except Exception as error:  # decoding is total, whatever error the unpacker or a container raises
        raise FrameError(f"malformed frame: {error}") from error


def _decode(frames: Sequence[bytes | memoryview]) -> Envelope:
    header = bytes(frames[0])
    if not header.startswith(_PREFIX):
        if header.startswith(MAGIC) and len(header) > len(MAGIC):
            raise FrameError(f"protocol version {header[len(MAGIC)]}, this is version {PROTOCOL}")
        raise FrameError("not a frame of this protocol")
    if len(frames) > MAX_FRAMES:
        raise FrameError(f"{len(frames)} frames in one message")
    generation, sender, receiver, number, code, *values = msgpack.unpackb(memoryview(header)[4:], use_list=False)
    if code != _DATA and len(frames) > 1:
        raise ValueError("buffers after a message that has none")
    message = _decode_data(values, frames) if code == _DATA else _DECODERS[_index(code)](*values)
    return Envelope(_instance(generation, str), _index(sender), _index(receiver), _index(number), message)


def _decode_data(values: Sequence[Any], frames: Sequence[bytes | memoryview]) -> Data:
    dataflow, channel, time, kind, meta, inline = values
    if inline is None:
        buffers = [memoryview(frame) for frame in frames[1:]]
    elif len(frames) == 1:
        buffers = [memoryview(bytearray(data)) for data in inline]  # writable and aligned, unlike bytes in a header
    else:
        raise ValueError("buffers both inside and after the header")
    batch = container.decode(kind, unpack_plain(meta), buffers)
    return Data(_index(dataflow), _index(channel), _time(time), batch)


def _decode_progress(dataflow: Any, changes: Any) -> ProgressUpdate:
    for location, time, difference in _instance(changes, tuple):
        if type(location) is not int or location < 0 or type(difference) is not int:
            raise ValueError("malformed change")
        _time(time)
    return ProgressUpdate(_index(dataflow), changes)


def _decode_taken(counts: Any) -> Taken:
    for count in _instance(counts, tuple):
        if len(_instance(count, tuple)) != 3:
            raise ValueError("malformed count")
        for number in count:
            _index(number)
    return Taken(counts)


def _decode_question(number: Any, dataflow: Any, location: Any, time: Any) -> StallQuestion:
    return StallQuestion(_index(number), _index(dataflow), -1 if location == -1 else _index(location), _time(time))


def _decode_hello(
    processes: Any, workers: Any, quantum: Any, answer: Any, pid: Any, accumulation: Any, offer: Any
) -> Hello:
    counts = _index(processes), _index(workers), _index(quantum)
    return Hello(*counts, _instance(answer, bool), _index(pid), _instance(accumulation, str), _instance(offer, str))


_DECODERS: dict[int, Callable[..., WireMessage]] = {
    _PROGRESS: _decode_progress,
    _SHAPE: lambda dataflow, digest, lines: Shape(_index(dataflow), _instance(digest, bytes), _lines(lines)),
    _FAILURE: lambda worker, text: Failure(_index(worker), _instance(text, str)),
    _GOODBYE: lambda worker, dataflows, left: Goodbye(_index(worker), _index(dataflows), _instance(left, bool)),
    _HELLO: _decode_hello,
    _ACK: lambda taken: Ack(_index(taken)),
    _QUESTION: _decode_question,
    _ANSWER: lambda number, lines: StallAnswer(_index(number), _lines(lines)),
    _TAKEN: _decode_taken,
}


def _lines(value: Any) -> tuple[str, ...]:
    lines: tuple[str, ...] = _instance(value, tuple)
    for line in lines:
        _instance(line, str)
    return lines


def _index(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 48:
        raise ValueError(f"{value!r} is not an index")
    return value


def _time(value: Any) -> tuple[int, ...]:
    time: tuple[Any, ...] = _instance(value, tuple)  # not of `int`, as which compiled code would take a boolean
    for coordinate in time:
        if type(coordinate) is not int or not 0 <= coordinate <= LIMIT:
            raise ValueError(f"{value!r} is not a timestamp")
    return time


_Kind = TypeVar("_Kind")


def _instance(value: Any, kind: type[_Kind]) -> _Kind:
    if type(value) is not kind:
        raise ValueError(f"{value!r} is not of type {kind.__name__}")
    return value
